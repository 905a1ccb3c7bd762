"""Levers: one change to a plan a file, in the order of expected impact."""
