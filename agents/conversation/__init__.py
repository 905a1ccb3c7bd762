"""A conversation about a plan: what is asked, which facts it brings, and an answer from what was projected."""
