"""What is asked of a ranking and of a sizing."""

from pydantic import Field

from projector.anchor.serving_point import MeasuredServing
from projector.ranking.rank import MOST_TOP
from projector.ranking.sizing import MOST_MACHINES
from projector.ranking.sizing_records import ChipCounts, SizingTarget
from projector.specs.architecture import ModelArchitecture
from projector.specs.bottleneck import Cause
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Constraints
from projector.specs.objective import Slo
from projector.specs.plan import ParallelismPlan
from projector.specs.record import MOST_DEVICES, Record
from projector.specs.workload import WorkloadSpec

DEFAULT_TOP = 10
DEFAULT_MOST_CHIPS = 1024
FRAMEWORK = "training stack that runs it, which bounds what exists and overlaps; None: any current one"


class RankRequest(Record):
    """A workload on a cluster whose whole legal space is ranked."""

    workload: WorkloadSpec
    architecture: ModelArchitecture | None = Field(None, description="an own model, in place of workload.model")
    cluster: ClusterSpec
    framework: str | None = Field(None, description=FRAMEWORK)
    current_plan: ParallelismPlan | None = Field(None, description="the plan that runs: gains are told against it")
    objective: str | None = Field(None, description="name of an objective of the phase; None: the phase's default")
    pareto: tuple[str, ...] = Field((), description="two to four objectives whose Pareto set is wanted; (): none")
    relieve: Cause | None = Field(None, description="a diagnosed cause: layouts by what they save of its term, too")
    measured: MeasuredServing | None = Field(
        None,
        description="serving: what was measured of current_plan under this workload, which corrects its neighbours",
    )
    top: int = Field(DEFAULT_TOP, ge=1, le=MOST_TOP, description="layouts wanted")
    slo: Slo = Slo()
    constraints: Constraints = Constraints()


class SizeRequest(Record):
    """A workload and a target, for which machines are compared."""

    workload: WorkloadSpec
    architecture: ModelArchitecture | None = Field(None, description="an own model, in place of workload.model")
    framework: str | None = Field(None, description=FRAMEWORK)
    target: SizingTarget
    slo: Slo = Field(Slo(), description="serving: latency budgets that hold at the target")
    chips: tuple[str, ...] = Field(
        (),
        description="chips to compare at powers of two up to max_chips (serving: what the target needs); (): all",
    )
    max_chips: int = Field(DEFAULT_MOST_CHIPS, ge=1, le=MOST_DEVICES, description="largest machine of `chips`")
    machines: tuple[ChipCounts, ...] = Field(
        (), max_length=MOST_MACHINES, description="chips with their counts, in place of chips and max_chips"
    )
    prices_usd: dict[str, float] = Field(
        default_factory=dict, description="price of a chip and hour, by chip; in place of the catalogue's"
    )
    constraints: Constraints = Constraints()
