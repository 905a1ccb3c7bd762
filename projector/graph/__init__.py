"""The operator graph of a model under a plan."""
