"""What a ranking says, as records."""

from pydantic import Field

from projector.breakdown import Interval, Projection
from projector.ranking.ties import TIE_FRAC
from projector.specs.bottleneck import Cause
from projector.specs.objective import Objective
from projector.specs.plan import ParallelismPlan
from projector.specs.record import Record


class ObjectiveValue(Record):
    """One figure of a plan by the name of its objective."""

    objective: str
    value: float
    unit: str


class Margin(Record):
    """How far a plan stays below one limit: memory of a chip, or a latency budget. margin_frac: of the limit."""

    quantity: str
    value: float
    limit: float
    unit: str
    margin_frac: float = Field(ge=0)


class RankedPlan(Record):
    """The best plan of a layout. Layouts within the tie share a rank; of equal ones the simplest stands first.

    behind_frac: share of the best one's objective that it lacks (of its inverse, where less is better). gain_frac: gain
    of the objective's ratio against the current plan, None without one.
    """

    rank: int = Field(ge=1)
    behind_frac: float = Field(ge=0)
    gain_frac: float | None
    figures: tuple[ObjectiveValue, ...]
    margins: tuple[Margin, ...] = Field((), description="what it keeps of every limit, the tightest first")
    projection: Projection


class ParetoPlan(Record):
    """A plan that no other beats in one figure without losing in another."""

    plan: ParallelismPlan
    step_time_interval_s: Interval
    figures: tuple[ObjectiveValue, ...]


class ParetoSet(Record):
    """The Pareto set over some objectives, by the first of them.

    members_count: all of it; of members within the tie of one another in every figure one stands for all in `plans`.
    """

    objectives: tuple[str, ...]
    members_count: int = Field(ge=0)
    plans: tuple[ParetoPlan, ...]


class RelievingPlan(Record):
    """A plan by what it saves of a blamed term. saved_frac: of the whole current step (of its bytes: hbm_capacity)."""

    rank: int = Field(ge=1)
    saved_frac: float
    gain_frac: float | None
    figures: tuple[ObjectiveValue, ...]
    projection: Projection


class ReliefRanking(Record):
    """Layouts by what they save of the term a cause blames, among plans no slower than the current one.

    share_frac: share of the current step that the term takes, so the most that could be saved (1: hbm_capacity).
    """

    cause: Cause
    share_frac: float = Field(ge=0)
    plans: tuple[RelievingPlan, ...]


class UnknownFigure(Record):
    """An objective that has no figure here, with the reason."""

    objective: str
    reason: str


class SpaceRanking(Record):
    """A whole legal space, ranked.

    nearest_miss: where no plan passes memory and latency budgets, the one that passes its worst limit by the least; its
    `rejections` say which. why_none: why nothing is ranked, "" where something is.
    """

    objective: Objective
    tie_frac: float = TIE_FRAC
    candidates_considered: int = Field(ge=0, description="legal plans that were projected")
    candidates_feasible: int = Field(ge=0, description="plans of them that fit the memory and keep the latency budgets")
    layouts_count: int = Field(ge=0, description="distinct layouts among the feasible plans")
    leading_count: int = Field(ge=0, description="layouts that share the first rank")
    ranked: tuple[RankedPlan, ...]
    pareto: ParetoSet | None
    relief: ReliefRanking | None
    current: Projection | None
    nearest_miss: Projection | None
    why_none: str = ""
    unknown: tuple[UnknownFigure, ...]
    notes: tuple[str, ...] = Field(description="what was left out of the space, or could not be checked")
    assumptions: tuple[str, ...] = Field(description="what the figures take for granted beside the projections' own")
