"""What `eval advice` over workloads hands back beside the hit rates of `eval topk`: frozen records, fractions."""

from pydantic import Field

from agents.evaluation.reports import Rate, TopkReport
from projector.specs.record import Record


class ReliabilityBin(Record):
    """Picks of like stated chance: how often they were the adopted layout."""

    n: int = Field(ge=1)
    stated: float
    happened: float


class Reliability(Record):
    """Stated chances of picks against outcomes. The event: the pick's layout is the adopted one.

    brier_constant: of a forecast that always states the mean.
    """

    event: str
    n: int
    ece: float | None
    brier: float | None
    brier_constant: float | None
    bins: tuple[ReliabilityBin, ...]


class Effort(Record):
    """Layouts tried until the adopted one, in the order of the advice, at random, and the whole space; medians over the
    n workloads whose adopted layout is in the space."""

    stratum: str
    n: int
    advised: float | None
    random: float | None
    exhaustive: float | None


class Cost(Record):
    """What the first proposal costs: projected, against the layout projected fastest (mean over n workloads), and
    measured, against the best measured layout of sweeps that measured it."""

    stratum: str
    n: int
    projected_loss: float | None
    measured_n: int
    measured_regret: float | None


class RefusedRun(Record):
    """A published layout that ran and that our gates refuse. rules: what they say."""

    workload_id: str
    layout: str
    rules: tuple[str, ...]


class OrderOnly(Record):
    """Hits of the order of layouts alone, without the service around it: what is left out of the fit and of history."""

    stratum: str
    left_out: str
    n: int
    top1: Rate
    top3: Rate


class AblationRow(Record):
    """One part left out, beside the whole: hit rates, and the paired difference (whole minus ablated) with its 95 %
    interval."""

    left_out: str
    stratum: str
    n: int
    top1: Rate
    top3: Rate
    tolerant: Rate
    top1_cost: float
    top1_interval: float
    top3_cost: float
    top3_interval: float
    note: str = ""


class AdviceReport(TopkReport):
    """`shardwise eval advice` over workloads. The keys of `eval topk`, and what only whole advice has."""

    unseen_n: int = Field(description="workloads advised by the weights that ship, which have not seen their group")
    history: bool
    diversity: bool
    ablated: tuple[str, ...]
    refused_ran_share: float | None = Field(description="published layouts that ran and that the gates refuse")
    refused_ran_n: int
    refused_ran: tuple[RefusedRun, ...]
    confidence: Reliability
    efforts: tuple[Effort, ...]
    costs: tuple[Cost, ...]
    order_only: tuple[OrderOnly, ...]
    ablations: tuple[AblationRow, ...] = ()
