"""Evidence of an anchor: what was measured beside what is modelled, one line a ratio, with the ids projections name."""

from collections.abc import Iterator

from agents.findings import Evidence
from agents.wording import duration, percent
from projector.anchor.anchor import Anchor, ComputeRatio, FlowRatio, Parts
from projector.anchor.wording import FLOW_WORDS, PART_WORDS


def anchor_evidence(anchor: Anchor) -> tuple[Evidence, ...]:
    """The step, its parts where they are known, and the links."""
    step_s, alone = anchor.measured.total_s, duration(anchor.modelled_s)
    claim = (
        f"The measured step takes {duration(step_s)}, {anchor.ratio:.2f} x the {alone} that the model alone projects "
        "for the same plan."
    )
    parts = () if anchor.parts is None else tuple(_parts(anchor.parts, step_s))
    return (_evidence("step", claim, anchor.ratio, "summary.ranks[].steps[]"), *parts, *_links(anchor))


def _parts(parts: Parts, step_s: float) -> Iterator[Evidence]:
    for part in parts.compute:
        yield _compute(part, step_s)
    for flow in parts.flows:
        yield _flow(flow)
    idle = parts.idle
    pace = "; the host sets the pace" if idle.host_paced else ""
    claim = f"The device is idle for {duration(idle.measured_s)} a step, {duration(idle.modelled_s)} as modelled{pace}."
    yield _evidence("idle", claim, idle.measured_s / step_s, "summary.ranks[].step_idle")
    if parts.copy_s > 0:
        claim = f"Copies that nothing hides take {duration(parts.copy_s)} a step."
        yield _evidence("copies", claim, parts.copy_s / step_s, "summary.ranks[].steps[].exposed_copy_ns")


def _compute(one: ComputeRatio, step_s: float) -> Evidence:
    share = percent(one.measured_s / step_s)
    claim = f"Time of {PART_WORDS[one.part]} is {one.ratio:.2f} x the modelled ({share} of the step)."
    return _evidence(one.part, claim, one.ratio, "summary.kernel_classes")


def _flow(one: FlowRatio) -> Evidence:
    exposed, modelled = duration(one.measured_exposed_s), duration(one.modelled_exposed_s)
    all_of_it = "not modelled" if one.ratio is None else f"{one.ratio:.2f} x the modelled"
    claim = f"Of {FLOW_WORDS[one.flow]} {exposed} a step is exposed, {modelled} as modelled; all of it is {all_of_it}."
    return _evidence(one.flow, claim, one.ratio, "summary.collectives")


def _links(anchor: Anchor) -> Iterator[Evidence]:
    for link in anchor.links:
        claim = f"Links {link.tier} a domain reach {percent(link.ratio)} of the bandwidth they are projected with."
        yield _evidence(f"links-{link.tier}", claim, link.ratio, "summary.links")


def _evidence(name: str, claim: str, value: float | None, ref: str) -> Evidence:
    unit = "" if value is None else "fraction"
    return Evidence(id=f"ev-anchor-{name}", claim=claim, value=value, unit=unit, source="measured", ref=ref)
