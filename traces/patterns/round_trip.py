"""Resharding back and forth: an all-to-all that the next one undoes, with nothing but cheap kernels between."""

from typing import Final

import numpy as np

from traces.collectives import Communication
from traces.patterns.hlo_graph import MOVES, HloGraph, Node
from traces.patterns.scene import Found, Lacking, Scene
from traces.trace import Ints

_MOST_STEPS: Final = 4
_BY_GRAPH: Final = "the program says so: the second takes what the first gave, through operators that only move data"
_BY_SIZE: Final = (
    "the second sends as many elements as the first received and receives as many as it had sent, in one group, and "
    "no matrix kernel begins between; the trace does not say that it is the same data"
)


def reshard_round_trip(scene: Scene) -> Found | Lacking | None:
    """Pairs of all-to-alls inverse to one another without a matrix kernel between: both could go.

    In an XLA program: an all-to-all whose operand is, through at most _MOST_STEPS operators that only move data, the
    result of an all-to-all of the same size and group. Elsewhere only pairs whose sizes show the direction count, that
    is whose input and output differ: three equal all-to-alls in a row are as well those of queries, keys and values.
    """
    wanted = [one for one in scene.communications if one.collective == "all_to_all"]
    if len(wanted) < 2:
        return None
    if scene.graph is not None:
        return _by_graph(scene, scene.graph)
    if not any(one.args is not None and one.args.in_elements and one.args.out_elements for one in wanted):
        return Lacking("reshard_round_trip", "what the all-to-alls send and receive is not recorded")
    return _by_size(scene, wanted)


def _by_graph(scene: Scene, graph: HloGraph) -> Found | None:
    pairs = [
        (first, second)
        for second in graph.nodes.values()
        if second.collective == "all_to_all" and not second.opcode.endswith("-done")
        if (first := _undone_by(graph, second)) is not None
    ]
    members = [node for pair in pairs for node in pair]
    places = scene.places_of([*members, *map(graph.start_of, members)])
    if not len(places):
        return None
    count = sum(graph.count(second) for _, second in pairs)
    moved = sum((node.result or 0) * graph.count(node) for node in members)
    return scene.found(
        "reshard_round_trip", places, occurrences=count, basis=_BY_GRAPH, certain=True, moved_bytes=moved
    )


def _undone_by(graph: HloGraph, second: Node) -> Node | None:
    """The all-to-all whose result `second` takes through operators that only move data."""
    node = second
    for _ in range(_MOST_STEPS + 1):
        above = graph.operands(node)
        if len(above) != 1:
            return None
        node = above[0]
        if node.collective == "all_to_all" and not node.opcode.endswith("-start"):
            first = graph.start_of(node)
            same = node.result == second.result and first.group_size == second.group_size is not None
            return node if same else None
        if node.opcode not in MOVES:
            return None
    return None


def _by_size(scene: Scene, wanted: list[Communication]) -> Found | None:
    matrix = np.concatenate(([0], np.cumsum(scene.is_matrix)))
    members: list[Communication] = []
    last: Communication | None = None
    for one in wanted:
        if last is not None and _inverse(last, one) and _between(scene, matrix, last, one) == 0:
            members += [last, one]
            last = None
        else:
            last = one
    if not members:
        return None
    return scene.found(
        "reshard_round_trip",
        np.searchsorted(scene.rows, [one.row for one in members]),
        occurrences=len(members) // 2,
        basis=_BY_SIZE,
        certain=False,
        collectives=members,
        moved_bytes=sum(one.message_bytes or 0 for one in members),
    )


def _inverse(first: Communication, second: Communication) -> bool:
    a, b = first.args, second.args
    if a is None or b is None or first.group != second.group or a.dtype != b.dtype or not a.in_elements:
        return False
    return a.in_elements == b.out_elements and a.out_elements == b.in_elements and a.in_elements != a.out_elements


def _between(scene: Scene, matrix: Ints, first: Communication, second: Communication) -> int:
    begin, end = np.searchsorted(scene.rows, [first.row, second.row])
    return int(matrix[end] - matrix[begin])
