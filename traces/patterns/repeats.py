"""Weights gathered, or gradients reduced, several times in one step: once a micro-batch, or for both passes."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final, Literal

import numpy as np

from traces.collectives import Communication
from traces.patterns.hlo_graph import HloGraph, Node
from traces.patterns.scene import SHARDED_AXES, Found, Lacking, Scene

_MOST_BLOCKS: Final = 4_096
_BY_GRAPH: Final = "the program says so: several all-gathers take the same operand"
_BY_SIZE: Final = (
    "in every measured step the sizes of the collectives of one group are one sequence of different sizes over and "
    "over, forth or back; the trace does not say that it is the same data each time"
)

Kind = Literal["repeated_gathers", "repeated_reductions"]


def repeated_gathers(scene: Scene) -> Found | Lacking | None:
    """All-gathers of what was gathered before in the same step, in an XLA program of the same operand.

    Elsewhere: the sizes of a data-parallel group's all-gathers in each measured step are a block of at least two
    different sizes, repeated p >= 2 times, each time in this order or the reverse (a backward pass): ZeRO-3 gathers
    weights for each pass of each micro-batch. Those after the first block are what a plan that keeps the weights lacks.
    """
    gathers = any(one.collective == "all_gather" for one in scene.communications)
    if gathers and scene.graph is not None:
        return _by_graph(scene, scene.graph)
    return _by_size(scene, "repeated_gathers", ("all_gather",), reverse=True)


def repeated_reductions(scene: Scene) -> Found | Lacking | None:
    """The same for reductions, in one order only (backward passes alone reduce gradients): accumulation over p
    micro-batches that reduces after each. Reducing after the last alone leaves one in p.
    """
    if scene.trace.profile is not None:
        return None  # a program reduces where its compiler put it
    return _by_size(scene, "repeated_reductions", ("all_reduce", "reduce_scatter"), reverse=False)


def _by_graph(scene: Scene, graph: HloGraph) -> Found | None:
    same: defaultdict[tuple[int, tuple[str, ...]], list[Node]] = defaultdict(list)
    for node in graph.nodes.values():
        if node.collective == "all_gather" and not node.opcode.endswith("-done"):
            same[node.op.program, node.operands].append(node)
    anew = [node for nodes in same.values() if len({node.result for node in nodes}) == 1 for node in nodes[1:]]
    started = {(node.op.program, node.name) for node in anew}
    ends = [
        node
        for node in graph.nodes.values()
        if node.opcode.endswith("-done") and any((node.op.program, name) in started for name in node.operands)
    ]
    places = scene.places_of([*anew, *ends])
    if not len(places):
        return None
    count = sum(map(graph.count, anew))
    return scene.found("repeated_gathers", places, occurrences=count, basis=_BY_GRAPH, certain=True)


def _by_size(scene: Scene, kind: Kind, collectives: Sequence[str], *, reverse: bool) -> Found | Lacking | None:
    wanted = [one for one in scene.communications if one.collective in collectives]
    axes = [scene.axis_of(one) for one in wanted]
    if len(wanted) > 1 and all(axis == "unknown" for axis in axes):
        return Lacking(kind, "which axis the collectives serve is not known")
    wanted = [one for one, axis in zip(wanted, axes, strict=True) if axis in SHARDED_AXES]
    if len(wanted) < 2:
        return None
    if not scene.measured_steps:
        return Lacking(kind, "the trace marks no steps")
    if all(one.message_bytes is None for one in wanted):
        return Lacking(kind, "the sizes of the collectives are not recorded")
    groups: defaultdict[tuple[str, str], list[Communication]] = defaultdict(list)
    for one in wanted:
        groups[one.collective, one.group].append(one)
    anew = [one for members in groups.values() for one in _again(scene, members, reverse)]
    if not anew:
        return None
    return scene.found(
        kind,
        np.searchsorted(scene.rows, [one.row for one in anew]),
        occurrences=len(anew),
        basis=_BY_SIZE,
        certain=False,
        collectives=anew,
        moved_bytes=sum(one.message_bytes or 0 for one in anew),
    )


def _again(scene: Scene, members: Sequence[Communication], reverse: bool) -> list[Communication]:
    """Those of one group that repeat the first block of their step; none unless all measured steps repeat alike."""
    starts = [int(scene.trace.start_ns[one.row]) for one in members]
    found: list[Communication] = []
    first: int | None = None
    for step in scene.measured_steps:
        begin, end = np.searchsorted(starts, [step.start_ns, step.end_ns])
        inside = members[begin:end]
        sizes = [one.message_bytes for one in inside]
        length = _block([size for size in sizes if size is not None], reverse) if None not in sizes else None
        if length is None or first not in (None, length):
            return []
        first = length
        found += inside[length:]
    return found


def _block(sizes: Sequence[int], reverse: bool) -> int | None:
    """Length of the shortest block of two or more different sizes that the sequence is p >= 2 times, or None."""
    if len(set(sizes)) < 2:
        return None
    counts = Counter(sizes)
    for times in sorted(_divisors(np.gcd.reduce(list(counts.values()))), reverse=True):
        length = len(sizes) // times
        block, back = list(sizes[:length]), list(sizes[:length][::-1])
        pieces = (list(sizes[at : at + length]) for at in range(0, len(sizes), length))
        if times > 1 and all(piece == block or (reverse and piece == back) for piece in pieces):
            return length
    return None


def _divisors(number: int) -> list[int]:
    return [one for one in range(1, min(int(number), _MOST_BLOCKS) + 1) if number % one == 0]
