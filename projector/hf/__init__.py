"""Hugging Face configurations: which families are understood, and how their keys are read."""
