"""The finer cause of a verdict: what the leading group of work is lost to."""

from agents.planning.idle_causes import HALF, cause_of_waiting
from agents.planning.op_verdict import Group
from agents.planning.signals import Signals
from projector.breakdown import Axis
from projector.specs.bottleneck import Cause

AXIS_CAUSE: dict[Axis, Cause] = {
    "tp": "exposed_tp",
    "dp": "exposed_dp",
    "fsdp": "exposed_dp",
    "pp": "exposed_pp",
    "cp": "exposed_cp",
    "ep": "exposed_ep",
    "unknown": "exposed_communication",
}


def cause_of(signals: Signals, groups: dict[Group, float], leader: Group) -> Cause:
    """The cause of the group that leads. Rows of a table may lead without a share of the window behind them."""
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
    if signals.ops is not None and signals.ops.share("host") >= signals.shares.idle:
        return "host_idle"
    if signals.idle is not None and signals.idle.launching < HALF and _waits_for_a_rank(signals):
        return "imbalance"
    if signals.idle is not None:
        return cause_of_waiting(signals.idle, signals.stages)
    if signals.launch_bound_frac is None:
        # a core runs whole programs that are queued ahead: nothing in its profile says that the host was late
        return "unknown" if signals.ops is not None and signals.ops.kpis is not None else "host_idle"
    if signals.launch_bound_frac >= 0.5:
        return "launch_bound"
    # the kernels were queued in time and the device waited all the same: for another rank or another stream
    return "pipeline_bubble" if (signals.stages or 1) > 1 else "unknown"


def _waits_for_a_rank(signals: Signals) -> bool:
    """Whether half of the idle time is what ranks compute less than the busiest one; stages take turns anyway."""
    return (signals.stages or 1) == 1 and signals.skew >= HALF * signals.shares.idle > 0
