"""ProjectionBatch: what the projector says of many plans, as columns; entry i reads as a `Projection` record."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from projector.arrival_limit import ArrivalLimit
from projector.breakdown import AxisLink, Interval, Projection
from projector.breakdown_columns import BreakdownColumns
from projector.cost.energy import ChipPower
from projector.cost.links import Links
from projector.cost.memory import MemoryColumns
from projector.errors import InvalidDescription
from projector.graph.columns import Column, Switch
from projector.provenance import provenance
from projector.specs.hardware import HardwareProfile
from projector.specs.objective import Rejection, Slo, find_objective
from projector.specs.plan_batch import PlanBatch
from projector.specs.serving_figures import ServingFigures
from projector.specs.slo import Budget
from projector.units import bytes_to_gb, s_to_ms


@dataclass(frozen=True)
class Assumption:
    """A sentence about the plans it holds for (None: all)."""

    text: str
    plans: Switch | None = None


@dataclass(frozen=True)
class Metrics:
    """Figures of a phase; columns of shape [n], None where the phase has no such figure, NaN where a plan has none.

    figures: all that serving is judged by, under the name and in the unit of its objective.
    """

    tokens_per_s_per_chip: Column | None = None
    mfu_frac: Column | None = None
    ttft_s: Column | None = None
    tpot_s: Column | None = None
    request_latency_s: Column | None = None
    decode_tokens_per_s_per_chip: Column | None = None
    total_tokens_per_s_per_chip: Column | None = None
    max_concurrency: Column | None = None
    figures: dict[str, Column] | None = None

    def record(self, index: int) -> dict[str, Any]:
        """The figures one plan has, by the fields of `Projection`."""
        plain = {name: column for name, column in vars(self).items() if name != "figures" and column is not None}
        found: dict[str, Any] = _known(plain, index)
        if self.figures is not None:
            found["serving"] = ServingFigures(**_known(self.figures, index))
        return found


@dataclass(frozen=True)
class IntervalRule:
    """low and high as factors of the projected step time (one for all plans, or columns), and what they rest on."""

    low_factor: Column | float
    high_factor: Column | float
    basis: str

    def around(self, value: float, index: int = 0) -> Interval:
        """The interval of one projection."""
        low, high = (
            end if isinstance(end, float) else float(end[index]) for end in (self.low_factor, self.high_factor)
        )
        return Interval(low=low * value, high=high * value, basis=self.basis)


@dataclass(frozen=True)
class ProjectionBatch:
    """Projections of a batch on one cluster. `batch[i]` is the i-th as a record; objectives come as columns."""

    batch: PlanBatch
    chip: str
    chips: int
    devices_per_chip: int
    price_usd_per_chip_hour: float | None
    step_time_s: Column
    breakdown: BreakdownColumns
    memory: MemoryColumns
    metrics: Metrics
    interval: IntervalRule
    hardware: HardwareProfile
    power: ChipPower | None = None
    links: Links | None = None
    arrivals: ArrivalLimit | None = None
    assumptions: tuple[Assumption, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.batch)

    def __iter__(self) -> Iterator[Projection]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: int) -> Projection:
        time_s = float(self.step_time_s[index])
        memory, breakdown = self.memory.record(index), self.breakdown.record(index)
        return Projection(
            plan=self.batch[index],
            chip=self.chip,
            chips=self.chips,
            source="modelled",
            step_time_s=time_s,
            step_time_interval_s=self.interval.around(time_s, index),
            breakdown=breakdown,
            provenance=provenance(self.hardware, breakdown),
            memory=memory,
            links=self._links(index),
            **self.metrics.record(index),
            rejections=(*_too_large(memory.total_bytes, memory.capacity_bytes), *self._not_kept_up(index)),
            assumptions=tuple(a.text for a in self.assumptions if a.plans is None or a.plans[index]),
        )

    def _not_kept_up(self, index: int) -> tuple[Rejection, ...]:
        return () if self.arrivals is None else self.arrivals.rejections(index)

    def _links(self, index: int) -> tuple[AxisLink, ...]:
        if self.links is None:
            return ()
        busy = frozenset(axis for axis, times in self.breakdown.by_axis.items() if times.total_s[index] > 0)
        return self.links.of(index, busy)

    @property
    def memory_bytes(self) -> Column:
        """Peak bytes on the fullest device, reserve included, shape [n]."""
        return self.memory.total_bytes

    @property
    def fits(self) -> NDArray[np.bool_]:
        """Whether a plan leaves the reserve free, shape [n]."""
        return self.memory.fits

    def objective(self, name: str) -> Column:
        """The named objective in its own unit, shape [n]; of a plan that has no such figure the worst value, 0 or inf.

        UnknownName where this phase has no such objective, InvalidDescription where it needs a price or a power that
        nobody stated.
        """
        if self.metrics.tokens_per_s_per_chip is not None:
            return self._training_objective(find_objective(name, "training").name)
        found = find_objective(name, "serving")
        column = (self.metrics.figures or {}).get(found.name)
        if column is None:
            raise InvalidDescription(
                f"{found.name}: {self._lacking(found.name)}",
                hint="add it with its source to the chip's file, or choose another objective",
            )
        worst = 0.0 if found.direction == "maximise" else np.inf
        return np.where(np.isnan(column), worst, column)

    def _lacking(self, name: str) -> str:
        """What a figure of serving is not known for."""
        if "cost" in name:
            return f"the price of {self.chip} is unknown"
        return f"the board power of {self.chip} is unknown"

    def _training_objective(self, name: str) -> Column:
        columns: dict[str, Callable[[], Column | None]] = {
            "tokens_per_s_per_chip": lambda: self.metrics.tokens_per_s_per_chip,
            "step_time_s": lambda: self.step_time_s,
            "mfu": lambda: self.metrics.mfu_frac,
            "memory_per_chip_gb": lambda: bytes_to_gb(1.0) * self.memory_bytes * self.devices_per_chip,
            "cost_per_million_tokens": self._usd_per_million_tokens,
            "energy_per_token_j": self._energy_per_token_j,
        }
        column = columns[name]()
        assert column is not None, f"{name} is an objective of training and has no column"
        return np.where(np.isnan(column), np.inf, column)

    def _usd_per_million_tokens(self) -> Column:
        """Price of a chip and second over tokens it trains in one, times 1e6."""
        if self.price_usd_per_chip_hour is None:
            raise InvalidDescription(
                f"cost_per_million_tokens: the price of {self.chip} is unknown",
                hint="add price_usd_per_chip_hour with its source to the chip's file, or choose another objective",
            )
        rate = self.metrics.tokens_per_s_per_chip
        assert rate is not None
        return np.where(rate > 0, self.price_usd_per_chip_hour / 3600 / rate * 1e6, np.inf)

    def _energy_per_token_j(self) -> Column:
        """Mean power of a chip over the tokens it trains a second."""
        if self.power is None:
            raise InvalidDescription(
                f"energy_per_token_j: the power of {self.chip} is unknown",
                hint="add tdp_w with its source to the chip's file, or choose another objective",
            )
        parts, rate = self.breakdown, self.metrics.tokens_per_s_per_chip
        assert rate is not None
        idle_s = parts.idle_s + parts.exposed_copy_s
        return self.power.mean_w(parts.compute_s, parts.exposed_communication_s, idle_s) / rate

    def slo_misses(self, slo: Slo) -> list[tuple[Rejection, ...]]:
        """For every plan the budgets of means it misses, all of them. A budget of another phase's figure cannot be
        missed; percentiles are neither met nor missed here (`Slo.unanswered`). A plan that does not keep up with the
        arrivals misses them, whatever its budgets."""
        misses = [list(self._not_kept_up(index)) for index in range(len(self))]
        for budget, column in self.budgets(slo):
            for index in np.flatnonzero(column > budget.limit_ms):
                misses[index].append(budget.miss(float(column[index])))
        return [tuple(found) for found in misses]

    def meets(self, slo: Slo) -> NDArray[np.bool_]:
        """Whether a plan misses none of the budgets of means, shape [n]."""
        met = np.ones(len(self), dtype=np.bool_) if self.arrivals is None else self.arrivals.kept_up
        for budget, column in self.budgets(slo):
            met = met & ~(column > budget.limit_ms)
        return met

    def overshoot(self, slo: Slo) -> Column:
        """The largest of what a plan needs over what there is, memory and each budget: above 1 where it fails one, inf
        where it serves nothing that a budget could hold."""
        over = self.memory_bytes / self.memory.capacity_bytes
        if self.arrivals is not None:
            over = np.maximum(over, self.arrivals.rate_per_s / self.arrivals.capacity_per_s)
        for budget, column in self.budgets(slo):
            over = np.maximum(over, np.where(np.isnan(column), np.inf, column / budget.limit_ms))
        return over

    def budgets(self, slo: Slo) -> tuple[tuple[Budget, Column], ...]:
        """Every budget of a mean that is set and that this phase has, with its column in ms."""
        m = self.metrics
        seconds = {"ttft_ms": m.ttft_s, "tpot_ms": m.tpot_s, "request_latency_ms": m.request_latency_s}
        return tuple(
            (budget, s_to_ms(1.0) * column) for budget in slo.means if (column := seconds[budget.metric]) is not None
        )


def _known(columns: Mapping[str, Column], index: int) -> dict[str, float]:
    """What one plan has of the columns: finite figures."""
    values = ((name, float(column[index])) for name, column in columns.items())
    return {name: value for name, value in values if np.isfinite(value)}


def price_usd_per_chip_hour(hardware: HardwareProfile) -> float | None:
    """What an hour of the chip costs; None where its file states no price."""
    figure = hardware.price_usd_per_chip_hour
    return None if figure is None else figure.value


def _too_large(total_bytes: float, capacity_bytes: float) -> tuple[Rejection, ...]:
    if total_bytes <= capacity_bytes:
        return ()
    return (
        Rejection(
            rule="memory",
            quantity="memory of a device with its reserve",
            value=bytes_to_gb(total_bytes),
            limit=bytes_to_gb(capacity_bytes),
            unit="GB",
        ),
    )
