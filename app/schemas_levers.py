"""What is asked of the levers of one model on one cluster, and the answer."""

from pydantic import Field

from projector.admissible import Choices
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan, Phase
from projector.specs.record import Record
from projector.specs.workload import WorkloadSpec


class LeversRequest(Record):
    """A model on a cluster; with a plan also what cannot matter beside its other fields."""

    workload: WorkloadSpec = Field(description="phase and model; sizes narrow what is worth trying")
    architecture: ModelArchitecture | None = Field(None, description="an own model, in place of workload.model")
    cluster: ClusterSpec
    plan: ParallelismPlan | None = Field(None, description="a plan, beside whose fields others may be inert")


class InertField(Record):
    """A plan field no value of which changes any figure of the plan, and why."""

    field: str
    because: str


class LeversAnswer(Record):
    """What may be tried of every field a lever of the phase moves, in the order of expected impact."""

    phase: Phase
    model: str
    chip: str
    chips: int
    fields: tuple[Choices, ...]
    inert_in_plan: tuple[InertField, ...] | None = Field(description="None: no plan was given")
