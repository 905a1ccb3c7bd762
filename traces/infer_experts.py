"""Experts of a mixture, how many each token visits, and the width of one, from routers and stacked weights."""

from typing import Final, NamedTuple

from traces.facts import Facts, OpCall, any_case
from traces.infer_sizes import Seen, calls_of, shown

# Inductor names pointwise kernels after the operators around them: their shapes are not the router's.
_FORWARD: Final = any_case(r"^(?!triton_).{0,100}moe_forward")
_GATE: Final = any_case(r"^(?!triton_).{0,100}topk_?(?:softmax|sigmoid)")
_FUSED: Final = any_case(r"^(?!triton_).{0,100}(?:fused_moe|fused_experts)")
_TOP_K: Final = any_case(r"^aten::topk$")
_MOST_CHOSEN: Final = 64


class Experts(NamedTuple):
    """Each None where the trace does not show it. width: of an expert's hidden layer on this rank."""

    experts: Seen | None = None
    per_token: Seen | None = None
    width: Seen | None = None


def experts(facts: Facts) -> Experts:
    """The router's columns tell the experts of the whole model; stacked weights tell how many this rank holds, which is
    fewer with expert parallelism, and so are believed less.
    """
    calls = facts.forward_calls
    found = Experts()
    for reading, pattern in ((_logits, _FORWARD), (_gate, _GATE), (_fused, _FUSED)):
        call = next(calls_of(calls, pattern), None)
        if call is not None:
            seen = reading(call)
            found = Experts(*(known or new for known, new in zip(found, seen, strict=True)))
    if found.experts is not None and found.per_token is None:
        found = found._replace(per_token=_chosen(facts, found.experts.value))
    return found


def _logits(call: OpCall) -> Experts:
    """moe_forward(hidden [tokens, width], logits [tokens, experts])."""
    dims = call.inputs.dims
    if len(dims) > 1 and len(dims[0]) == len(dims[1]) == 2 and dims[0][0] == dims[1][0]:
        return Experts(experts=Seen(dims[1][1], 0.9, shown(call)))
    return Experts()


def _gate(call: OpCall) -> Experts:
    """topk_softmax(weights [tokens, k], ids [tokens, k], ..., logits [tokens, experts]), in any order."""
    shapes = [shape for shape in call.inputs.dims if len(shape) == 2]
    widths = sorted({shape[1] for shape in shapes})
    if len({shape[0] for shape in shapes}) != 1 or len(widths) != 2:
        return Experts()
    chosen, every = widths
    if chosen > _MOST_CHOSEN:
        return Experts()
    return Experts(Seen(every, 0.9, shown(call)), Seen(chosen, 0.9, shown(call)))


def _fused(call: OpCall) -> Experts:
    """fused_experts(hidden [tokens, width], w1 [experts, 2 x inner, width], w2 [experts, width, inner], weights
    [tokens, k], ids [tokens, k], ...).
    """
    dims = call.inputs.dims
    stacked = [shape for shape in dims if len(shape) == 3]
    if not stacked:
        return Experts()
    flat = [shape for shape in dims if len(shape) == 2]
    tokens, hidden = (flat[0][0], flat[0][1]) if flat else (None, None)
    narrow = [shape[1] for shape in flat[1:] if shape[0] == tokens and shape[1] <= _MOST_CHOSEN]
    width = stacked[1][2] if len(stacked) > 1 and stacked[1][0] == stacked[0][0] and stacked[1][1] == hidden else None
    return Experts(
        Seen(stacked[0][0], 0.5, f"{shown(call)}: experts this rank holds"),
        Seen(narrow[0], 0.85, shown(call)) if narrow else None,
        Seen(width, 0.85, shown(call)) if width else None,
    )


def _chosen(facts: Facts, count: int) -> Seen | None:
    """k of aten::topk over the router's logits."""
    for call in calls_of(facts.forward_calls, _TOP_K):
        dims, values = call.inputs.dims, call.inputs.values
        if dims and len(dims[0]) == 2 and dims[0][1] == count and len(values) > 1 and values[1].isdecimal():
            return Seen(int(values[1][:4]), 0.85, f"{shown(call)}, k {values[1][:4]}")
    return None
