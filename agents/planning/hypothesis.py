"""The hypothesis of the headline figures, and the evidence that overturns it."""

from agents.planning.op_verdict import Group
from agents.planning.signals import Signals
from agents.planning.verdict import Verdict
from agents.wording import percent, quoted
from projector.specs.bottleneck import Bottleneck

_HEADLINE: dict[Group, str] = {
    "compute": "the device computes",
    "memory": "copies lead",
    "communication": "communication leads",
    "waiting": "the device waits",
}


def hypothesis_basis(signals: Signals, verdict: Verdict) -> str:
    """The headline figures and what they suggest, as one sentence; an all-reduce share that leaves others out is said
    to be incomplete.
    """
    if not signals.device:
        return ""
    suggests = f"the headline alone says that {_HEADLINE[verdict.headline]}"
    kpis = signals.ops.kpis if signals.ops is not None else None
    if kpis is None:
        shares = signals.shares
        return (
            f"Kernels {percent(shares.compute)}, exposed communication {percent(shares.exposed_communication)}, "
            f"exposed copies {percent(shares.exposed_copy)}, idle {percent(shares.idle)}: {suggests}."
        )
    partial = f"plain all-reduce {percent(kpis.all_reduce_only_frac)} of the step"
    if kpis.all_reduce_only_incomplete:
        partial += f" (incomplete: every kind together takes {percent(kpis.communication_frac)})"
    return f"Duty cycle {percent(kpis.duty_cycle_frac)}, {partial}: {suggests}."


def overturned_by(signals: Signals, verdict: Verdict) -> str:
    """The evidence that decides against the headline, as one sentence; '' where the hypothesis stands."""
    if verdict.hypothesis == verdict.bottleneck:
        return ""
    if verdict.cause == "hbm_capacity":
        return f"The plan needs {percent(signals.memory_used_frac or 0.0)} of the device memory: it cannot run."
    before: Group = "waiting" if verdict.headline == "waiting" else verdict.hypothesis
    after, against = verdict.groups[verdict.leader], verdict.groups[before]
    if verdict.by_rows and signals.ops is not None:
        return _by_rows(signals, verdict, before)
    words = _KERNELS[verdict.bottleneck]
    return (
        f"{words} take {percent(after)} of the time, {_KERNELS_OF[before]} {percent(against)}"
        f"{_costliest_kinds(signals, verdict)}."
    )


_KERNELS: dict[Bottleneck, str] = {
    "compute": "Kernels that arithmetic limits, or whose limit nobody knows,",
    "memory": "Kernels that HBM limits and exposed copies",
    "communication": "Collectives that no kernel hides",
}
_KERNELS_OF: dict[Group, str] = {
    "compute": "those that arithmetic limits",
    "memory": "those that HBM limits and exposed copies",
    "communication": "communication that no kernel hides",
    "waiting": "idle time",
}


def _costliest_kinds(signals: Signals, verdict: Verdict) -> str:
    if verdict.bottleneck == "communication":
        return ""
    first = sorted(signals.kinds.items(), key=lambda item: (-item[1], item[0]))[:2]
    told = [f"{kind} {percent(share)}" for kind, share in first if share > 0]
    return f" (costliest kinds: {', '.join(told)})" if told else ""


def _by_rows(signals: Signals, verdict: Verdict, before: Group) -> str:
    limits = signals.ops.limits if signals.ops is not None else {}
    keys = {"compute": "arithmetic", "memory": "memory", "communication": "communication"}
    group = next((limits[name] for name in limits if name == keys.get(verdict.leader)), None)
    costliest = f", the costliest '{quoted(group.costliest.name)}'" if group is not None else ""
    return (
        f"Of what is identified, {_ROWS[verdict.leader]} take {percent(verdict.groups[verdict.leader])} of the step"
        f"{costliest}, {_ROWS[before]} {percent(verdict.groups[before])}."
    )


_ROWS: dict[Group, str] = {
    "compute": "operators bound by the core",
    "memory": "operators that HBM limits",
    "communication": "collectives that wait for links or peers",
    "waiting": "idle time and waits for the host",
}
