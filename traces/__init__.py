"""Readers of profiler traces, and what one trace says."""
