"""Result tables as pandas frames. pandas is imported at first use."""

from typing import TYPE_CHECKING

from agents.findings import PlanResult
from projector.breakdown import Projection

if TYPE_CHECKING:
    import pandas as pd

CURRENT = "current"


def projections_to_frame(result: PlanResult) -> "pd.DataFrame":
    """One row a projection: the current plan first, then each proposal on its own cluster and on the compared chips.

    Columns: proposal ("current" or the rank), chip, chips, the projected figures with their units, fit, and every plan
    field with the prefix "plan.". A figure nobody knows is missing, never 0.
    """
    import pandas as pd

    rows = [] if result.current is None else [_row(CURRENT, result.current)]
    rows += [_row(str(each.rank), projection) for each in result.proposals for projection in each.projections]
    return pd.DataFrame(rows)


def _row(proposal: str, projection: Projection) -> dict[str, object]:
    breakdown, memory = projection.breakdown, projection.memory
    return {
        "proposal": proposal,
        "chip": projection.chip,
        "chips": projection.chips,
        "source": projection.source,
        "step_time_s": projection.step_time_s,
        "compute_s": breakdown.compute_s,
        "exposed_communication_s": breakdown.exposed_communication_s,
        "exposed_copy_s": breakdown.exposed_copy_s,
        "idle_s": breakdown.idle_s,
        "memory_bytes": None if memory is None else memory.total_bytes,
        "capacity_bytes": None if memory is None else memory.capacity_bytes,
        "fit": projection.fit,
        "tokens_per_s_per_chip": projection.tokens_per_s_per_chip,
        "mfu_frac": projection.mfu_frac,
        "ttft_s": projection.ttft_s,
        "tpot_s": projection.tpot_s,
        "request_latency_s": projection.request_latency_s,
        "decode_tokens_per_s_per_chip": projection.decode_tokens_per_s_per_chip,
        "total_tokens_per_s_per_chip": projection.total_tokens_per_s_per_chip,
        "max_concurrency": projection.max_concurrency,
        **{f"plan.{field}": value for field, value in projection.plan.model_dump().items()},
    }
