"""A measured serving point beside its own projection: what corrects projections of its engine's neighbours.

    TPOT' = TPOT r_t^h, TTFT' = TTFT r_f^h, or TTFT + d where a start is later by what no ratio explains
    latency' = TTFT' + (latency - TTFT) r_t^h
    rate' = rate latency / latency' e

r: measured over modelled at the point; h: how much of it a neighbour keeps, less the further its load, its lengths and
its layout are from the measured ones; d: seconds, kept by the same layout and lengths; e: measured rate over what the
measured latencies make of the load by Little's law (ramps, stragglers), kept whole.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from projector.anchor.limits import within
from projector.batch_projection import Assumption, IntervalRule, ProjectionBatch
from projector.breakdown_columns import BreakdownColumns
from projector.cost.overlap import AxisTimes
from projector.errors import InvalidDescription
from projector.graph.columns import Column, Switch
from projector.project_input import sizes
from projector.specs.plan import LAYOUT_FIELDS, ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.record import Record
from projector.specs.workload import WorkloadSpec

# Beyond these a figure is no measurement of what is modelled: 31 and 169 of 1,863 published points.
TPOT_RANGE, TTFT_RANGE = (0.4, 2.5), (0.2, 5.0)
# A start that is later than TTFT_RANGE allows by no more than this waits for something that is not modelled (pools that
# shake hands, answers streamed in blocks), as every request of the deployment does; beyond, for a queue of its load.
MOST_LATE_S = 5.0
# Share of a ratio's logarithm that is kept a doubling of the requests a device, with other lengths, on another layout.
# Chosen on the sweeps of 60 engines in a public dump of in-flight points (`shardwise eval anchor`), of seven sets that
# differ by less than a per cent of error but for TTFT on another layout.
TPOT_KEPT, TTFT_KEPT = (0.87, 0.8, 0.7), (0.85, 0.6, 0.4)
# what a point and its neighbours share; a ratio measured at one of these says nothing of another
SAME = (
    "weight_dtype", "compute_dtype", "kv_cache_dtype", "expert_dtype", "speculation", "speculative_tokens",
    "cuda_graphs", "cuda_graph_mode", "fused_kernels", "attention_backend", "quick_reduce", "tp_all_reduce",
)  # fmt: skip
NEAR_DOUBLINGS = 1.0
# 10th and 90th percentile of measured over corrected TPOT of the same points, by what differs from the measured one
LOAD, FAR_LOAD, LENGTHS, LAYOUT = "load", "far load", "lengths", "layout"
INTERVALS = {LOAD: (0.9, 1.12), FAR_LOAD: (0.84, 1.27), LENGTHS: (0.83, 1.25), LAYOUT: (0.81, 1.33)}
BASIS = "80 % of measured neighbours of a measured point had a TPOT within these factors of the corrected projection"


class MeasuredServing(Record):
    """Mean figures of one run: a plan under a load."""

    tpot_ms: float = Field(gt=0, description="mean time per output token after the first")
    ttft_ms: float | None = Field(None, gt=0, description="mean time to first token; None: not measured")
    output_tokens_per_s_per_chip: float | None = Field(None, gt=0, description="generated tokens; None: not measured")

    @model_validator(mode="after")
    def _a_rate_needs_both_latencies(self) -> Self:
        if self.output_tokens_per_s_per_chip is not None and self.ttft_ms is None:
            raise ValueError("output_tokens_per_s_per_chip says something beside ttft_ms alone")
        return self


@dataclass(frozen=True)
class ServingPoint:
    """The ratios of a measured point. ttft_ratio None: not measured, or implausible, as `told` says.

    late_s: seconds by which requests start later for a reason that is not modelled.
    rate_ratio: measured rate over the one that Little's law makes of the measured latencies, 1 where not measured.
    """

    plan: ParallelismPlan
    workload: WorkloadSpec
    tpot_ratio: float
    ttft_ratio: float | None
    rate_ratio: float
    late_s: float = 0.0
    told: tuple[str, ...] = ()


def serving_point(projected: ProjectionBatch, workload: WorkloadSpec, measured: MeasuredServing) -> ServingPoint:
    """The ratios of a plan that was measured; projected: that plan alone, under the workload it was measured with.

    InvalidDescription where the measured TPOT is no plausible measurement of the plan, the plan serves nothing, or the
    load is a rate of arrivals.
    """
    if workload.request_rate_per_s is not None:
        raise InvalidDescription(
            "a point measured at a rate of arrivals corrects nothing: its requests in flight are not known",
            hint="state the concurrency it was measured at",
        )
    one = projected[0]
    if one.tpot_s is None or one.ttft_s is None:
        raise InvalidDescription("the measured plan is projected not to hold one request: nothing to compare with")
    tpot_ratio, told = measured.tpot_ms / 1e3 / one.tpot_s, []
    if not within(tpot_ratio, TPOT_RANGE):
        raise InvalidDescription(
            f"the measured TPOT of {measured.tpot_ms:.4g} ms is {tpot_ratio:.3g} times the projected one: no plausible "
            "measurement of this plan",
            hint="state the plan, the chip and the load that were measured",
        )
    ttft_ratio, late_s = None, 0.0
    if measured.ttft_ms is not None:
        ttft_ratio, late_s = start(measured.ttft_ms / 1e3, one.ttft_s)
        if late_s > 0:
            told.append(f"requests start {late_s:.3g} s later than modelled: added with the same layout and lengths")
        elif ttft_ratio is None:
            told.append(
                f"a measured TTFT of {measured.ttft_ms / 1e3 / one.ttft_s:.3g} times the modelled is not carried"
            )
    rate = _rate_ratio(projected, measured)
    return ServingPoint(one.plan, workload, tpot_ratio, ttft_ratio, rate, late_s, tuple(told))


def start(measured_s: float, modelled_s: float) -> tuple[float | None, float]:
    """(measured over modelled TTFT, seconds by which it is late): one of the two where it is plausible, or neither."""
    if within(measured_s / modelled_s, TTFT_RANGE):
        return measured_s / modelled_s, 0.0
    late_s = measured_s - modelled_s
    return None, late_s if 0 < late_s <= MOST_LATE_S else 0.0


def _rate_ratio(projected: ProjectionBatch, measured: MeasuredServing) -> float:
    """Measured rate over requests in flight times their tokens over the measured latency."""
    rate, metrics = measured.output_tokens_per_s_per_chip, projected.metrics
    if rate is None or measured.ttft_ms is None:
        return 1.0
    assert metrics.request_latency_s is not None
    assert metrics.ttft_s is not None
    assert metrics.tpot_s is not None
    assert metrics.decode_tokens_per_s_per_chip is not None
    modelled_s = float(metrics.request_latency_s[0])
    later = (modelled_s - float(metrics.ttft_s[0])) / float(metrics.tpot_s[0])
    latency_s = (measured.ttft_ms + later * measured.tpot_ms) / 1e3
    return rate / (float(metrics.decode_tokens_per_s_per_chip[0]) * modelled_s / latency_s)


def anchored_serving(projected: ProjectionBatch, point: ServingPoint, workload: WorkloadSpec) -> ProjectionBatch:
    """The projections of other plans or loads of the same engine, corrected; what is no neighbour stays as modelled.

    A neighbour has the point's numerics, speculation and kernels (SAME), pools where it has pools, and a load as the
    point has one; chip, model and stack are the caller's to keep. Its interval follows from what differs.
    """
    metrics, batch = projected.metrics, projected.batch
    assert metrics.tpot_s is not None
    assert metrics.ttft_s is not None
    assert metrics.request_latency_s is not None
    near = Nearness.of(batch, point, workload)
    tpot = np.where(near.neighbour, point.tpot_ratio ** near.kept(TPOT_KEPT), 1.0)
    ttft_s = near.start_s(metrics.ttft_s, point.ttft_ratio, point.late_s)
    latency_s = ttft_s + tpot * (metrics.request_latency_s - metrics.ttft_s)
    rate = np.where(near.neighbour, point.rate_ratio, 1.0) * metrics.request_latency_s / latency_s
    breakdown = scaled(projected.breakdown, tpot)
    low, high = near.factors(projected.interval)
    figures = None
    if metrics.figures is not None:
        figures = _figures(metrics.figures, tpot, ttft_s / metrics.ttft_s, latency_s / metrics.request_latency_s, rate)
    corrected = replace(
        metrics,
        figures=figures,
        ttft_s=ttft_s,
        tpot_s=tpot * metrics.tpot_s,
        request_latency_s=latency_s,
        decode_tokens_per_s_per_chip=_times(metrics.decode_tokens_per_s_per_chip, rate),
        total_tokens_per_s_per_chip=_times(metrics.total_tokens_per_s_per_chip, rate),
    )
    return replace(
        projected,
        step_time_s=breakdown.total_s,
        breakdown=breakdown,
        metrics=corrected,
        interval=IntervalRule(low, high, BASIS),
        assumptions=(*projected.assumptions, *_said(point, near)),
    )


def scaled(breakdown: BreakdownColumns, factor: Column) -> BreakdownColumns:
    """Every term of a step times a factor a plan."""
    return BreakdownColumns.of(
        {kind: factor * seconds for kind, seconds in breakdown.by_kind.items()},
        {
            axis: AxisTimes(factor * times.total_s, factor * times.exposed_s)
            for axis, times in breakdown.by_axis.items()
        },
        idle_s=factor * breakdown.idle_s,
        bubble_s=factor * breakdown.bubble_s,
        exposed_copy_s=factor * breakdown.exposed_copy_s,
        host_s=_times(breakdown.host_s, factor),
    )


# Figures (`projector.specs.serving_objectives`) that go with a time a token, and those that go with the rate; against
# both where more is worse. Power, memory and what a prefill takes by itself stay as modelled.
BY_STEP = ("itl_ms", "decode_step_ms_pure", "decode_step_ms_mixed", "iteration_ms", "decode_comm_ms")
AGAINST_STEP = ("interactivity_tok_s_per_user", "per_request_decode_tps")
BY_RATE = (
    "decode_throughput_tps_per_gpu", "decode_throughput_tps", "total_throughput_tps_per_gpu", "total_throughput_tps",
    "mfu", "tflops_per_s_per_gpu",
)  # fmt: skip
AGAINST_RATE = (
    "cost_per_million_tokens", "cost_per_million_total_tokens", "joules_per_output_token", "joules_per_total_token",
)  # fmt: skip


def _figures(
    modelled: dict[str, Column], step: Column, first: Column, latency: Column, rate: Column
) -> dict[str, Column]:
    """Every figure with its factor: those of a step, of TTFT, of a whole request and of the rate."""
    factors = {
        **dict.fromkeys(BY_STEP, step),
        **dict.fromkeys(AGAINST_STEP, 1 / step),
        **dict.fromkeys(BY_RATE, rate),
        **dict.fromkeys(AGAINST_RATE, 1 / rate),
        "ttft_ms": first,
        "request_latency_ms": latency,
    }
    return {name: column * factors[name] if name in factors else column for name, column in modelled.items()}


@dataclass(frozen=True)
class Nearness:
    """How far plans are from the measured one (columns): doublings of the requests a device, whether lengths or layout
    differ (0 or 1); whether they are neighbours at all."""

    doublings: Column
    lengths: Column
    layout: Column
    neighbour: Switch

    @classmethod
    def of(cls, batch: PlanBatch, point: ServingPoint, workload: WorkloadSpec) -> "Nearness":
        """Loads are compared by requests in flight a device: those stated, or all seats."""
        mine = PlanBatch.from_plans([point.plan])
        load, its = _requests_a_device(batch, workload), _requests_a_device(mine, point.workload)
        lengths = sizes(workload, "input_len", "output_len") != sizes(point.workload, "input_len", "output_len")
        other = np.zeros(len(batch), dtype=np.bool_)
        for field in LAYOUT_FIELDS:
            other |= batch.columns[field] != getattr(point.plan, field)
        alike = (batch.prefill_replicas > 0) == (point.plan.prefill_replicas > 0)
        # what arrives at a rate is done at that rate, however long it takes
        alike &= workload.request_rate_per_s is None
        for field in SAME:
            alike &= batch.columns[field] == getattr(point.plan, field)
        return cls(np.abs(np.log2(load / its)), np.full(len(batch), float(lengths)), other.astype(np.float64), alike)

    @property
    def kind(self) -> NDArray[np.str_]:
        """What differs, the gravest first."""
        far = self.doublings > NEAR_DOUBLINGS * (1 + 1e-9)
        return np.select([self.layout > 0, self.lengths > 0, far], [LAYOUT, LENGTHS, FAR_LOAD], LOAD)

    def kept(self, shares: tuple[float, float, float]) -> Column:
        """The share of a ratio's logarithm that holds."""
        load, lengths, layout = shares
        kept: Column = load**self.doublings * lengths**self.lengths * layout**self.layout
        return kept

    def start_s(self, modelled_s: Column, ratio: float | None, late_s: float) -> Column:
        """The corrected TTFT."""
        kept = 1.0 if ratio is None else ratio ** self.kept(TTFT_KEPT)
        later = late_s * ((self.layout == 0) & (self.lengths == 0))
        return np.where(self.neighbour, kept * modelled_s + later, modelled_s)

    def factors(self, modelled: IntervalRule) -> tuple[Column, Column]:
        """The ends of the 80 % interval as factors of the corrected step."""
        kind = self.kind
        ends = [
            np.select([kind == name for name in INTERVALS], [its[end] for its in INTERVALS.values()]) for end in (0, 1)
        ]
        low = np.where(self.neighbour, ends[0], modelled.low_factor)
        return low, np.where(self.neighbour, ends[1], modelled.high_factor)


def _requests_a_device(batch: PlanBatch, workload: WorkloadSpec) -> Column:
    requests = batch.max_num_seqs * batch.replicas if workload.concurrency is None else workload.concurrency
    found: Column = requests / batch.devices
    return found


def _times(column: Column | None, factor: Column) -> Column | None:
    return None if column is None else column * factor


def _said(point: ServingPoint, near: Nearness) -> tuple[Assumption, ...]:
    first = "" if point.ttft_ratio is None else f", TTFT {point.ttft_ratio:.2f} times"
    return (
        Assumption(
            f"corrected by a measured point, whose TPOT was {point.tpot_ratio:.2f} times the modelled one{first}: "
            "kept in part, the less the further load, lengths and layout are",
            near.neighbour,
        ),
        Assumption(
            "no neighbour of the measured point (numerics, kernels, pools, arrivals): as modelled", ~near.neighbour
        ),
        *(Assumption(text) for text in point.told),
    )
