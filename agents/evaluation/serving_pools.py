"""A disaggregated row as a plan of a prefill and a decode pool."""

from agents.evaluation.refusal import Refused
from agents.evaluation.serving_rows import ServingRow
from projector.specs.plan import ParallelismPlan


def plan_of_pools(row: ServingRow) -> ParallelismPlan:
    """The plan of a row with two pools (`row.pools`). Refused where the projector has no such plan."""
    assert row.pools is not None
    raise Refused("disaggregated engines are not modelled")
