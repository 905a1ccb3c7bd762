"""From signals to a verdict: which class of work the window is lost to, the finer cause, and how sure that is.

Four groups compete, each a share of the window:
  compute        kernels limited by arithmetic, and kernels nobody could classify
  memory         kernels limited by HBM bandwidth, and exposed copies
  communication  collectives that no kernel hides (hidden ones cost nothing and score nothing)
  waiting        the device has nothing to do
Waiting is reported in class compute (`BOTTLENECK_OF`), but never added to compute work: other levers relieve it.

Where the trace has an operator table whose rows state what bounds them (XLA profiles), these rows take the place of the
kinds of kernels (`op_verdict`). Operators that a profile does not identify never count as compute.

Where shapes show the work of kernels and the chip is known, the roofline says what limits them (`traces.work.placed`).
The other kernels are judged by their kind: matrix kernels by the rows they see, pointwise ones as limited by HBM.
"""

from dataclasses import dataclass
from typing import Literal

from agents.planning.idle_causes import cause_of_waiting
from agents.planning.op_level import OpLevel
from agents.planning.op_verdict import Group, groups_of_rows, leading_group, row_doubts
from agents.planning.signals import Signals
from agents.planning.work_evidence import limits_of
from projector.breakdown import Axis, OperatorKind
from projector.graph.columns import DTYPE_BYTES
from projector.specs.bottleneck import BOTTLENECK_OF, Bottleneck, Cause
from projector.specs.plan import ComputeDtype

Limiter = Literal["arithmetic", "hbm", "unresolved"]
Basis = Literal["roofline", "rows", "phase", "nothing"]

AMBIGUOUS_MARGIN = 0.10
FEW_KERNELS = 20
FEW_ROWS = 32  # below the ridge of every accelerator sold for this work: 75 to 600 FLOP/byte
FULL_MEMORY_FRAC = 0.95

MATRIX_KINDS: tuple[OperatorKind, ...] = ("gemm", "attention", "moe")
STREAMING_KINDS: tuple[OperatorKind, ...] = ("norm", "elementwise", "quantise", "embedding", "sampling", "optimizer")
AXIS_CAUSE: dict[Axis, Cause] = {
    "tp": "exposed_tp",
    "dp": "exposed_dp",
    "fsdp": "exposed_dp",
    "pp": "exposed_pp",
    "cp": "exposed_cp",
    "ep": "exposed_ep",
    "unknown": "exposed_communication",
}


@dataclass(frozen=True)
class MatrixLimit:
    """What limits matrix kernels of so many rows. intensity and ridge in FLOP/byte, only with basis "roofline"."""

    limiter: Limiter
    basis: Basis
    rows: float | None
    intensity_flop_per_byte: float | None = None
    ridge_flop_per_byte: float | None = None


@dataclass(frozen=True)
class Verdict:
    """groups: share of the window each group explains. doubts: why the verdict is ambiguous, as sentences.

    by_rows: whether the rows of an operator table stand in for the kinds of kernels.
    """

    bottleneck: Bottleneck
    cause: Cause
    hypothesis: Bottleneck
    scores: dict[Bottleneck, float]
    groups: dict[Group, float]
    margin: float
    matrix: MatrixLimit
    experts: MatrixLimit
    doubts: tuple[str, ...]
    by_rows: bool = False


def judge(signals: Signals) -> Verdict:
    """The verdict over operators and links, and beside it what the headline shares alone suggest."""
    matrix = row_limit(signals, signals.pass_tokens)
    experts = row_limit(signals, signals.expert_rows) if signals.expert_rows is not None else matrix
    groups, unresolved = _groups(signals, matrix, experts)
    scores: dict[Bottleneck, float] = {
        "compute": max(groups["compute"], groups["waiting"]),
        "memory": groups["memory"],
        "communication": groups["communication"],
    }
    headline = _headline(signals)
    leader = max(groups, key=lambda name: groups[name])
    if by_rows := _has_rows(signals):
        leader = leading_group(by_rows, groups, headline)
    cause = _cause(signals, groups, leader) if signals.device else "unknown"
    bottleneck = BOTTLENECK_OF[cause]
    if signals.source == "modelled" and (signals.memory_used_frac or 0.0) > 1.0:
        cause, bottleneck = "hbm_capacity", "memory"
        scores["memory"] = 1.0
    runner_up = max(score for name, score in scores.items() if name != bottleneck)
    margin = max(0.0, scores[bottleneck] - runner_up)
    doubts = _doubts(signals, groups, unresolved, margin, cause)
    if by_rows:
        doubts += row_doubts(by_rows, groups, leader, margin)
    return Verdict(
        bottleneck=bottleneck,
        cause=cause,
        hypothesis="compute" if headline == "waiting" else headline,
        scores=scores,
        groups=groups,
        margin=margin,
        matrix=matrix,
        experts=experts,
        doubts=tuple(doubts),
        by_rows=by_rows is not None,
    )


def _has_rows(signals: Signals) -> OpLevel | None:
    """The operator table, where its rows say what bounds them."""
    return signals.ops if signals.device and signals.ops is not None and signals.ops.resolved else None


def _groups(signals: Signals, matrix: MatrixLimit, experts: MatrixLimit) -> tuple[dict[Group, float], float]:
    """(share of the window each group explains, share in kernels that count as compute although nobody knows)."""
    if not signals.device:
        return {"compute": 0.0, "memory": 0.0, "communication": 0.0, "waiting": 0.0}, 0.0
    if by_rows := _has_rows(signals):
        return groups_of_rows(by_rows, signals.shares.idle), 0.0
    limited: dict[Limiter, float] = {"arithmetic": 0.0, "hbm": 0.0, "unresolved": 0.0}
    for kind, share in signals.kinds.items():
        share = _other(signals) if kind == "other" else share
        known = limits_of(signals.work, kind)
        limited["arithmetic"] += share * known.arithmetic
        limited["hbm"] += share * known.memory
        limited[_limiter_by_kind(kind, matrix, experts)] += share * known.open
    groups: dict[Group, float] = {
        "compute": limited["unresolved"] + limited["arithmetic"],
        "memory": signals.shares.exposed_copy + limited["hbm"],
        "communication": signals.shares.exposed_communication,
        "waiting": signals.shares.idle,
    }
    return groups, limited["unresolved"]


def matrix_limits_known(signals: Signals) -> bool:
    """Whether the roofline says what limits at least half of the time of matrix kernels, or there are none."""
    shares = [(signals.kinds.get(kind, 0.0), limits_of(signals.work, kind).open) for kind in MATRIX_KINDS]
    return sum(share * part for share, part in shares) <= 0.5 * sum(share for share, _ in shares)


def _limiter_by_kind(kind: OperatorKind, matrix: MatrixLimit, experts: MatrixLimit) -> Limiter:
    """What limits kernels whose work is not known: pointwise ones read and write, of unknown kinds nobody can say."""
    if kind in MATRIX_KINDS:
        return (experts if kind == "moe" else matrix).limiter
    return "hbm" if kind in STREAMING_KINDS else "unresolved"


def _other(signals: Signals) -> float:
    """Share of kernels of unknown kind; those an operator table does not even identify are left out."""
    unidentified = signals.ops.share("unattributed") if signals.ops is not None else 0.0
    return max(0.0, signals.kinds.get("other", 0.0) - unidentified)


def row_limit(signals: Signals, rows: float | None) -> MatrixLimit:
    """Whether matrix kernels of `rows` rows are limited by arithmetic or by reading their weights.

    A GEMM of T rows against weights of b bytes a value does 2 T FLOP for every b bytes it reads, so at most 2 T / b
    FLOP/byte (activations left out); below the chip's ridge, peak FLOP/s over HBM bytes/s, bandwidth limits it. Without
    the chip only very few rows decide, and without rows the phase does: training passes are long, and decode and
    prefill of serving cannot be told apart.
    """
    chip = signals.chip
    dtype: ComputeDtype = signals.dtype or "bf16"
    if rows is not None and chip is not None and dtype in chip.peak_flop_per_s:
        intensity = 2 * rows / DTYPE_BYTES[dtype]
        ridge = chip.peak_flop_per_s[dtype].value / chip.hbm_bytes_per_s.value
        return MatrixLimit("hbm" if intensity < ridge else "arithmetic", "roofline", rows, intensity, ridge)
    if rows is not None and rows <= FEW_ROWS:
        return MatrixLimit("hbm", "rows", rows)
    if signals.phase == "training":
        return MatrixLimit("arithmetic", "phase", rows)
    return MatrixLimit("unresolved", "nothing", rows)


def _headline(signals: Signals) -> Group:
    """What a reader of the headline alone would say: kernels, waiting, exposed communication, or exposed copies.

    The headline of a profile with KPIs is its duty cycle and its communication of every kind.
    """
    shares = signals.shares
    headline: dict[Group, float] = {
        "compute": shares.compute,
        "waiting": shares.idle,
        "communication": shares.exposed_communication,
        "memory": shares.exposed_copy,
    }
    kpis = signals.ops.kpis if signals.ops is not None else None
    if kpis is not None:
        headline["compute"] = kpis.duty_cycle_frac - kpis.communication_frac - shares.exposed_copy
        headline["waiting"] = 1 - kpis.duty_cycle_frac
        headline["communication"] = kpis.communication_frac
    return max(headline, key=lambda name: headline[name])


def _cause(signals: Signals, groups: dict[Group, float], leader: Group) -> Cause:
    if leader == "compute":
        return "compute_throughput"
    if leader == "memory":
        return "copies" if signals.shares.exposed_copy > groups["memory"] / 2 else "hbm_bandwidth"
    if leader == "communication":
        return _communication_cause(signals)
    return _waiting_cause(signals)


def _communication_cause(signals: Signals) -> Cause:
    exposed = signals.shares.exposed_communication
    if max(signals.skew, signals.waiting or 0.0) >= exposed / 2:
        return "imbalance"
    if signals.small_message_frac >= 0.5:
        return "latency_bound_collectives"
    by_cause: dict[Cause, float] = {}
    for axis, share in signals.axes_exposed.items():
        by_cause[AXIS_CAUSE[axis]] = by_cause.get(AXIS_CAUSE[axis], 0.0) + share
    if not by_cause:
        return "exposed_communication"
    leader = max(sorted(by_cause), key=lambda cause: by_cause[cause])
    return leader if by_cause[leader] >= exposed / 2 else "exposed_communication"


def _waiting_cause(signals: Signals) -> Cause:
    if signals.bubble is not None and signals.bubble >= signals.shares.idle / 2:
        return "pipeline_bubble"
    if signals.idle is not None:
        return cause_of_waiting(signals.idle, signals.stages)
    if signals.launch_bound_frac is None:
        # a core runs whole programs that are queued ahead: nothing in its profile says that the host was late
        return "unknown" if signals.ops is not None and signals.ops.kpis is not None else "host_idle"
    if signals.launch_bound_frac >= 0.5:
        return "launch_bound"
    # the kernels were queued in time and the device waited all the same: for another rank or another stream
    return "pipeline_bubble" if (signals.stages or 1) > 1 else "unknown"


def _doubts(signals: Signals, groups: dict[Group, float], unresolved: float, margin: float, cause: Cause) -> list[str]:
    if not signals.device:
        return ["no device event was recorded, so nothing is known about the accelerator's time"]
    doubts = []
    if margin < AMBIGUOUS_MARGIN:
        doubts.append(f"the lead over the runner-up is {margin * 100:.1f} points of the window, below 10")
    if signals.kernel_count is not None and signals.kernel_count < FEW_KERNELS:
        doubts.append(f"the window holds {signals.kernel_count} kernels; below {FEW_KERNELS} it shows no steady state")
    first, second = sorted(groups.values(), reverse=True)[:2]
    if margin >= AMBIGUOUS_MARGIN and first - second < AMBIGUOUS_MARGIN:
        doubts.append("arithmetic and waiting for work take about as much time; each needs another remedy")
    others = max(groups["communication"], groups["waiting"])
    if cause == "compute_throughput" and unresolved > 0:
        if groups["memory"] + unresolved > max(groups["compute"] - unresolved, others):
            doubts.append(
                f"{unresolved * 100:.1f} % of the window is in kernels whose limit is not known; "
                "if HBM bandwidth limits them the class is memory"
            )
    elif cause == "unknown" and signals.launch_bound_frac is None:
        doubts.append(
            "the device waits and the profile does not say for what: input, transfers, memory or other devices; none "
            "of the classes compute, memory and communication can be read off an idle device"
        )
    elif cause == "unknown":
        doubts.append("the device waits although its kernels were queued in time, and the trace does not say for what")
    return doubts
