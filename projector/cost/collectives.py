"""Time of one collective: alpha-beta over two tiers, the best of the algorithms a library would choose from."""

from collections.abc import Mapping

import numpy as np

from projector.cost import engine_collectives
from projector.cost.routes import Route
from projector.graph.columns import Column
from projector.graph.operator import Collective, GroupName


def collective_time_s(collective: Collective, routes: Mapping[GroupName, Route]) -> Column:
    """Seconds of one execution, shape [n]; zero for groups of one.

    B bytes over g = i o ranks, i inside a domain at b_i, o domains at b_o, steps alpha_i and alpha_o:

        all-gather, reduce-scatter   max(B (i-1)/i / b_i, B/i (o-1)/o / b_o) + hops alpha_i + (o-1) alpha_o
                                     flat: B (o-1)/o / b_o, nothing shared within a domain
        all-reduce                   twice that; latency also as a tree, 2 (log2 i alpha_i + log2 o alpha_o);
                                     inside one switched domain also in one step, (i-1) B / b_i + alpha_i
        all-to-all                   max(B (i-1)/g / b_spread, B (1 - 1/o) / b_o) + alpha_i + log2 o alpha_o
                                     with k copies of a token in B, where that is faster one a domain and, forwarded
                                     there, one a rank: max(r/k B (i-1)/i / b_spread, d/k B (1 - 1/o) / b_o), with
                                     the n that k copies meet, n (1 - (1 - 1/n)^k): r of g ranks, d of o domains, or of
                                     those ranks and domains that the groups of experts a token may choose lie in
        send                         B / b + alpha on the slowest tier the group crosses

    The two tiers of a ring work at once on different chunks, hence the maximum. Source: Thakur et al. 2005 for the
    algorithms, NCCL's and the TPU scaling book's use of them. Left out: protocol switches over message size beyond
    alpha, contention between groups of different axes,
    rail-optimised or oversubscribed fabrics. Serving engines choose among algorithms of their own:
    `projector.cost.engine_collectives`.
    """
    route, payload = routes[collective.group], collective.payload_bytes
    if collective.algorithms is not None and collective.kind == "all_reduce":
        return np.where(route.size > 1, engine_collectives.all_reduce_s(payload, route, collective.algorithms), 0.0)
    formulas = {
        "all_gather": _gather_s,
        "reduce_scatter": _gather_s,
        "all_reduce": _all_reduce_s,
        "send": _send_s,
    }
    if collective.kind == "all_to_all":
        return np.where(route.size > 1, _all_to_all_s(collective, route), 0.0)
    parts = collective.messages
    one_s = formulas[collective.kind](payload / parts, route) + collective.message_s
    if collective.flat:
        own_s = payload / parts * (route.outer - 1) / route.outer / route.outer_bytes_per_s
        one_s = np.maximum(one_s, own_s)
    return np.where(route.size > 1, parts * one_s, 0.0)


def _transfer_s(payload: Column, route: Route) -> Column:
    inner_s = payload * (route.inner - 1) / route.inner / route.inner_bytes_per_s
    outer_s = payload / route.inner * (route.outer - 1) / route.outer / route.outer_ring_bytes_per_s
    transfer: Column = np.maximum(inner_s, outer_s)
    return transfer


def _ring_latency_s(route: Route) -> Column:
    """A ring through switched domains passes every rank: g - o steps inside, o - 1 across, as NCCL counts them."""
    inside = route.outer * route.inner_hops if route.direct else route.inner_hops
    return inside * route.inner_hop_s + (route.outer - 1) * route.outer_hop_s


def _gather_s(payload: Column, route: Route) -> Column:
    return _transfer_s(payload, route) + _ring_latency_s(route)


def _all_reduce_s(payload: Column, route: Route) -> Column:
    tree_s = np.log2(route.inner) * route.inner_hop_s + np.log2(route.outer) * route.outer_hop_s
    latency_s = np.minimum(_ring_latency_s(route), tree_s) if route.direct else _ring_latency_s(route)
    several_s = 2 * (_transfer_s(payload, route) + latency_s)
    if not route.direct:
        return several_s
    at_once_s = (route.inner - 1) * payload / route.inner_bytes_per_s + route.inner_hop_s
    return np.where(route.outer > 1, several_s, np.minimum(several_s, at_once_s))


def _all_to_all_s(collective: Collective, route: Route) -> Column:
    payload, copies = collective.payload_bytes, np.asarray(collective.copies)
    inner_s = payload * (route.inner - 1) / route.size / route.spread_bytes_per_s
    outer_s = payload * (route.outer - 1) / route.outer / route.outer_bytes_per_s
    latency_s = np.where(route.inner > 1, route.inner_hop_s, 0.0) + np.log2(route.outer) * route.outer_hop_s
    direct_s = np.maximum(inner_s, outer_s)
    each_s = direct_s + latency_s
    if collective.algorithms is not None and route.direct:
        each_s = engine_collectives.all_to_all_s(payload, route, collective.algorithms)
    if (copies <= 1).all():
        return each_s
    reach = _domains_in_reach(route.outer, collective)
    ranks = route.inner * reach
    reached = ranks * (1 - (1 - 1 / ranks) ** copies) / copies
    forwarded_s = payload * reached * (route.inner - 1) / route.inner / route.spread_bytes_per_s
    met = reach * (1 - (1 - 1 / reach) ** copies)
    once_s = np.minimum(direct_s, np.maximum(forwarded_s, outer_s * met / copies))
    return np.where(copies > 1, once_s + latency_s, each_s)


def _domains_in_reach(domains: Column, collective: Collective) -> Column:
    """Domains a token's copies may go to: those that hold the groups it picks, of `groups` spread evenly over them."""
    if collective.groups == 1:
        return domains
    spanned = collective.reach * domains / collective.groups
    shared = domains * (1 - (1 - 1 / domains) ** collective.reach)
    return np.where(domains >= collective.groups, spanned, shared)


def _send_s(payload: Column, route: Route) -> Column:
    inside_s = payload / route.inner_bytes_per_s + route.inner_hop_s
    across_s = payload / route.outer_bytes_per_s + route.outer_hop_s
    return np.where(route.outer > 1, across_s, inside_s)
