"""Scores against published measurements; run as modules with the folder that holds them."""
