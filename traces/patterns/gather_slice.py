"""A collective that brings every rank the whole, of which each keeps a part: a reduce-scatter, or no gather at all."""

import re
from math import prod
from typing import Final

import numpy as np

from traces.collectives import Communication
from traces.linking import NONE
from traces.messages import element_bytes
from traces.naming import EventClass
from traces.patterns.hlo_graph import HloGraph, Node
from traces.patterns.scene import Found, Lacking, Scene
from traces.trace import Ints

_GATHERS: Final = ("all_reduce", "all_gather")
_SLICES: Final = ("slice", "dynamic-slice")
_COPIES: Final = re.compile(r"aten::(?:copy_|clone|contiguous|slice_copy|narrow_copy|select_copy)")
_MOST_COPIES: Final = 64
_BY_GRAPH: Final = (
    "every operator of the profile that takes the result is a slice of at most one rank's part of it; tuples and "
    "bitcasts, which take no time, are not in the profile and may pass it on"
)
_BY_SIZE: Final = (
    "the copies directly behind the collective together move exactly one rank's part of its message; "
    "the trace does not say that it is the same data"
)


def gather_then_slice(scene: Scene) -> Found | Lacking | None:
    """All-reduces and all-gathers of B bytes among n ranks whose result is cut down to B / n.

    An all-reduce moves 2 B (n - 1) / n over a link, the reduce-scatter in its place half of that; an all-gather that is
    sliced to the rank's own part moves B (n - 1) / n for nothing. Exposed is all of collective and slice, the most that
    could go. Where the text of an XLA program names operands these speak; elsewhere sizes alone do.
    """
    wanted = [one for one in scene.communications if one.collective in _GATHERS]
    if not wanted:
        return None
    if scene.graph is not None:
        return _by_graph(scene, scene.graph)
    sized = [one for one in wanted if one.message_bytes and (one.group_size or 0) > 1]
    if not sized or not scene.trace.inputs:
        return Lacking("gather_then_slice", "the sizes of collectives, or of what operators take, are not recorded")
    return _by_size(scene, sized)


def _by_graph(scene: Scene, graph: HloGraph) -> Found | None:
    sliced = {
        (one.op.program, one.name): one
        for node in graph.nodes.values()
        if node.opcode in _SLICES
        for one in graph.operands(node)
        if one.collective in _GATHERS and not one.opcode.endswith("-start")
    }
    users = graph.users(sliced.values())
    gathers = [node for key, node in sliced.items() if _is_cut(graph, node, users[key])]
    slices = [user for node in gathers for user in users[node.op.program, node.name]]
    places = scene.places_of([*gathers, *map(graph.start_of, gathers), *slices])
    if not len(places):
        return None
    count, moved = sum(map(graph.count, gathers)), sum((node.result or 0) * graph.count(node) for node in gathers)
    return scene.found(
        "gather_then_slice", places, occurrences=count, basis=_BY_GRAPH, certain=False, moved_bytes=moved
    )


def _is_cut(graph: HloGraph, node: Node, users: list[Node]) -> bool:
    """Whether all that take the result are slices of at most one rank's part."""
    whole, size = node.result, graph.start_of(node).group_size
    if whole is None or size is None or size < 2:
        return False
    return all(user.opcode in _SLICES and user.result is not None and user.result * size <= whole for user in users)


def _by_size(scene: Scene, sized: list[Communication]) -> Found | None:
    parts = _copied_bytes(scene)
    others = np.flatnonzero(~scene.communicates)
    places: list[int] = []
    members: list[Communication] = []
    for one in sized:
        at = int(np.searchsorted(scene.rows, one.row))
        behind = int(np.searchsorted(scene.start_ns[others], scene.end_ns[at], side="left"))
        taken, copies = 0, []
        for place in others[behind : behind + _MOST_COPIES].tolist():
            if parts[place] == NONE or taken * (one.group_size or 1) > (one.message_bytes or 0):
                break
            taken += int(parts[place])
            copies.append(place)
        if copies and taken * (one.group_size or 1) == one.message_bytes:
            places += [at, *copies]
            members.append(one)
    if not members:
        return None
    return scene.found(
        "gather_then_slice",
        np.array(places),
        occurrences=len(members),
        basis=_BY_SIZE,
        certain=False,
        collectives=members,
        moved_bytes=sum(one.message_bytes or 0 for one in members),
    )


def _copied_bytes(scene: Scene) -> Ints:
    """Bytes of the tensor each event copies, NONE for one that is no copy of an operator of known shapes."""
    trace, links = scene.trace, scene.classified.links
    found = np.full(len(scene.rows), NONE, dtype=np.int64)
    wanted = np.fromiter((_COPIES.fullmatch(name) is not None for name in trace.names), np.bool_, len(trace.names))
    chosen = (links.operator != NONE) & wanted[trace.name_id[links.operator]]
    chosen &= scene.classified.event_class != EventClass.COMMUNICATION
    for place in np.flatnonzero(chosen).tolist():
        inputs = trace.inputs.get(int(links.operator[place]))
        if inputs is None or not inputs.dims or not inputs.dims[0] or not inputs.types:
            continue
        element = element_bytes(inputs.types[0])
        if element is not None and len(set(inputs.types[:2]) - {""}) == 1:
            found[place] = min(prod(inputs.dims[0]) * element, 2**62)
    return found
