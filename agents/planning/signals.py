"""Signals: what a diagnosis is drawn from, as shares of the window. A trace and a projection fill the same record.

Only ratios are kept: a trace with every time doubled gives the same signals, but for the rates of its kernels' work.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from agents.findings import Shares
from agents.planning.idle_causes import IdleCauses, idle_causes
from agents.planning.intensity import by_intensity
from agents.planning.match_model import match_trace
from agents.planning.op_level import OpLevel, op_level_of
from agents.planning.placing import chip_of
from agents.planning.rank_evidence import imbalance_share
from agents.planning.serving_phases import decoded_tokens, prefill_only
from projector.breakdown import Axis, MemoryBreakdown, OperatorKind, TimeBreakdown
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ComputeDtype, Phase
from traces.measure_types import ClassWork
from traces.summary_types import CollectiveTime, TimeShares, TraceSummary
from traces.work.placed import place_work

SMALL_MESSAGE_BYTES = 256 * 1024
# below this share of the window in marked steps, what lies between them is no part of the job's work
LEAST_STEP_COVER = 0.9
SHARE_NAMES = tuple(TimeShares.model_fields)


@dataclass(frozen=True)
class Signals:
    """Shares of the window (0 to 1) and the facts that decide how to read them. None: nobody knows.

    prefill_only: the recorded steps prefill prompts and decode nothing.
    pass_tokens: rows a matrix kernel sees; expert_rows: rows an expert sees on average.
    step_cover: share of the recorded window in measured steps, where the shares are of these steps only.
    waiting: what ranks wait for others inside collectives, where several were recorded and no slow link explains it.
    idle: why the device was idle, in the time the shares are of. bubble: idle part of the pipeline bubble.
    ops: what the operator table says, where the trace has one.
    work: work of the kernels beside the chip's roofline, beside any chip's where it is not known.
    noise_frac: how far the mean of the measured steps may be off, one standard error over it; None without several.
    ranks_disagree: whether what takes most of the time differs between ranks.
    measured_steps: complete steps of the rank with most of them.
    """

    source: Literal["measured", "modelled"]
    shares: Shares
    kinds: Mapping[OperatorKind, float]
    axes_exposed: Mapping[Axis, float]
    axes_total: Mapping[Axis, float]
    step_cover: float | None = None
    device: bool = True
    kernel_count: int | None = None
    launch_bound_frac: float | None = None
    idle: IdleCauses | None = None
    bubble: float | None = None
    skew: float = 0.0
    waiting: float | None = None
    small_message_frac: float = 0.0
    stages: int | None = None
    phase: Phase | None = None
    prefill_only: bool = False
    pass_tokens: int | None = None
    expert_rows: float | None = None
    dtype: ComputeDtype | None = None
    chip: HardwareProfile | None = None
    chip_name: str | None = None
    memory_used_frac: float | None = None
    ops: OpLevel | None = None
    work: tuple[ClassWork, ...] = ()
    noise_frac: float | None = None
    ranks_disagree: bool = False
    measured_steps: int = 0


def signals_of_trace(summary: TraceSummary) -> Signals:
    """Signals of a measured window, or of its measured steps where they cover less than nine tenths of it or others
    were left out (warm-up, cut off).

    Kernel sums are scaled to the union they cover, so shares add up; kinds and axes are those of the whole window.
    """
    implied = summary.implied
    chip_name = implied.chip_name.value if implied.chip_name else None
    chip = chip_of(summary)
    hbm_bytes = float(implied.hbm_bytes.value) if implied.hbm_bytes else None
    times, step_cover = _diagnosed_times(summary)
    shares = _shares_of(times)
    exposed = _split_by_axis(summary.collectives, "exposed_ns", shares.exposed_communication)
    everything = shares.exposed_communication + shares.hidden_communication
    high_waters = [rank.memory_high_water_bytes for rank in summary.ranks if rank.memory_high_water_bytes is not None]
    return Signals(
        source="measured",
        shares=shares,
        kinds=_kinds_of_trace(summary, shares.compute),
        axes_exposed=exposed,
        axes_total=_split_by_axis(summary.collectives, "total_ns", everything),
        step_cover=step_cover,
        device=summary.window.device,
        kernel_count=sum(rank.kernel_count for rank in summary.ranks),
        launch_bound_frac=summary.launch_bound_frac,
        idle=idle_causes(summary, of_steps=step_cover is not None),
        bubble=_bubble(summary),
        skew=_skew(summary),
        waiting=imbalance_share(summary, chip),
        small_message_frac=_small_message_frac(summary.collectives),
        stages=implied.pp.value if implied.pp else None,
        phase=implied.phase.value if implied.phase else None,
        prefill_only=prefill_only(summary.serving_phases),
        pass_tokens=_pass_tokens(summary),
        expert_rows=_expert_rows(summary),
        dtype=implied.dtype.value if implied.dtype else None,
        chip=chip,
        chip_name=chip_name,
        memory_used_frac=max(high_waters) / hbm_bytes if high_waters and hbm_bytes else None,
        ops=op_level_of(summary, shares.exposed_communication / everything if everything else 1.0),
        work=place_work(summary, chip).work if chip is not None else tuple(map(by_intensity, summary.work)),
        noise_frac=_noise(summary),
        measured_steps=max((sum(step.role == "measured" for step in rank.steps) for rank in summary.ranks), default=0),
        ranks_disagree=len({leading for rank in summary.ranks if (leading := _leading(rank))}) > 1,
    )


def _noise(summary: TraceSummary) -> float | None:
    """Largest over the ranks of deviation / (mean sqrt(steps))."""
    told = [rank.step_statistics for rank in summary.ranks if rank.step_statistics is not None]
    errors = [
        one.deviation_ns / one.mean_ns / one.measured**0.5 for one in told if one.deviation_ns and one.mean_ns > 0
    ]
    return max(errors, default=None)


def _leading(rank: TimeShares) -> str | None:
    """What takes most of a rank's window; None of an empty one."""
    parts = ("compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns")
    return max(parts, key=lambda name: getattr(rank, name)) if rank.window_ns else None


def signals_of_breakdown(
    breakdown: TimeBreakdown,
    *,
    phase: Phase,
    pass_tokens: int | None,
    expert_rows: float | None,
    dtype: ComputeDtype | None,
    chip: HardwareProfile | None,
    memory: MemoryBreakdown | None,
) -> Signals:
    """Signals of a projected step."""
    total = breakdown.total_s or 1.0
    kinds: dict[OperatorKind, float] = defaultdict(float)
    for entry in breakdown.by_kind:
        kinds[entry.kind] += entry.time_s / total
    listed = sum(kinds.values())
    compute = breakdown.compute_s / total
    if listed > 0:
        kinds = {kind: share * compute / listed for kind, share in kinds.items()}
    exposed: dict[Axis, float] = defaultdict(float)
    everything: dict[Axis, float] = defaultdict(float)
    for axis_time in breakdown.by_axis:
        exposed[axis_time.axis] += axis_time.exposed_s / total
        everything[axis_time.axis] += axis_time.total_s / total
    return Signals(
        source="modelled",
        shares=Shares(
            compute=compute,
            exposed_communication=breakdown.exposed_communication_s / total,
            exposed_copy=breakdown.exposed_copy_s / total,
            idle=breakdown.idle_s / total if breakdown.total_s else 1.0,
            hidden_communication=breakdown.overlapped_communication_s / total,
            unclassified=0.0,
        ),
        kinds=dict(kinds) or ({"other": compute} if compute else {}),
        axes_exposed=dict(exposed),
        axes_total=dict(everything),
        bubble=None if breakdown.bubble_s is None else breakdown.bubble_s / total,
        phase=phase,
        pass_tokens=pass_tokens,
        expert_rows=expert_rows,
        dtype=dtype,
        chip=chip,
        chip_name=chip.id if chip else None,
        memory_used_frac=memory.total_bytes / memory.capacity_bytes if memory else None,
    )


def _pass_tokens(summary: TraceSummary) -> int | None:
    """Tokens of one forward pass: as the shapes show, else those of a decode step where every step only decodes."""
    if summary.implied.shapes.tokens is not None:
        return summary.implied.shapes.tokens
    return decoded_tokens(summary.serving_phases)


def _expert_rows(summary: TraceSummary) -> float | None:
    """Rows one expert sees in a pass, tokens * experts a token / experts; None without a known mixture of experts."""
    tokens = _pass_tokens(summary)
    match, _ = match_trace(summary)
    if tokens is None or match is None or not match.architecture.is_moe:
        return None
    return tokens * match.architecture.experts_per_token / match.architecture.experts


def _bubble(summary: TraceSummary) -> float | None:
    """Idle part of the pipeline bubble as a share of the measured steps; None unless every rank shows one."""
    bubbles = [rank.bubble for rank in summary.ranks if rank.bubble is not None]
    if not bubbles or len(bubbles) < len(summary.ranks):
        return None
    return sum(bubble.idle_ns for bubble in bubbles) / sum(bubble.window_ns for bubble in bubbles)


def _diagnosed_times(summary: TraceSummary) -> tuple[dict[str, int], float | None]:
    """Nanoseconds of the window, or of its measured steps and the share of the window these cover."""
    marked = [step for rank in summary.ranks for step in rank.steps]
    steps = [step for step in marked if step.role == "measured"]
    stepped_ns = sum(step.window_ns for step in steps)
    partly = stepped_ns < LEAST_STEP_COVER * summary.window_ns or len(steps) < len(marked)
    if summary.window.device and stepped_ns and partly:
        times = {name: sum(getattr(step, name) for step in steps) for name in SHARE_NAMES}
        return times, stepped_ns / summary.window_ns
    return {name: getattr(summary, name) for name in SHARE_NAMES}, None


def _shares_of(times: Mapping[str, int]) -> Shares:
    window = times["window_ns"]
    if window == 0:
        return Shares(
            compute=0, exposed_communication=0, exposed_copy=0, idle=1, hidden_communication=0, unclassified=0
        )
    return Shares(
        compute=times["compute_ns"] / window,
        exposed_communication=times["exposed_communication_ns"] / window,
        exposed_copy=times["exposed_copy_ns"] / window,
        idle=times["idle_ns"] / window,
        hidden_communication=(times["communication_ns"] - times["exposed_communication_ns"]) / window,
        unclassified=times["unclassified_ns"] / window,
    )


def _kinds_of_trace(summary: TraceSummary, compute_share: float) -> dict[OperatorKind, float]:
    totals: dict[OperatorKind, int] = defaultdict(int)
    for entry in summary.kernel_classes:
        totals[entry.kind] += entry.total_ns
    whole = sum(totals.values())
    if whole == 0:
        return {"other": compute_share} if compute_share > 0 else {}
    return {kind: compute_share * (total / whole) for kind, total in totals.items()}


def _split_by_axis(
    collectives: tuple[CollectiveTime, ...], field: Literal["exposed_ns", "total_ns"], share: float
) -> dict[Axis, float]:
    """`share` split over the axes in proportion to the collectives' own times (which may overlap one another)."""
    totals: dict[Axis, int] = defaultdict(int)
    for entry in collectives:
        totals[entry.axis] += getattr(entry, field)
    whole = sum(totals.values())
    if whole == 0:
        return {"unknown": share} if share > 0 else {}
    return {axis: share * (total / whole) for axis, total in totals.items()}


def _skew(summary: TraceSummary) -> float:
    """Mean share of the window a rank computes less than the busiest rank: it waits for that one in collectives."""
    computes = [rank.compute_ns / rank.window_ns for rank in summary.ranks if rank.window_ns]
    return max(computes) - sum(computes) / len(computes) if len(computes) > 1 else 0.0


def _small_message_frac(collectives: tuple[CollectiveTime, ...]) -> float:
    """Share of exposed collective time in messages too small to fill a link; only stated sizes count as small."""
    whole = sum(entry.exposed_ns for entry in collectives)
    small = sum(
        entry.exposed_ns
        for entry in collectives
        if entry.message_bytes is not None and entry.count and entry.message_bytes / entry.count < SMALL_MESSAGE_BYTES
    )
    return small / whole if whole else 0.0
