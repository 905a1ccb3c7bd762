"""Costs: roofline, collectives, pipeline, memory."""
