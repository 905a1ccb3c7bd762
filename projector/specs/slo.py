"""Slo: latency budgets of serving, of means and of percentiles."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import Field

from projector.errors import InvalidDescription
from projector.specs.record import Record
from projector.specs.rejection import Rejection

Metric = Literal["ttft_ms", "tpot_ms", "request_latency_ms"]
# Time per output token and inter-token latency are one figure here: the gap between two tokens of a request.
SAME: Final[Mapping[str, Metric]] = {"itl_ms": "tpot_ms"}
QUANTITY: Final[Mapping[Metric, str]] = {
    "ttft_ms": "TTFT",
    "tpot_ms": "TPOT",
    "request_latency_ms": "request latency",
}
UNANSWERED: Final = "not answered by the analytic model; run the simulation"


@dataclass(frozen=True)
class Budget:
    """One budget that is set: its key, the metric it bounds, the percentile (None: the mean), the limit in ms."""

    key: str
    metric: Metric
    percentile: int | None
    limit_ms: float

    @property
    def statistic(self) -> str:
        """The name a measurement has it under: "ttft_ms" the mean, "ttft_ms_p99" a percentile."""
        return self.metric if self.percentile is None else f"{self.metric}_p{self.percentile}"

    @property
    def quantity(self) -> str:
        """What is bounded, in words: "TTFT" or "TTFT p99"."""
        return QUANTITY[self.metric] + ("" if self.percentile is None else f" p{self.percentile}")

    def miss(self, value_ms: float) -> Rejection:
        """The budget as missed by a value above its limit."""
        return Rejection(rule=self.key, quantity=self.quantity, value=value_ms, limit=self.limit_ms, unit="ms")


class Slo(Record):
    """Latency budgets in milliseconds; None leaves one unconstrained.

    Means are answered by the projection; percentiles (`_p50`, `_p90`, `_p99`) by a simulation or a measurement alone,
    and a projection says so of each (`unanswered`).
    """

    ttft_ms: float | None = Field(None, gt=0, description="mean time to first token")
    tpot_ms: float | None = Field(None, gt=0, description="mean time per output token after the first")
    itl_ms: float | None = Field(None, gt=0, description="mean inter-token latency: the same figure as tpot_ms")
    request_latency_ms: float | None = Field(None, gt=0, description="mean end-to-end request latency")
    ttft_ms_p50: float | None = Field(None, gt=0, description="median of the time to first token")
    ttft_ms_p90: float | None = Field(None, gt=0, description="90th percentile of the time to first token")
    ttft_ms_p99: float | None = Field(None, gt=0, description="99th percentile of the time to first token")
    tpot_ms_p50: float | None = Field(None, gt=0, description="median of the time per output token")
    tpot_ms_p90: float | None = Field(None, gt=0, description="90th percentile of the time per output token")
    tpot_ms_p99: float | None = Field(None, gt=0, description="99th percentile of the time per output token")
    itl_ms_p50: float | None = Field(None, gt=0, description="median inter-token latency")
    itl_ms_p90: float | None = Field(None, gt=0, description="90th percentile of the inter-token latency")
    itl_ms_p99: float | None = Field(None, gt=0, description="99th percentile of the inter-token latency")
    request_latency_ms_p50: float | None = Field(None, gt=0, description="median request latency")
    request_latency_ms_p90: float | None = Field(None, gt=0, description="90th percentile of the request latency")
    request_latency_ms_p99: float | None = Field(None, gt=0, description="99th percentile of the request latency")

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """Every budget that is set, in the order of the keys."""
        limits = {key: getattr(self, key) for key in type(self).model_fields}
        return tuple(_budget(key, limit) for key, limit in limits.items() if limit is not None)

    @property
    def means(self) -> tuple[Budget, ...]:
        """Budgets of means."""
        return tuple(budget for budget in self.budgets if budget.percentile is None)

    @property
    def unanswered(self) -> tuple[str, ...]:
        """A sentence for every budget that no projection answers: neither met nor missed."""
        return tuple(
            f"{budget.quantity} <= {budget.limit_ms:g} ms: {UNANSWERED}"
            for budget in self.budgets
            if budget.percentile is not None
        )


def slo_rejections(slo: Slo, measured: Mapping[str, float]) -> tuple[Rejection, ...]:
    """Every budget that measured or simulated statistics miss, all of them; () where all are met.

    measured: milliseconds by name, the mean as "ttft_ms", a percentile as "ttft_ms_p99"; of inter-token latency under
    "tpot_ms" or "itl_ms", whichever is given under the budget's own key first. InvalidDescription naming every budget
    without its statistic: an unknown figure meets nothing.
    """
    missing = [budget.key for budget in slo.budgets if _value(budget, measured) is None]
    if missing:
        raise InvalidDescription(
            f"no statistic for the budgets {', '.join(missing)}", hint=f"given: {', '.join(sorted(measured)) or 'none'}"
        )
    values = ((budget, _value(budget, measured)) for budget in slo.budgets)
    return tuple(budget.miss(value) for budget, value in values if value is not None and value > budget.limit_ms)


def _budget(key: str, limit_ms: float) -> Budget:
    name, _, percentile = key.partition("_ms")
    metric = f"{name}_ms"
    return Budget(
        key=key,
        metric=SAME.get(metric, metric),  # type: ignore[arg-type]
        percentile=int(percentile[2:]) if percentile else None,
        limit_ms=limit_ms,
    )


def _value(budget: Budget, measured: Mapping[str, float]) -> float | None:
    found = measured.get(budget.key, measured.get(budget.statistic))
    if found is None and budget.metric == "tpot_ms":
        found = measured.get(budget.statistic.replace("tpot_ms", "itl_ms"))
    return found
