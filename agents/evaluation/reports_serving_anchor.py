"""What `eval anchor` of serving rows hands back: frozen records, fractions throughout."""

from pydantic import Field

from agents.evaluation.reports import Reason
from projector.specs.record import Record


class ServingAnchorErrors(Record):
    """Absolute errors over the pairs of one class, every engine weighing 1; medians over pairs.

    modelled: without a measured point; anchored: corrected by one point of the same engine.
    """

    value: str
    pairs: int = Field(ge=0)
    tpot_modelled_mape: float | None = None
    tpot_anchored_mape: float | None = None
    tpot_coverage_80: float | None = Field(None, description="share measured inside the corrected interval")
    ttft_modelled_mape: float | None = None
    ttft_anchored_mape: float | None = None
    ttft_modelled_median: float | None = None
    ttft_anchored_median: float | None = None


class ServingAnchorReport(Record):
    """`shardwise eval anchor` of serving rows."""

    n_given: int
    n_points: int = Field(description="measured points of engines with two points or more")
    n_engines: int
    n_pairs: int
    by_distance: tuple[ServingAnchorErrors, ...]
    refused_anchors: tuple[Reason, ...]
