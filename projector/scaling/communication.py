"""Communication of each plan from the measured one: per flow, exposed and hidden, with a range."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from projector.breakdown import Axis, TimeBreakdown
from projector.scaling.term import RESOLUTION_S, Column, Degrees, Move, Term
from projector.scaling.traffic import FLOWS, Flow, spans, volumes
from projector.specs.hardware import HardwareProfile

# Exposed traffic of an axis the measured plan lacks, as a share of compute: assumed, with a wide range, never 0.
NEW_AXIS_SHARE: dict[Flow, tuple[float, float, float]] = {
    "tp": (0.03, 0.15, 0.60),
    "cp": (0.02, 0.10, 0.50),
    "data": (0.01, 0.08, 0.50),
    "pp": (0.005, 0.03, 0.20),
    "ep": (0.05, 0.25, 1.00),
}
SPREAD_A_DOUBLING = 0.20
UNKNOWN_LINK_RATIO = 20.0  # above every ratio of fabric to network in the catalogue (12 on A100, 18 on B200)
OVERLAP_SWITCHED_ON = (0.1, 0.5, 1.0)  # exposed time left once a flow is told to overlap: assumed
MEASURED_AS: dict[Flow, tuple[Axis, ...]] = {
    "tp": ("tp",), "cp": ("cp",), "data": ("dp", "fsdp"), "pp": ("pp",), "ep": ("ep",),
}  # fmt: skip
OVERLAP_FIELDS: dict[Flow, tuple[str, ...]] = {
    "data": ("overlap_grad_reduce", "overlap_param_gather"), "tp": ("overlap_tp",),
}  # fmt: skip


@dataclass(frozen=True)
class FlowTime:
    """Seconds of one flow: the exposed part with its range, and what stays hidden; columns of shape [n]."""

    exposed: Term
    hidden_s: Column


@dataclass(frozen=True)
class Measured:
    """Exposed and hidden seconds of one measured flow."""

    exposed_s: float
    hidden_s: float


@dataclass(frozen=True)
class Communication:
    """All flows of every plan; "unknown" is what the trace gave to no axis. `notes` with the plans they hold for."""

    flows: dict[Flow | Axis, FlowTime]
    notes: tuple[tuple[str, NDArray[np.bool_]], ...]

    @property
    def exposed(self) -> Term:
        """Exposed seconds over all flows."""
        terms = [flow.exposed for flow in self.flows.values()]
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    @property
    def hidden_s(self) -> Column:
        """Hidden seconds over all flows."""
        hidden: Column = np.sum([flow.hidden_s for flow in self.flows.values()], axis=0)
        return hidden


def scale_communication(
    move: Move, measured: TimeBreakdown, compute: Term, hardware: HardwareProfile | None
) -> Communication:
    """Every flow of the measured plan times its volume ratio; flows it lacks are assumed from compute.

    compute: compute seconds of each plan. Hidden time can hide under compute no longer than it did per second of it:
    exposed' = exposed * f + max(0, hidden * f - hidden * g), f the volume ratio, g the compute ratio.
    """
    found, unattributed = attribute(measured, move.before)
    ratio = (
        compute.estimate / measured.compute_s if measured.compute_s > RESOLUTION_S else np.ones(len(move.after.plans))
    )
    amounts = volumes(move)
    links = {flow: _link_factor(flow, move, hardware) for flow in FLOWS}
    flows: dict[Flow | Axis, FlowTime] = {}
    notes: list[tuple[str, NDArray[np.bool_]]] = []
    factors: list[Column] = []
    for flow in FLOWS:
        before, after = amounts[flow]
        if before[0] > 0:
            factor = _with_link(after / before[0], links[flow], move)
            factors.append(after / before[0])
            scaled = _scale(found[flow], factor, ratio)
            flows[flow] = _with_overlap_switch(flow, scaled, move)
            if found[flow].exposed_s + found[flow].hidden_s == 0 and unattributed.exposed_s == 0:
                notes.append((f"no {flow} traffic was seen in the trace: none is projected", after > 0))
        else:
            share = Term(*(np.where(after > 0, frac, 0.0) for frac in NEW_AXIS_SHARE[flow]))
            flows[flow] = FlowTime(share * compute, np.zeros(len(move.after.plans)))
            low, middle, high = NEW_AXIS_SHARE[flow]
            text = f"{flow} traffic does not occur in the measured plan: {middle:.0%} of compute is assumed"
            notes.append((f"{text} ({low:.1%} to {high:.0%})", after > 0))
    if unattributed.exposed_s + unattributed.hidden_s > 0:
        flows["unknown"] = _scale(unattributed, _unknown_factor(factors, move), ratio)
        text = "the trace does not say which axis part of the communication serves: scaled as the mean of its axes"
        notes.append((text, ~move.unchanged))
    for field in ("overlap_grad_reduce", "overlap_param_gather", "overlap_tp"):
        switched_on = move.changed(field) & np.asarray(move.after.plans.columns[field], dtype=bool)
        notes.append((f"how much traffic {field} hides is assumed (0 to 90 %, half)", switched_on))
    return Communication(flows, tuple(notes))


def axis_of(flow: Flow | Axis, degrees: Degrees) -> NDArray[np.str_]:
    """The name a breakdown gives a flow under each plan: data traffic is fsdp where weights are sharded, else dp."""
    if flow == "data":
        return np.where(degrees.shard > 1, "fsdp", "dp")
    return np.full(len(degrees.plans), flow)


def attribute(measured: TimeBreakdown, before: Degrees) -> tuple[dict[Flow, Measured], Measured]:
    """Measured seconds by flow, and what belongs to none; together exactly the totals of the breakdown.

    Axes overlap in time, so their sums can exceed the totals; they are then shrunk to them.
    """
    exposed: dict[Flow, float] = dict.fromkeys(FLOWS, 0.0)
    hidden: dict[Flow, float] = dict.fromkeys(FLOWS, 0.0)
    present = present_flows(before)
    for flow, axes in MEASURED_AS.items():
        if present[flow]:
            times = [time for time in measured.by_axis if time.axis in axes]
            exposed[flow] = sum(time.exposed_s for time in times)
            hidden[flow] = sum(max(time.total_s - time.exposed_s, 0.0) for time in times)
    shrink = _shrink(measured.exposed_communication_s, sum(exposed.values()))
    hide = _shrink(measured.overlapped_communication_s, sum(hidden.values()))
    found = {flow: Measured(exposed[flow] * shrink, hidden[flow] * hide) for flow in FLOWS}
    rest = Measured(
        max(0.0, measured.exposed_communication_s - sum(one.exposed_s for one in found.values())),
        max(0.0, measured.overlapped_communication_s - sum(one.hidden_s for one in found.values())),
    )
    only = [flow for flow in FLOWS if present[flow]]
    if len(only) == 1:
        one = found[only[0]]
        found[only[0]] = Measured(one.exposed_s + rest.exposed_s, one.hidden_s + rest.hidden_s)
        rest = Measured(0.0, 0.0)
    return found, rest


def present_flows(before: Degrees) -> dict[Flow, bool]:
    """Which flows the measured plan has."""
    serving = before.plans.phase[0] == "serving"
    data = before.attention_dp if serving else before.replicas
    sizes = {"tp": before.tp, "cp": before.cp, "data": data, "pp": before.pp, "ep": before.ep}
    return {flow: bool(sizes[flow][0] > 1) for flow in FLOWS}


def _shrink(total: float, parts: float) -> float:
    return min(1.0, total / parts) if parts > 0 else 1.0


def _link_factor(flow: Flow, move: Move, hardware: HardwareProfile | None) -> Term:
    """Price of moving between the links of a GPU cluster: up to the ratio of their rates, estimated as it.

    Where the chip file states no rate for one of the two, anything up to UNKNOWN_LINK_RATIO.
    """
    one = np.ones(len(move.after.plans))
    if hardware is None or hardware.intra.kind == "torus":
        return Term.exact(one)
    limits, rates = _tiers(hardware)
    before, after = (np.searchsorted(limits, spans(degrees)[flow]) for degrees in (move.before, move.after))
    ratio = rates[before] / rates[after]
    unknown = np.isnan(ratio) & (before != after)
    ratio = np.where(np.isnan(ratio), 1.0, ratio)
    known = Term(np.minimum(one, ratio), ratio, np.maximum(one, ratio))
    guessed = Term.between(one, np.where(after > before, UNKNOWN_LINK_RATIO, 1 / UNKNOWN_LINK_RATIO))
    return known.where(~unknown, guessed)


def _tiers(hardware: HardwareProfile) -> tuple[Column, Column]:
    """(devices a tier of links joins, its rate a chip or NaN): bridge where there is one, fabric, network."""
    domain = float(hardware.intra.max_domain_chips * hardware.devices_per_chip)
    tiers = [(domain, hardware.intra.bytes_per_s_one_way), (np.inf, hardware.inter.bytes_per_s_one_way)]
    if hardware.intra.bridge_bytes_per_s_one_way is not None:
        tiers.insert(0, (2.0 * hardware.devices_per_chip, hardware.intra.bridge_bytes_per_s_one_way))
    return (
        np.array([limit for limit, _ in tiers]),
        np.array([np.nan if figure is None else figure.value for _, figure in tiers]),
    )


def _with_link(volume: Column, link: Term, move: Move) -> Term:
    return link.times(volume).widened(SPREAD_A_DOUBLING * move.doublings)


def _scale(flow: Measured, factor: Term, compute_ratio: Column) -> FlowTime:
    def exposed(f: Column) -> Column:
        spill = np.maximum(0.0, flow.hidden_s * f - flow.hidden_s * compute_ratio)
        return np.asarray(flow.exposed_s * f + spill)

    estimate = exposed(factor.estimate)
    total = (flow.exposed_s + flow.hidden_s) * factor.estimate
    return FlowTime(Term(exposed(factor.low), estimate, exposed(factor.high)), np.maximum(total - estimate, 0.0))


def _with_overlap_switch(flow: Flow, time: FlowTime, move: Move) -> FlowTime:
    """Switched off: all of the flow is exposed. Switched on: part of it may be hidden, how much is assumed."""
    fields: Sequence[str] = OVERLAP_FIELDS.get(flow, ()) if not move.serving else ()
    for field in fields:
        changed, after = move.changed(field), np.asarray(move.after.plans.columns[field], dtype=bool)
        off, on = changed & ~after, changed & after
        whole = Term(time.exposed.low, time.exposed.estimate + time.hidden_s, time.exposed.high + time.hidden_s)
        kept = Term(*(time.exposed.estimate * frac for frac in OVERLAP_SWITCHED_ON))
        moved = time.exposed.estimate - kept.estimate
        exposed = whole.where(off, kept.where(on, time.exposed))
        hidden = np.where(off, 0.0, np.where(on, time.hidden_s + moved, time.hidden_s))
        time = FlowTime(exposed, hidden)
    return time


def _unknown_factor(factors: list[Column], move: Move) -> Term:
    if not factors:
        one = np.ones(len(move.after.plans))
        return Term(0.0 * one, one, 2.0 * one).where(~move.unchanged, Term.exact(one))
    stacked = np.stack(factors)
    return Term(stacked.min(axis=0), stacked.mean(axis=0), stacked.max(axis=0)).widened(
        SPREAD_A_DOUBLING * move.doublings
    )
