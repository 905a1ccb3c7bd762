"""What `eval anchor` hands back: frozen records, fractions throughout, None where nothing could be counted."""

from pydantic import Field

from agents.evaluation.reports import Reason
from projector.specs.record import Record


class AnchorErrors(Record):
    """Absolute errors of projected against measured step time over the pairs of one class, every sweep weighing 1.

    modelled: without a trace; anchored: with it; carried_whole: as if the anchor's ratio held for every plan.
    """

    value: str
    pairs: int = Field(ge=0)
    sweeps: int = Field(ge=0)
    modelled_mape: float | None = None
    anchored_mape: float | None = None
    carried_whole_mape: float | None = None
    modelled_coverage_80: float | None = None
    anchored_coverage_80: float | None = None
    modelled_width_80: float | None = None
    anchored_width_80: float | None = None
    held: float | None = Field(None, description="mean share of the ratio that is carried")


class AnchorRanking(Record):
    """The other runs of a sweep ranked from one of them: mean over sweeps of the mean over anchors."""

    value: str
    sweeps: int
    order_accuracy: float | None = Field(description="share of pairs that differ by more than 5 % in the right order")
    top1_regret: float | None
    top3_regret: float | None


class AnchorFolds(Record):
    """One factor on what every ratio carries, 0 to 1.5: the best in hindsight, and the best of the other groups."""

    statement: str
    as_built_mape: float | None
    in_sample_factor: float | None
    in_sample_mape: float | None
    leave_group_out_mape: float | None
    factors: dict[str, float] = Field(description="group left out -> factor the other groups choose")


class AnchorReport(Record):
    """`shardwise eval anchor`."""

    n_given: int
    n_runs: int = Field(description="measured runs in sweeps of at least two configurations")
    n_sweeps: int
    n_groups: int = Field(description="(model family, chip) groups")
    n_pairs: int
    modelled_mape: float | None
    anchored_mape: float | None
    by_distance: tuple[AnchorErrors, ...]
    by_source: tuple[AnchorErrors, ...]
    ranking: tuple[AnchorRanking, ...]
    folds: AnchorFolds
    refused_anchors: tuple[Reason, ...]
