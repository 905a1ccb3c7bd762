"""What a ratio may be to count as a measurement of what is modelled, and what is too small to tell."""

import math

# Of 1,956 published runs one measured less than 0.6 times what is projected, and none more than 2.5 times.
STEP_RANGE = (0.6, 2.5)
# Parts of a step scatter more than the step. No published run states them: assumed, as is all below.
COMPUTE_RANGE = (0.25, 4.0)
FLOW_RANGE = (0.2, 5.0)
BUBBLE_RANGE = (0.2, 5.0)
HOST_RANGE = (1 / 3, 3.0)
# of compute time, and of the step
LEAST_KIND_FRAC = 0.02
LEAST_FLOW_FRAC = 0.005
LEAST_IDLE_FRAC = 0.01
# of the idle time of known cause, from which on the host sets the pace
HOST_SHARE = 0.5


def within(ratio: float, limits: tuple[float, float]) -> bool:
    """Whether a ratio is finite and inside, ends included."""
    return math.isfinite(ratio) and limits[0] <= ratio <= limits[1]
