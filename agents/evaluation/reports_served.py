"""Reports of serving evaluations, as records."""

from pydantic import Field

from agents.evaluation.reports import Rate, Reason
from projector.specs.record import Record


class ServedBaseline(Record):
    """How often a proposal that needs no model hits."""

    name: str
    rate: Rate


class ServedStratum(Record):
    """Hit rates of one stratum of serving workloads."""

    stratum: str
    n: int
    n_ranked: int = Field(description="workloads the planner found fleets for; the others count as missed")
    top1: Rate
    top3: Rate
    tolerant: Rate = Field(description="hit in three, or projected within 5 % of the best")
    median_rank: float | None = Field(description="of the published fleet among all that fit, where it is one of them")
    baselines: tuple[ServedBaseline, ...]


class ServedWorkload(Record):
    """One workload: what was published, what is proposed."""

    workload_id: str
    adopted: tuple[str, ...]
    proposals: tuple[str, ...]
    rank: int | None
    absent: str
    plans: int
    hit_top1: bool
    hit_top3: bool
    tolerant: bool


class DegreesSlice(Record):
    """Choice of degrees over some sweeps. right: projected and measured best are one; near: the projected best was
    measured within 10 % of the best; mape, bias (median): of projected throughput, over all points."""

    value: str
    right: Rate
    near: Rate
    smallest: Rate = Field(description="baseline: the smallest engine of the sweep is the measured best")
    points: int
    mape: float | None
    bias: float | None


class DegreesReport(Record):
    """Choice of degrees over all sweeps, and by model and chip."""

    total: DegreesSlice
    slices: tuple[DegreesSlice, ...]
    refusals: tuple[Reason, ...]


class ServedTopkReport(Record):
    """`shardwise eval topk --phase serving`. Figures are fractions."""

    n: int
    strata: tuple[ServedStratum, ...]
    degrees: DegreesReport
    refusals: tuple[Reason, ...]
    notes: tuple[str, ...]
    workloads: tuple[ServedWorkload, ...] = ()
