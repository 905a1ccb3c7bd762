"""What a proposal says besides its plan: how one gets there, what carries it, what it costs, and how to test it."""

from typing import Literal

from pydantic import Field

from projector.breakdown import Axis, Fit, LinkTier
from projector.specs.plan import ParallelismPlan
from projector.specs.record import Record

# flag: a switch. config: a value. relaunch: another layout from the same checkpoint. reshard: the checkpoint is cut
# anew. code: no framework that is asked about can say the plan.
Effort = Literal["flag", "config", "relaunch", "reshard", "code"]
EFFORTS: tuple[Effort, ...] = ("flag", "config", "relaunch", "reshard", "code")

# Terms of a step and of a device's memory. none: nothing falls by more than the noise of a projection.
Resource = Literal[
    "compute",
    "exposed_communication",
    "exposed_copy",
    "idle",
    "weights_memory",
    "gradients_memory",
    "optimizer_memory",
    "activations_memory",
    "kv_cache_memory",
    "buffers_memory",
    "memory",
    "none",
]

RESOURCE_WORDS: dict[Resource, str] = {
    "compute": "compute time",
    "exposed_communication": "exposed communication",
    "exposed_copy": "exposed copies",
    "idle": "idle time",
    "weights_memory": "memory of weights",
    "gradients_memory": "memory of gradients",
    "optimizer_memory": "memory of optimizer state",
    "activations_memory": "memory of activations",
    "kv_cache_memory": "memory of keys and values",
    "buffers_memory": "memory of buffers",
    "memory": "memory",
    "none": "nothing beyond the noise",
}


class TrailPoint(Record):
    """One plan of a trail. gain_frac: of the objective against where the trail starts, as `Expected.objective_frac`."""

    step_time_s: float = Field(ge=0)
    memory_bytes: float | None = Field(None, description="of the fullest device; None: the model is unknown")
    gain_frac: float


class TrailStep(Record):
    """One step of levers; `after` is the `before` of the next. fit: whether the plan behind the step fits."""

    title: str = Field(description="what changes, in the direction of its numbers")
    levers: tuple[str, ...]
    plan: ParallelismPlan = Field(description="the plan after the step, legal by itself")
    before: TrailPoint
    after: TrailPoint
    fit: Fit


class AxisPlacement(Record):
    """Where the ranks of one parallelism axis sit, and the links they talk over; one entry a tier of links.

    A group is `group_size` ranks, `stride` apart in the order devices are numbered in; `ranks` are those of the first.
    """

    axis: Axis
    group_size: int = Field(ge=2)
    stride: int = Field(ge=1, description="distance of neighbours of a group, in ranks")
    groups: int = Field(ge=1, description="groups of the axis")
    ranks: tuple[int, ...] = Field(description="first ranks of the first group, at most eight")
    tier: LinkTier | None = Field(description="None: the chip is not known")
    ranks_per_domain: int | None = Field(ge=1, description="ranks of a group inside one domain of fast links")
    one_way_bytes_per_s: float | None = Field(gt=0, description="rate a device gets there")
    communication_s: float = Field(ge=0, description="of a step, over all tiers the axis crosses, hidden or not")
    exposed_s: float = Field(ge=0, description="the part of it that nothing hides")
    wraps: bool | None = Field(None, description="torus: whether every dimension the group runs over closes to a ring")
    text: str


class Worsening(Record):
    """One figure that gets worse by more than the noise of a projection, or by an amount nobody knows (None)."""

    what: str
    before: float | None
    after: float | None
    unit: str
    text: str


class Experiment(Record):
    """The shortest run that confirms or refutes a proposal: the same figure of both plans, at the same batch."""

    text: str
    steps: int = Field(ge=1, description="steps to record of each plan, after warm-up")
    watch: str = Field(description="field of our own diagnosis of the recorded run")
    unit: str
    reference: float | None = Field(None, description="the figure of the plan it is compared with, as expected")
    predicted: float
    low: float
    high: float
    refuted_beyond: float = Field(description="a figure on the far side of this one refutes the proposal")
