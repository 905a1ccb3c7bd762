"""What is asked of a sizing, and what it says, as records."""

from typing import Literal, Self

from pydantic import Field, model_validator

from projector.breakdown import Interval, Projection
from projector.ranking.ties import TIE_FRAC
from projector.specs.objective import Rejection
from projector.specs.record import MOST_DEVICES, Record

Met = Literal["with_margin", "as_projected", "no", "unknown"]
MOST_BUDGET_TOKENS = 10**18


class SizingTarget(Record):
    """What a machine has to reach; several limits hold together. days and cost_usd are of training budget_tokens, the
    last two of serving, under the latency budgets."""

    tokens_per_s: float | None = Field(None, gt=0, description="trained tokens a second, all chips together, at least")
    step_time_s: float | None = Field(None, gt=0, description="time of one optimizer step, at most")
    days: float | None = Field(None, gt=0, description="days of training, at most")
    cost_usd: float | None = Field(None, gt=0, description="price of the training, at most")
    budget_tokens: int | None = Field(None, ge=1, le=MOST_BUDGET_TOKENS, description="tokens to train on in all")
    requests_per_s: float | None = Field(None, gt=0, description="serving: requests finished a second, at least")
    output_tokens_per_s: float | None = Field(None, gt=0, description="serving: generated tokens a second, at least")

    @property
    def of_serving(self) -> tuple[str, ...]:
        """The limits it states that are of serving."""
        return tuple(name for name in ("requests_per_s", "output_tokens_per_s") if getattr(self, name) is not None)

    @property
    def of_training(self) -> tuple[str, ...]:
        """The limits it states that are of training."""
        names = ("tokens_per_s", "step_time_s", "days", "cost_usd", "budget_tokens")
        return tuple(name for name in names if getattr(self, name) is not None)

    @model_validator(mode="after")
    def _something_is_asked(self) -> Self:
        limits = (self.tokens_per_s, self.step_time_s, self.days, self.cost_usd)
        if all(limit is None for limit in limits) and not self.of_serving:
            raise ValueError(
                "state tokens_per_s, step_time_s, days or cost_usd (training), "
                "or requests_per_s or output_tokens_per_s (serving)"
            )
        if self.budget_tokens is None and (self.days is not None or self.cost_usd is not None):
            raise ValueError("days and cost_usd are of a number of tokens: state budget_tokens")
        return self


class SizingOption(Record):
    """One machine with the fastest plan that fits; in serving the plan that serves most under the latency budgets.

    met: whether the target is met: with_margin (at the slow end of the projection's 80 % interval too), as_projected,
        no, or unknown, where the target limits the cost and the price is unknown
    run_*: of training budget_tokens, None where none is stated; *_usd: None where the price is unknown
    """

    rank: int | None = Field(ge=1, description="by cost among the options that meet the target; None for others")
    chip: str
    chips: int = Field(ge=1)
    met: Met
    misses: tuple[Rejection, ...] = Field(description="limits it does not keep, as projected")
    tokens_per_s: float = Field(
        ge=0, description="trained, or generated under the latency budgets with all seats taken"
    )
    tokens_per_s_interval: Interval
    hourly_usd: float | None
    run_days: float | None
    run_usd: float | None
    run_chip_hours: float | None
    requests_per_s: float | None = Field(None, description="serving: finished a second; None in training")
    usd_per_million_tokens: float | None = Field(None, description="serving: of generated tokens at that rate")
    fleets: int = Field(1, ge=1, description="such projections side by side: chips are those of all of them")
    candidates_considered: int = Field(ge=0)
    projection: Projection


class SizingRefusal(Record):
    """A machine that has no plan."""

    chip: str
    chips: int
    reason: str


class CostPoint(Record):
    """A machine that is nowhere both slower and dearer than another. cost: as `Sizing.cost_unit` says."""

    chip: str
    chips: int = Field(ge=1)
    step_time_s: float
    cost: float
    met: Met


class Sizing(Record):
    """Machines for a workload by what they cost.

    options: those that meet the target first, by rank; then the others, the nearest to it first. Options with a known
    price are ranked among each other, and options without one (`unpriced`) by chip-hours, which do not compare between
    chips. Options within the tie in cost share a rank, the one with fewest chips first.
    """

    target: SizingTarget
    tie_frac: float = TIE_FRAC
    cost_unit: str = Field(description="what options are ranked by: USD of the run, or USD an hour")
    options: tuple[SizingOption, ...]
    unpriced: tuple[SizingOption, ...]
    unpriced_unit: str = Field(description="what unpriced options are ranked by: chip-hours of the run, or chips")
    pareto: tuple[CostPoint, ...] = Field(description="cost against step time over priced options, else over unpriced")
    refused: tuple[SizingRefusal, ...]
    notes: tuple[str, ...]


class ChipCounts(Record):
    """Counts of one chip to try."""

    chip: str
    chips: tuple[int, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if any(not 1 <= count <= MOST_DEVICES for count in self.chips):
            raise ValueError(f"counts of {self.chip} lie outside 1 to {MOST_DEVICES}")
        return self
