"""What a corrected projection says of its corrections: a line a ratio, with the id of its evidence."""

from projector.anchor.anchor import Anchor, ComputeRatio, FlowRatio
from projector.anchor.transport import FLOW_AXES, Transport
from projector.breakdown import Axis

PART_WORDS = {
    "gemm": "matrix products",
    "moe": "expert kernels",
    "attention": "attention",
    "other": "the other kernels",
    "compute": "compute",
}
FLOW_WORDS = {
    "tp": "tensor-parallel communication",
    "cp": "context-parallel communication",
    "data": "data-parallel communication",
    "pp": "pipeline communication",
    "ep": "expert-parallel communication",
}


def carried_lines(anchor: Anchor, transport: Transport, axes: frozenset[Axis], in_full_s: float) -> tuple[str, ...]:
    """The ratios a projection is corrected by, how much of each its plan keeps, and the step if it kept all.

    transport: to that plan alone. axes: those it communicates along.
    """
    if transport.move.unchanged[0]:
        return ("this plan was measured: its step is that of the trace, in the terms of the model",)
    in_full = f"with every ratio in full the step would take {in_full_s:.4g} s"
    if anchor.parts is None:
        held = float(transport.whole()[0])
        return (f"the step: measured {anchor.ratio:.2f} x modelled, {_held(held)} (ev-anchor-step)", in_full)
    lines = [compute_line(one, float(transport.compute(one.part)[0])) for one in anchor.parts.compute]
    lines += [
        flow_line(one, float(transport.flow(one.flow)[0]))
        for one in anchor.parts.flows
        if axes & set(FLOW_AXES[one.flow])
    ]
    if anchor.parts.idle.launch_s > 0:
        how = "at the measured pace of launching" if anchor.parts.idle.host_paced else "by what it waited for"
        lines.append(f"idle time outside the bubble is carried {how} (ev-anchor-idle)")
    if anchor.parts.copy_s > 0:
        lines.append("copies that nothing hid are as measured (ev-anchor-copies)")
    return (*lines, in_full)


def compute_line(one: ComputeRatio, held: float) -> str:
    """One part of compute."""
    told = _held(held) if one.carried else "not carried: implausible"
    return f"{PART_WORDS[one.part]}: measured {one.ratio:.2f} x modelled, {told} (ev-anchor-{one.part})"


def flow_line(one: FlowRatio, held: float) -> str:
    """One flow of communication."""
    shown = "measured and not modelled" if one.ratio is None else f"measured {one.ratio:.2f} x modelled"
    told = _held(held) if one.carried else "not carried: implausible"
    return f"{FLOW_WORDS[one.flow]}: {shown}, {told} (ev-anchor-{one.flow})"


def _held(held: float) -> str:
    if held >= 1.0:
        return "carried in full"
    return "not carried" if held <= 0.0 else f"{100 * held:.0f} % of it carried"
