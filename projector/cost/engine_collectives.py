"""Collectives of a serving engine by algorithm: all-reduces of hidden states, exchanges of tokens with experts.

Symbols as in `projector.cost.collectives`: B bytes over g = i o ranks, i inside a domain at b_i, o domains at b_o,
steps alpha_i and alpha_o.
"""

from collections.abc import Callable, Mapping

import numpy as np

from projector.cost.routes import Route
from projector.graph.columns import Column
from projector.graph.operator import Algorithms

# Rate of kernels that load from and store to their peers over that of a library's pipelined ring. It makes 8 ranks of
# an H100 host change to the ring at about 8 MB, as vLLM does (custom_all_reduce.py: max_size).
DIRECT_COPY_FRAC = 0.75

Formula = Callable[[Column, Route], Column]


def all_reduce_s(payload: Column, route: Route, algorithms: Algorithms) -> Column:
    """Seconds of one all-reduce under what each plan asks for; the fastest where it names none.

        ring          2 (max(B (i-1)/i / b_i, B/i (o-1)/o / b_o) + o (i-1) alpha_i + (o-1) alpha_o)
        one_shot      max((i-1) B / b, (g-i) B / b_o) + alpha: every rank reads every other's buffer
        two_shot      2 (max(B (i-1)/g / b, B (1 - 1/o) / b_o) + alpha): every rank sums a g-th, then all read the sums
        hierarchical  2 (B (i-1)/i / b_i + alpha_i) + 2 (B/i (o-1)/o / b_o + (o-1) alpha_o): scattered sums inside a
                      domain, a ring over domains, and back; inside one domain a library's tree: the bytes of a ring,
                      2 log2 i alpha_i
    with b = DIRECT_COPY_FRAC b_i and alpha = alpha_o where domains are crossed. Sources: Thakur et al. 2005; the
    kernels of TensorRT-LLM and vLLM (custom all-reduce) for one and two shots; NCCL's hierarchical trees. A torus has
    neither switch nor direct copies: there every name is its ring.
    """
    if not route.direct:
        return _ring_s(payload, route)
    one_kernel_s = np.minimum(_one_shot_s(payload, route), _two_shot_s(payload, route))
    library_s = np.minimum(_ring_s(payload, route), _hierarchical_s(payload, route))
    fastest_s = np.minimum(one_kernel_s, library_s)
    if algorithms.one_kernel is not None:
        fastest_s = np.where(algorithms.one_kernel, one_kernel_s, fastest_s)
    return _chosen_s(fastest_s, payload, route, algorithms, ALL_REDUCES)


def all_to_all_s(payload: Column, route: Route, algorithms: Algorithms) -> Column:
    """Seconds of one exchange in which every copy of a token goes its own way.

        direct        max(B (i-1)/g / b_i, B (1 - 1/o) / b_o) + (i-1) alpha_i + (g-i) alpha_o: one peer after another
        single_shot   the same bytes at DIRECT_COPY_FRAC of the rate in one kernel that writes to all peers + alpha
        hierarchical  B (i-1)/i / b_i + B (1 - 1/o) / b_o + alpha_i + (o-1) alpha_o: rows for a domain are joined on one
                      rank first, so there is a message a domain, not a rank; in one domain as direct
        at_once       the bytes of direct + alpha: kernels made for this exchange (DeepEP's low-latency ones)
    Sources: Thakur et al. 2005; DeepEP's and TensorRT-LLM's kernels.
    """
    fastest_s = np.minimum(
        np.minimum(_direct_s(payload, route), _single_shot_s(payload, route)), _joined_s(payload, route)
    )
    return _chosen_s(fastest_s, payload, route, algorithms, ALL_TO_ALLS)


def _chosen_s(
    fastest_s: Column, payload: Column, route: Route, algorithms: Algorithms, formulas: Mapping[str, Formula]
) -> Column:
    for name, plans in algorithms.named:
        fastest_s = np.where(plans, formulas[name](payload, route), fastest_s)
    return fastest_s


def _alpha_s(route: Route) -> Column:
    """A step to any peer: through the network where the group spans domains."""
    across: Column = np.where(route.outer > 1, route.outer_hop_s, route.inner_hop_s)
    return across


def _ring_s(payload: Column, route: Route) -> Column:
    inner_s = payload * (route.inner - 1) / route.inner / route.inner_bytes_per_s
    outer_s = payload / route.inner * (route.outer - 1) / route.outer / route.outer_ring_bytes_per_s
    hops = route.outer * route.inner_hops if route.direct else route.inner_hops
    latency_s = hops * route.inner_hop_s + (route.outer - 1) * route.outer_hop_s
    found: Column = 2 * (np.maximum(inner_s, outer_s) + latency_s)
    return found


def _one_shot_s(payload: Column, route: Route) -> Column:
    inner_s = (route.inner - 1) * payload / (DIRECT_COPY_FRAC * route.inner_bytes_per_s)
    outer_s = (route.size - route.inner) * payload / route.outer_bytes_per_s
    found: Column = np.maximum(inner_s, outer_s) + _alpha_s(route)
    return found


def _two_shot_s(payload: Column, route: Route) -> Column:
    inner_s = payload * (route.inner - 1) / route.size / (DIRECT_COPY_FRAC * route.inner_bytes_per_s)
    outer_s = payload * (route.outer - 1) / route.outer / route.outer_bytes_per_s
    found: Column = 2 * (np.maximum(inner_s, outer_s) + _alpha_s(route))
    return found


def _hierarchical_s(payload: Column, route: Route) -> Column:
    inner_s = payload * (route.inner - 1) / route.inner / route.inner_bytes_per_s
    outer_s = payload / route.inner * (route.outer - 1) / route.outer / route.outer_ring_bytes_per_s
    tree = np.where(route.outer > 1, 1.0, np.log2(route.inner))
    found: Column = 2 * (inner_s + tree * route.inner_hop_s + outer_s + (route.outer - 1) * route.outer_hop_s)
    return found


def _bytes_s(payload: Column, route: Route, rate_frac: float) -> Column:
    inner_s = payload * (route.inner - 1) / route.size / (rate_frac * route.spread_bytes_per_s)
    outer_s = payload * (route.outer - 1) / route.outer / route.outer_bytes_per_s
    found: Column = np.maximum(inner_s, outer_s)
    return found


def _direct_s(payload: Column, route: Route) -> Column:
    latency_s = (route.inner - 1) * route.inner_hop_s + (route.size - route.inner) * route.outer_hop_s
    return _bytes_s(payload, route, 1.0) + latency_s


def _single_shot_s(payload: Column, route: Route) -> Column:
    return _bytes_s(payload, route, DIRECT_COPY_FRAC) + _alpha_s(route)


def _joined_s(payload: Column, route: Route) -> Column:
    inner_s = payload * (route.inner - 1) / route.inner / route.spread_bytes_per_s
    outer_s = payload * (route.outer - 1) / route.outer / route.outer_bytes_per_s
    latency_s = np.where(route.inner > 1, route.inner_hop_s, 0.0) + (route.outer - 1) * route.outer_hop_s
    return np.where(route.outer > 1, inner_s + outer_s + latency_s, _direct_s(payload, route))


def _at_once_s(payload: Column, route: Route) -> Column:
    return _bytes_s(payload, route, 1.0) + _alpha_s(route)


ALL_REDUCES: Mapping[str, Formula] = {
    "ring": _ring_s,
    "one_shot": _one_shot_s,
    "two_shot": _two_shot_s,
    "hierarchical": _hierarchical_s,
}
ALL_TO_ALLS: Mapping[str, Formula] = {
    "direct": _direct_s,
    "single_shot": _single_shot_s,
    "hierarchical": _joined_s,
    "at_once": _at_once_s,
}
