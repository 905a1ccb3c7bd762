"""What a simulation says: percentiles of what requests saw, throughput, goodput, what engines were doing."""

from math import fsum

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from projector.simulation.fleet import Routing
from projector.specs.record import Record
from projector.specs.rejection import Rejection
from projector.specs.slo import Slo, slo_rejections
from projector.units import s_to_ms

# An open loop whose engines finish less than this share of what arrives is not in a steady state.
KEEPS_UP_FRAC = 0.9


class Quantiles(Record):
    """Mean and percentiles over requests, or over gaps between tokens."""

    mean_s: float
    p50_s: float
    p90_s: float
    p99_s: float


class SimulationResult(Record):
    """One simulated plan. Times in seconds, of the requests that finished after the warm-up.

    A percentile is the smallest value that at least this share of the sample does not pass.
    """

    requests: int = Field(description="requests the figures are of")
    warmup_requests: int = Field(description="requests that finished before and are in no figure")
    refused_requests: int = Field(description="requests that fit no engine's KV pool even alone, in no other figure")
    seed: int
    routing: Routing
    simulated_s: float = Field(description="simulated time the figures are of")
    ttft: Quantiles = Field(description="time to first token, queueing included")
    tpot: Quantiles | None = Field(description="time per token after the first; None: no request has a second token")
    itl: Quantiles | None = Field(description="gaps between tokens as they are sent, each gap one sample")
    request_latency: Quantiles = Field(description="end to end")
    queue: Quantiles = Field(description="from arrival at the engine to the first step that works on the prompt")
    offered_requests_per_s: float = Field(description="requests that arrived a second")
    requests_per_s: float = Field(description="requests that finished a second")
    output_tokens_per_s: float = Field(description="generated tokens of finished requests a second, whole fleet")
    output_tokens_per_s_per_chip: float
    saturated: bool = Field(
        description="an open loop whose engines finish less than 0.9 of what arrives: queues grow without bound and "
        "every latency depends on how many requests were simulated"
    )
    slo_met_frac: float | None = Field(description="share of requests that meet every budget; None: no budget")
    goodput_requests_per_s: float | None = Field(description="requests that meet every budget a second (DistServe)")
    slo_misses: tuple[Rejection, ...] = Field((), description="budgets the figures above miss")
    kv_peak_frac: float = Field(description="largest share of a KV pool in use")
    preemptions: int = Field(description="times a request gave its KV blocks back and was computed anew, warm-up too")
    batch_size_mean: float = Field(description="requests an attention rank decodes in a step, mean over steps")
    mixed_step_frac: float = Field(description="share of steps that carry prefill")
    prefix_hit_frac: float = Field(description="share of prompt tokens that were at hand")
    assumptions: tuple[str, ...] = ()


def quantiles(values: NDArray[np.float64], counts: NDArray[np.float64] | None = None) -> Quantiles | None:
    """Of a sample, each value so many times (None: once); None of an empty one."""
    if len(values) == 0:
        return None
    weights = np.ones_like(values) if counts is None else counts
    order = np.argsort(values, kind="stable")
    summed = np.cumsum(weights[order])
    # a whole number of values may sum to a hair less than it
    places = np.searchsorted(summed, np.array([0.5, 0.9, 0.99]) * summed[-1] * (1 - 1e-12))
    p50, p90, p99 = values[order][places].tolist()
    return Quantiles(mean_s=fsum((values * weights).tolist()) / fsum(weights.tolist()), p50_s=p50, p90_s=p90, p99_s=p99)


def met(
    slo: Slo, ttft_s: NDArray[np.float64], tpot_s: NDArray[np.float64], latency_s: NDArray[np.float64]
) -> float | None:
    """Share of requests that meet every budget by their own figures; None without a budget.

    Of several budgets of one metric that of the mean counts, else that of the highest percentile: what a request is to
    have. A request of one token has a TPOT of 0, as it has none to miss.
    """
    limits: dict[str, float] = {}
    for budget in sorted(slo.budgets, key=lambda one: one.percentile or 100):
        limits[budget.metric] = budget.limit_ms
    if not limits:
        return None
    seconds = {"ttft_ms": ttft_s, "tpot_ms": tpot_s, "request_latency_ms": latency_s}
    good = np.ones(len(ttft_s), dtype=np.bool_)
    for metric, limit_ms in limits.items():
        good &= ~(s_to_ms(1.0) * seconds[metric] > limit_ms)
    return float(good.mean())


def misses(
    slo: Slo, ttft: Quantiles, tpot: Quantiles | None, itl: Quantiles | None, latency: Quantiles
) -> tuple[Rejection, ...]:
    """Budgets that the means and percentiles miss. InvalidDescription for one of tokens where there is one token."""
    figures = {"ttft_ms": ttft, "tpot_ms": tpot, "itl_ms": itl, "request_latency_ms": latency}
    measured: dict[str, float] = {}
    for name, one in figures.items():
        if one is not None:
            by_share = {"": one.mean_s, "_p50": one.p50_s, "_p90": one.p90_s, "_p99": one.p99_s}
            measured |= {f"{name}{suffix}": s_to_ms(value) for suffix, value in by_share.items()}
    return slo_rejections(slo, measured)
