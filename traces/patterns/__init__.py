"""Sequences of operators that cost time: one pattern a file, each found in one rank's events at once."""
