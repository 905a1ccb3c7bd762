"""RlProjection: what the projector says of one step of reinforcement learning, as a record."""

from typing import Literal

from pydantic import Field

from projector.breakdown import Fit, Interval, MemoryBreakdown, TimeBreakdown
from projector.specs.objective import Rejection
from projector.specs.record import Record
from projector.specs.rl import RlPlan

PhaseName = Literal["rollout", "log_probs", "training", "weight_sync", "offload"]
Pool = Literal["both", "trainer", "engines"]


class RlPhase(Record):
    """One phase of a step: whose devices it takes, and where the time of one of them goes."""

    name: PhaseName
    pool: Pool
    breakdown: TimeBreakdown

    @property
    def time_s(self) -> float:
        """Seconds the phase takes a step."""
        return self.breakdown.total_s


class RlProjection(Record):
    """What the projector says of an RL step. The breakdown is that of a device of `breakdown_of`, the pool that decides
    how long the step takes; what it waits for the other is idle."""

    plan: RlPlan
    chip: str
    chips: int = Field(ge=1)
    step_time_s: float = Field(ge=0)
    step_time_interval_s: Interval
    phases: tuple[RlPhase, ...]
    breakdown: TimeBreakdown
    breakdown_of: Pool
    training_memory: MemoryBreakdown
    rollout_memory: MemoryBreakdown
    tokens_per_s_per_chip: float = Field(ge=0, description="prompt and response tokens a second and chip")
    rejections: tuple[Rejection, ...] = ()
    assumptions: tuple[str, ...] = ()

    @property
    def fit(self) -> Fit:
        """Whether both the trainer and the engines fit."""
        return "fits" if self.training_memory.fit == self.rollout_memory.fit == "fits" else "too_large"

    def phase_s(self, name: PhaseName) -> float:
        """Seconds of one phase; 0 where the step has none of that name."""
        return sum(phase.time_s for phase in self.phases if phase.name == name)
