"""Request and answer of `shardwise rl`: one step of reinforcement learning, priced."""

from pydantic import Field

from projector.rl_projection import RlProjection
from projector.specs.cluster import ClusterSpec
from projector.specs.objective import Rejection
from projector.specs.record import Record
from projector.specs.rl import RlPlan, RlStep


class RlRequest(Record):
    """A step, the pair of plans it is laid out by, and the machine."""

    model: str = Field(description="model of the catalogue")
    cluster: ClusterSpec
    step: RlStep
    plan: RlPlan = Field(description="training.grad_accum may be left out: it follows from the rows of an update")
    framework: str | None = Field(None, description="training stack that runs it; None: a current one")


class RlAnswer(Record):
    """What the projector says of it. Plans that break a rule have no projection."""

    request: RlRequest
    legal: bool
    illegal: tuple[Rejection, ...] = Field(description="rules the two plans break")
    projection: RlProjection | None
