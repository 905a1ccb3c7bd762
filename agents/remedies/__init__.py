"""Remedies: what relieves a bottleneck besides another layout, and the reading of what a user says of a run."""
