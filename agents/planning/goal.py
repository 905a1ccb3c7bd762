"""Goal: what the first proposal is judged by. The best of the objective, or the cheapest change that fits the memory.

"fits" is asked for in the place of an objective: plans are then compared by the objective of the phase, and ordered by
what it takes to adopt them.
"""

from typing import Literal

from agents.request import PlanRequest

Goal = Literal["best", "fits"]
FITS = "fits"


def split_goal(request: PlanRequest) -> tuple[PlanRequest, Goal]:
    """(the request with an objective of the catalogue or none, its goal)."""
    if request.objective != FITS:
        return request, "best"
    return request.model_copy(update={"objective": None}), "fits"
