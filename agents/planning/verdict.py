"""From signals to a verdict: which class of work the window is lost to, the finer cause, and how sure that is.

Four groups compete, each a share of the window:
  compute        kernels limited by arithmetic, and kernels nobody could classify
  memory         kernels limited by HBM bandwidth, and exposed copies
  communication  collectives that no kernel hides (hidden ones cost nothing and score nothing)
  waiting        the device has nothing to do

Every rule that can change the class, in the order they are asked; all of them compare shares, none a time:
  1. Without device events there is no class: abstained.
  2. What limits a kernel. Where shapes show its work and the chip is known, the roofline does (`traces.work.placed`);
     else its kind: matrix kernels by the rows they see (`row_limit`), pointwise ones HBM, unknown ones are compute.
  3. Where an operator table states what bounds its rows (XLA profiles), rows take the place of kinds. Rows that are not
     identified, opaque without a cost, or with figures above a peak decide nothing (`op_level`).
  4. A collective that uses a tenth of HBM bandwidth or more is memory, any other communication (`op_level`).
  5. The largest group leads. With rows: only if they take a twentieth of the step, else the headline decides, and idle
     time leads only where the headline says so or it outweighs all that no row explains (`op_verdict`).
  6. The cause of the leading group (`cause.py`) names the class: idle time by what is waited for, exposed communication
     by skew, message size and axis, memory by copies or bandwidth.
  7. Waiting is none of the three classes. By convention launches, host, input and bubbles are reported in class compute
     and waiting for ranks in communication (`BOTTLENECK_OF`); the cause says what it is. A core whose profile gives no
     reason to wait is reported in class memory, abstained: its programs are queued ahead, so no launch was late, and
     collectives are counted; what is left are transfers and data that do not lie in device memory.
  8. Capacity: a projected step that needs more memory than there is, a job stated to run out of it, or to fill it where
     nothing else explains its time (`capacity.py`), or that shall run on fewer devices than the trace while its core
     waits without a reason (`layout_evidence`), is class memory whatever the shares say.
Abstained: the class is a convention, since the evidence that would decide it is missing.
"""

from dataclasses import dataclass
from typing import Literal

from agents.planning.cause import AXIS_CAUSE as AXIS_CAUSE
from agents.planning.cause import cause_of
from agents.planning.op_level import OpLevel
from agents.planning.op_verdict import Group, groups_of_rows, leading_group, row_doubts
from agents.planning.signals import Signals
from agents.planning.work_evidence import limits_of
from projector.breakdown import OperatorKind
from projector.graph.columns import DTYPE_BYTES
from projector.specs.bottleneck import BOTTLENECK_OF, Bottleneck, Cause
from projector.specs.plan import ComputeDtype

Limiter = Literal["arithmetic", "hbm", "unresolved"]
Basis = Literal["roofline", "rows", "phase", "nothing"]

AMBIGUOUS_MARGIN = 0.10
FEW_KERNELS = 20
ENOUGH_STEPS = 3  # marked steps that repeat show a steady state however few kernels they hold
FEW_ROWS = 32  # below the ridge of every accelerator sold for this work: 75 to 600 FLOP/byte

MATRIX_KINDS: tuple[OperatorKind, ...] = ("gemm", "attention", "moe")
STREAMING_KINDS: tuple[OperatorKind, ...] = ("norm", "elementwise", "quantise", "embedding", "sampling", "optimizer")


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

    leader: the group that decides. headline: what the headline alone suggests. unresolved: share in kernels that count
    as compute although nobody knows what limits them. by_rows: whether the rows of an operator table stand in for the
    kinds of kernels. abstained: the evidence shows no class.
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
    leader: Group
    headline: Group
    unresolved: float
    abstained: bool
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
    cause = cause_of(signals, groups, leader) if signals.device else "unknown"
    bottleneck = BOTTLENECK_OF[cause]
    if cause == "unknown" and signals.device and signals.ops is not None and signals.ops.kpis is not None:
        bottleneck = "memory"
        scores = {**scores, "compute": groups["compute"], "memory": max(groups["memory"], groups["waiting"])}
    if signals.source == "modelled" and (signals.memory_used_frac or 0.0) > 1.0:
        cause, bottleneck = "hbm_capacity", "memory"
        scores["memory"] = 1.0
    runner_up = max(score for name, score in scores.items() if name != bottleneck)
    margin = max(0.0, scores[bottleneck] - runner_up)
    undecided = cause == "compute_throughput" and _could_be_memory(groups, unresolved)
    doubts = _doubts(signals, groups, unresolved if undecided else 0.0, margin, cause)
    if by_rows:
        doubts += row_doubts(by_rows, groups, leader, margin)
    return Verdict(
        bottleneck=bottleneck,
        cause=cause,
        # what the host did suggests nothing of a device
        hypothesis=_hypothesis(headline, leader, bottleneck) if signals.device else bottleneck,
        scores=scores,
        groups=groups,
        margin=margin,
        matrix=matrix,
        experts=experts,
        doubts=tuple(doubts),
        leader=leader,
        headline=headline,
        unresolved=unresolved,
        abstained=cause == "unknown" or undecided,
        by_rows=by_rows is not None,
    )


def _hypothesis(headline: Group, leader: Group, bottleneck: Bottleneck) -> Bottleneck:
    """The headline as a class. Waiting has none: where it leads as well, it is in the class the verdict gives it."""
    if headline == "waiting":
        return bottleneck if leader == "waiting" else "compute"
    return headline


def _could_be_memory(groups: dict[Group, float], unresolved: float) -> bool:
    """Whether kernels that count as compute for want of knowledge would make the class memory, were they HBM's."""
    others = max(groups["communication"], groups["waiting"])
    return unresolved > 0 and groups["memory"] + unresolved > max(groups["compute"] - unresolved, others)


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
        limits = _limits(signals, kind, matrix, experts)
        limited["arithmetic"] += share * limits.arithmetic
        limited["hbm"] += share * limits.memory
        limited["unresolved"] += share * limits.unresolved
    groups: dict[Group, float] = {
        "compute": limited["unresolved"] + limited["arithmetic"],
        "memory": signals.shares.exposed_copy + limited["hbm"],
        "communication": signals.shares.exposed_communication,
        "waiting": signals.shares.idle,
    }
    return groups, limited["unresolved"]


@dataclass(frozen=True)
class KindLimits:
    """Parts of the time of one kind by what limits it, summing to 1; basis: what says so."""

    arithmetic: float
    memory: float
    unresolved: float
    basis: str


def kind_limiters(signals: Signals, verdict: Verdict, kind: OperatorKind) -> KindLimits:
    """What limits the kernels of one kind, as the verdict took it."""
    return _limits(signals, kind, verdict.matrix, verdict.experts)


def _limits(signals: Signals, kind: OperatorKind, matrix: MatrixLimit, experts: MatrixLimit) -> KindLimits:
    """The roofline where the work is known, the kind for the rest."""
    known = limits_of(signals.work, kind)
    limiter = _limiter_by_kind(kind, matrix, experts)
    limit = experts if kind == "moe" else matrix
    by_kind = {
        "roofline": f"{limit.rows or 0:.0f} rows against the chip's ridge",
        "rows": f"{limit.rows or 0:.0f} rows: weights are read for few uses",
        "phase": "matrix kernels of training",
        "nothing": "neither rows of a pass nor a chip to compare with",
    }[limit.basis]
    if kind not in MATRIX_KINDS:
        by_kind = "pointwise kernels read and write" if limiter == "hbm" else "no rule says what they do"
    told = [f"roofline for {(1 - known.open) * 100:.0f} % of its time"] if known.open < 1 else []
    return KindLimits(
        arithmetic=known.arithmetic + (known.open if limiter == "arithmetic" else 0.0),
        memory=known.memory + (known.open if limiter == "hbm" else 0.0),
        unresolved=known.open if limiter == "unresolved" else 0.0,
        basis="; ".join([*told, by_kind] if known.open > 0.005 else told),
    )


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


def _doubts(signals: Signals, groups: dict[Group, float], unresolved: float, margin: float, cause: Cause) -> list[str]:
    if not signals.device:
        return ["no device event was recorded, so nothing is known about the accelerator's time"]
    doubts = []
    if margin < AMBIGUOUS_MARGIN:
        doubts.append(f"the lead over the runner-up is {margin * 100:.1f} points of the window, below 10")
    few = signals.kernel_count is not None and signals.kernel_count < FEW_KERNELS
    if few and signals.measured_steps < ENOUGH_STEPS:
        doubts.append(f"the window holds {signals.kernel_count} kernels; below {FEW_KERNELS} it shows no steady state")
    if signals.ranks_disagree:
        doubts.append("ranks disagree on what takes most of their time: the verdict is of their sum, not of any one")
    if signals.ops is not None and signals.ops.implausible > 0.01:
        doubts.append(
            f"{signals.ops.implausible * 100:.1f} % of the step is in operators with figures above a peak; their "
            "labels decide nothing"
        )
    first, second = sorted(groups.values(), reverse=True)[:2]
    if margin >= AMBIGUOUS_MARGIN and first - second < AMBIGUOUS_MARGIN:
        doubts.append("arithmetic and waiting for work take about as much time; each needs another remedy")
    if unresolved > 0:
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
