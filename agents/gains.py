"""Gains: one number for ranking, one for readers."""

from projector.specs.objective import Direction


def objective_change(gain_frac: float, direction: Direction) -> float:
    """Change of the objective as a reader counts it, positive is better.

    gain_frac is the ratio of two plans' objectives minus one, so that twice as good is 1 for either direction. Of an
    objective to minimise, readers count what is saved: half the latency is 0.5.
    """
    return gain_frac if direction == "maximise" else 1 - 1 / (1 + gain_frac)
