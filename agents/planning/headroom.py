"""Headroom: the most the step could get shorter if one thing were relieved wholly. A bound, never a forecast.

    new step >= (1 - g) * step,   g the share of the window that the thing alone takes

Hidden communication has none. Time whose limit nobody knows could belong to any class of kernel, so it is counted in
the bound of each. A bound not above the noise of a step is zero: nobody could tell such a gain from chance.
"""

from typing import Final

from agents.causes import CAUSE_PHRASE
from agents.diagnosis_parts import Headroom
from agents.planning.capacity import NO_BOUND
from agents.planning.op_verdict import Group, undecided_of
from agents.planning.signals import Signals
from agents.planning.verdict import AXIS_CAUSE, Verdict
from agents.wording import percent
from projector.specs.bottleneck import Bottleneck, Cause

# the same configuration in consecutive releases of one stack differs by a median of 1.9 % (published training rows)
NOISE_FRAC: Final = 0.02
GROUPS: Final[tuple[Group, ...]] = ("compute", "memory", "communication", "waiting")
CLASS_BASIS: Final[dict[Group, str]] = {
    "compute": "share in kernels that arithmetic limits, were it free",
    "memory": "share in kernels that HBM limits and in exposed copies, were they free",
    "communication": "share in communication that no kernel hides, were it free; hidden communication has no headroom",
    "waiting": "share in which the device is idle, did it never wait",
}


def headroom_of(signals: Signals, verdict: Verdict) -> tuple[Headroom, ...]:
    """Bounds for each class, idle time apart, then for the cause, then for kernels brought to the roofline."""
    if not signals.device:
        return ()
    classes = [_of_group(name, signals, verdict) for name in GROUPS]
    kernels = [_to_the_roofline(signals, name) for name in ("compute", "memory")] if signals.work else []
    return (*classes, _of_cause(signals, verdict), *(one for one in kernels if one is not None))


def _of_group(group: Group, signals: Signals, verdict: Verdict) -> Headroom:
    extra = _open_share(group, signals, verdict)
    basis = CLASS_BASIS[group]
    if extra >= NOISE_FRAC:
        basis += f"; {percent(verdict.groups[group])} is seen, {percent(extra)} more has no known limit and may belong"
    return _bound("class", group, verdict.groups[group] + extra, basis, signals)


def _open_share(group: Group, signals: Signals, verdict: Verdict) -> float:
    """Share of the window that may belong to the group beside what is seen. Unknown kernels are compute already."""
    if group == "waiting":
        return 0.0
    if verdict.by_rows and signals.ops is not None:
        return undecided_of(signals.ops)
    return verdict.unresolved if group == "memory" else 0.0


def _of_cause(signals: Signals, verdict: Verdict) -> Headroom:
    cause, phrase = verdict.cause, CAUSE_PHRASE[verdict.cause]
    if cause == "hbm_capacity":
        return NO_BOUND
    if cause == "unknown":
        basis = "what the device waits for is not known, so neither is what relieves it"
        return _bound("cause", cause, verdict.groups["waiting"], basis, signals)
    if verdict.by_rows and verdict.leader != "waiting" and cause != "copies":
        # rows know no axis and no direction: the cause is bounded as its class is
        return _of_group(verdict.leader, signals, verdict).model_copy(update={"scope": "cause", "name": cause})
    return _bound("cause", cause, _cause_share(signals, verdict), f"share of {phrase}, were it gone", signals)


def _cause_share(signals: Signals, verdict: Verdict) -> float:
    shares, idle, cause = signals.shares, signals.idle, verdict.cause
    if verdict.by_rows and verdict.leader == "waiting":
        return verdict.groups["waiting"]
    if cause == "copies":
        return shares.exposed_copy
    if cause == "hbm_bandwidth":
        return max(0.0, verdict.groups["memory"] - shares.exposed_copy)
    if cause == "compute_throughput":
        return verdict.groups["compute"]
    if cause == "pipeline_bubble" and signals.bubble is not None:
        return min(signals.bubble, shares.idle) + signals.axes_exposed.get("pp", 0.0)
    if cause == "imbalance" and verdict.leader == "communication":
        return min(shares.exposed_communication, max(signals.skew, signals.waiting or 0.0))
    if cause == "imbalance":
        return min(shares.idle, signals.skew)
    if cause == "launch_bound" and idle is not None:
        return shares.idle * idle.launching
    if cause == "host_idle" and idle is not None and idle.apart > 0:
        return shares.idle * idle.apart
    if cause in ("launch_bound", "host_idle", "pipeline_bubble"):
        return shares.idle
    if cause == "latency_bound_collectives":
        return shares.exposed_communication * signals.small_message_frac
    by_axis = sum(share for axis, share in signals.axes_exposed.items() if AXIS_CAUSE[axis] == cause)
    return (
        by_axis
        if cause.startswith("exposed_") and cause != "exposed_communication"
        else verdict.groups["communication"]
    )


def _to_the_roofline(signals: Signals, name: Bottleneck) -> Headroom | None:
    """Kernels of known work at the chip's datasheet peak: share * (1 - part of the peak they reach), summed."""
    gain, told = 0.0, 0.0
    bound = "compute" if name == "compute" else "memory"
    for one in signals.work:
        frac = one.peak_flop_frac if bound == "compute" else one.peak_bytes_frac
        if one.bound != bound or frac is None or one.implausible or not one.total_ns:
            continue
        share = signals.kinds.get(one.kind, 0.0) * (one.known_ns / one.total_ns)
        told += share
        gain += share * max(0.0, 1 - frac)
    if told < NOISE_FRAC:
        return None
    words = "arithmetic" if name == "compute" else "HBM"
    basis = f"kernels of known work that {words} limits ({percent(told)}), at the datasheet peak; the rest unchanged"
    return _bound("kernels", name, gain, basis, signals)


def _bound(scope: str, name: Group | Cause, share: float, basis: str, signals: Signals) -> Headroom:
    share = min(1.0, max(0.0, share))
    noise = max(NOISE_FRAC, signals.noise_frac or 0.0)
    below = share <= noise
    if below:
        inequality = f"{percent(share)} <= {percent(noise)} of noise: no gain could be told from chance"
    else:
        inequality = f"new step >= {1 - share:.3f} of the present one"
    return Headroom.model_validate(
        {
            "scope": scope,
            "name": name,
            "gain_frac": 0.0 if below else share,
            "below_noise": below,
            "inequality": inequality,
            "basis": basis,
        }
    )
