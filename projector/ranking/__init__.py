"""Ranking: a whole legal space by an objective, its Pareto set, what relieves a cause, and what machine to take."""
