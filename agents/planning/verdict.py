"""From signals to a verdict: which class of work the window is lost to, the finer cause, and how sure that is.

Four groups compete, each a share of the window:
  compute        kernels limited by arithmetic, and kernels nobody could classify
  memory         kernels limited by HBM bandwidth, and exposed copies
  communication  collectives that no kernel hides (hidden ones cost nothing and score nothing)
  waiting        the device has nothing to do

Every rule that can change the class, in the order they are asked; all of them compare shares, none a time:
  1. Without device events there is no class: abstained.
  2. What limits a kernel. Where shapes show its work, the roofline of the chip does (`traces.work.placed`), or without
     one FLOP/byte below or above the ridges of all chips (`intensity`). Else its kind: matrix kernels by the rows they
     see (`kernel_limits`), pointwise ones HBM, unknown ones are compute.
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
  8. Capacity: a projected step that needs more memory than there is, a job stated to run out of it, a training run that
     fills it (`CLIFF_FRAC`) where nothing else explains its time, or one that shall run on fewer devices than the trace
     while its core waits without a reason, is class memory whatever the shares say (`capacity`, `layout_evidence`).
Abstained: the class is a convention, since the evidence that would decide it is missing.
"""

from dataclasses import dataclass

from agents.planning.cause import AXIS_CAUSE as AXIS_CAUSE
from agents.planning.cause import cause_of
from agents.planning.kernel_limits import Limiter, MatrixLimit, kind_limits, row_limit
from agents.planning.op_level import OpLevel
from agents.planning.op_verdict import Group, groups_of_rows, leading_group, row_doubts
from agents.planning.signals import Signals
from projector.specs.bottleneck import BOTTLENECK_OF, Bottleneck, Cause

AMBIGUOUS_MARGIN = 0.10
FEW_KERNELS = 20
CLIFF_FRAC = 0.98
"""Memory in use from which the allocator is the suspect: 79.7 of 80 GB in a public case that ran six times slower."""
ENOUGH_STEPS = 3  # marked steps that repeat show a steady state however few kernels they hold


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
    if _capacity_decides(signals, cause):
        cause, bottleneck = "hbm_capacity", "memory"
        scores = {**scores, "memory": 1.0 if signals.source == "modelled" else groups["waiting"]}
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


def _capacity_decides(signals: Signals, cause: Cause) -> bool:
    used = signals.memory_used_frac or 0.0
    if signals.source == "modelled":
        return used > 1.0
    return cause == "unknown" and signals.device and signals.phase == "training" and used >= CLIFF_FRAC


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
        limits = kind_limits(signals, kind, matrix, experts)
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


def _other(signals: Signals) -> float:
    """Share of kernels of unknown kind; those an operator table does not even identify are left out."""
    unidentified = signals.ops.share("unattributed") if signals.ops is not None else 0.0
    return max(0.0, signals.kinds.get("other", 0.0) - unidentified)


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
    if signals.ranks_disagree and cause not in ("imbalance", "pipeline_bubble"):
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
