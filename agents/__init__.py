"""The planning graph, the advisors and what they find."""
