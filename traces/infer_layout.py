"""Parallelism degrees from process groups: what descriptions say, how ranks lie, what is left of the world.

Ranks of a mesh are numbered with the innermost axis first, so the groups of an axis are arithmetic sequences:
neighbours (stride 1) on the innermost, strides of the product of all inner axes on the others. Trainers and engines put
tensor parallelism innermost and pipeline stages outermost, and data parallelism between.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import Final, NamedTuple

from traces.implied_types import Inferred, ProcessGroup
from traces.infer_descriptions import Degree, spanned

_DESCRIBED: Final = 0.9
_FOLLOWS: Final = 0.8
_LIES: Final = 0.6
_LEFT: Final = 0.6
_WORLD: Final[tuple[Degree, ...]] = ("tp", "pp", "cp", "dp")
_NEIGHBOURS_SHOWN = 4


@dataclass(slots=True)
class Layout:
    """Degrees found so far.

    unresolved   axis -> why it stays unknown: what speaks of it contradicts itself
    strides      axis -> how far its ranks are apart, for axes that were told by where their groups lie
    """

    degrees: dict[Degree, Inferred[int]] = field(default_factory=dict)
    unresolved: dict[Degree, str] = field(default_factory=dict)
    strides: dict[Degree, int] = field(default_factory=dict)

    def find(self, axis: Degree, value: int, confidence: float, basis: str) -> None:
        """Note a degree, unless the axis is known already or was given up."""
        if axis not in self.degrees and axis not in self.unresolved:
            self.degrees[axis] = Inferred(value=value, confidence=confidence, basis=basis)

    def give_up(self, axes: Iterable[Degree], why: str) -> None:
        """Contradicting evidence: the axes stay unknown."""
        for axis in axes:
            self.degrees.pop(axis, None)
            self.unresolved.setdefault(axis, why)

    def value(self, axis: Degree) -> int | None:
        """The degree, None where it is not known."""
        known = self.degrees.get(axis)
        return known.value if known is not None else None


class _Product(NamedTuple):
    """A group that spans several axes: the product of their degrees."""

    axes: tuple[Degree, ...]
    size: int
    title: str


class Run(NamedTuple):
    """Groups whose ranks are evenly apart: how far, how many, and one of them."""

    stride: int
    size: int
    group: ProcessGroup


def by_description(layout: Layout, groups: Sequence[ProcessGroup], world: int | None) -> None:
    """Degrees of described groups, of products of axes, and of what the world leaves."""
    products: list[_Product] = []
    single: dict[Degree, dict[int, str]] = {}
    for group in groups:
        axes = spanned(group.description)
        title = f"process group described as {group.description!r} has {group.size} ranks"
        if len(axes) == 1:
            single.setdefault(axes[0], {}).setdefault(group.size, title)
        elif axes:
            products.append(_Product(axes, group.size, title))
    for axis, sizes in single.items():
        wide = {size: title for size, title in sizes.items() if size > 1} or sizes
        if len(wide) > 1:
            layout.give_up([axis], f"its groups have {' and '.join(map(str, sorted(wide)))} ranks")
        else:
            ((size, title),) = wide.items()
            layout.find(axis, size, _DESCRIBED, title)
    if not single:
        return
    _split_shards(layout, world)
    for product in (*products, *products):  # twice: one may need what a later one yields
        _solve(layout, product)
    _join_data_parallel(layout)
    if world is not None and single.keys() & {*_WORLD, "fsdp"}:
        _fill_the_world(layout, world, all_described=True)


def _split_shards(layout: Layout, world: int | None) -> None:
    """Where the sharding group leaves no room for context parallelism beside it, it spans both (torchtitan's fsdp)."""
    cp, shards = layout.value("cp"), layout.degrees.get("fsdp")
    if world is None or shards is None or cp is None or cp == 1 or shards.value % cp:
        return
    inner = prod(layout.value(axis) or 1 for axis in ("tp", "pp", "replicate"))
    if inner * shards.value == world:
        basis = f"{shards.basis}, among them the {cp} of context parallelism"
        layout.degrees["fsdp"] = shards.model_copy(update={"value": shards.value // cp, "basis": basis})


def _solve(layout: Layout, product: _Product) -> None:
    open_axes = [axis for axis in product.axes if axis not in layout.degrees]
    known = prod(layout.value(axis) or 1 for axis in product.axes)
    named = " x ".join(f"{axis} {layout.value(axis)}" for axis in product.axes if axis in layout.degrees)
    if not open_axes:
        if known != product.size:
            layout.give_up(product.axes, f"{product.title}, {named} are {known}")
    elif len(open_axes) == 1:
        if product.size % known:
            layout.give_up(product.axes, f"{product.title}, which {named} does not divide")
        else:
            layout.find(open_axes[0], product.size // known, _FOLLOWS, f"{product.title}, {named} of them known")


def _join_data_parallel(layout: Layout) -> None:
    """dp = fsdp x replicate, as far as both are described."""
    shards, copies = layout.degrees.get("fsdp"), layout.degrees.get("replicate")
    if shards is None or copies is None:
        return
    known = layout.value("dp")
    size = shards.value * copies.value
    if known is not None and known != size:
        layout.give_up(["dp", "fsdp"], f"dp {known} is not fsdp {shards.value} x replicas {copies.value}")
    layout.find("dp", size, min(shards.confidence, copies.confidence), f"{shards.basis}; {copies.basis}")


def _fill_the_world(layout: Layout, world: int, *, all_described: bool) -> None:
    """Axes nobody tells: those for which nothing of the world is left are 1. Where a trainer describes its groups it
    describes all but those of one rank, and data parallelism at times, which then is what the others leave.
    """
    if any(axis in layout.unresolved for axis in _WORLD):
        return
    shards = layout.degrees.get("fsdp")
    known = prod(layout.value(axis) or 1 for axis in _WORLD)
    if world % known:
        layout.give_up(
            [axis for axis in _WORLD if axis in layout.degrees],
            f"{_named(layout)} make {known} ranks, which do not divide the world of {world}",
        )
        return
    left = world // known
    if "dp" not in layout.degrees and left > 1 and all_described:
        if shards is not None and left % shards.value:
            layout.give_up(["dp", "fsdp"], f"{shards.basis}; {_named(layout)} leave {left} of {world} ranks")
            return
        layout.find("dp", left, _LEFT, f"{_named(layout) or 'no other axis'} leaves {left} of {world} ranks")
        left = 1
    if left == 1:
        sure = min([_FOLLOWS, *(layout.degrees[axis].confidence for axis in _WORLD if axis in layout.degrees)])
        basis = f"{_named(layout)} {'take' if ' x ' in _named(layout) else 'takes'} up all {world} ranks"
        for axis in _WORLD:
            layout.find(axis, 1, sure, basis)


def _named(layout: Layout) -> str:
    return " x ".join(f"{axis} {layout.value(axis)}" for axis in _WORLD if (layout.value(axis) or 1) > 1)


def runs(groups: Iterable[ProcessGroup], world: int | None) -> tuple[Run, ...]:
    """Used groups without a description, smaller than the world, whose ranks lie evenly; one of each kind, inner first.

    Of two with the same stride the wider one spans several axes and is left out; expert groups lie across the others.
    """
    found: dict[tuple[int, bool], Run] = {}
    for group in groups:
        size = len(group.ranks)
        if size < 2 or size != group.size or size == world or group.axis != "unknown" or group.use == "unused":
            continue
        stride = group.ranks[1] - group.ranks[0]
        if stride < 1 or group.ranks != tuple(range(group.ranks[0], group.ranks[0] + stride * size, stride)):
            continue
        kind = (stride, group.use == "expert")
        if kind not in found or size < found[kind].size:
            found[kind] = Run(stride, size, group)
    return tuple(found[kind] for kind in sorted(found))


def by_ranks(layout: Layout, found: Sequence[Run], world: int | None, *, shards_first: bool, splits: bool) -> None:
    """Degrees of groups nobody describes, by where they lie in the mesh and what runs in them.

    shards_first: FSDP is in use and nothing speaks of tensor parallelism. splits: something does. Expert groups lie
    across the mesh. What the innermost of the others serves is only told by one of these signs, or by a second axis.
    """
    mesh = [run for run in found if run.group.use != "expert"]
    for run in found:
        if run.group.use == "expert":
            layout.find("ep", run.size, _LIES, f"all-to-alls run among {_lie(run)}")
            layout.strides["ep"] = run.stride
    for inner, outer in pairwise(mesh):
        if outer.stride % (inner.stride * inner.size):
            why = f"groups of {_lie(inner)} and of {_lie(outer)} are no axes of one mesh"
            layout.give_up(["tp", "dp", "pp"], why)
            return
    stages = [run for run in mesh if run.group.use == "pair"]
    data = [run for run in mesh if run.group.use in ("shard", "reduce")]
    for run in stages:
        if world is not None and run.stride * run.size == world:
            layout.find("pp", run.size, _LIES, f"sends and receives run among {_lie(run)}, the outermost axis")
            layout.strides["pp"] = run.stride
        else:
            layout.give_up(["pp", "cp"], f"sends and receives run among {_lie(run)}: stages, or parts of a context")
    for axis, run in _named_runs(data, shards_first=shards_first, splits=splits):
        layout.find(axis, run.size, _LIES, f"{_in_use(run)} among {_lie(run)}")
        layout.strides[axis] = run.stride
    if len(data) == 1 and data[0].stride == 1 and not (shards_first or splits):
        why = f"{_in_use(data[0])} among {_lie(data[0])}: parts of tensors, or copies of a model"
        layout.give_up(["tp", "dp"], why)


def _named_runs(data: Sequence[Run], *, shards_first: bool, splits: bool) -> Iterable[tuple[Degree, Run]]:
    inner = [run for run in data if run.stride == 1]
    outer = [run for run in data if run.stride > 1]
    if shards_first:
        sharding = [run for run in data if run.group.use == "shard"]
        yield from (("fsdp", run) for run in sharding[:1])
        yield from (("replicate", run) for run in data if run.group.use == "reduce")
        return
    if inner and (splits or outer):
        yield "tp", inner[0]
    if len(outer) == 1:
        yield ("fsdp" if splits and outer[0].group.use == "shard" else "dp"), outer[0]
    if len(outer) == 2 and [run.group.use for run in outer] == ["shard", "reduce"]:
        yield "fsdp", outer[0]
        yield "replicate", outer[1]


def complete(layout: Layout, world: int | None) -> None:
    """What follows from the degrees found: dp of its parts, and axes for which nothing of the world is left."""
    _join_data_parallel(layout)
    if world is not None and layout.degrees.keys() & {*_WORLD, "fsdp"}:
        _fill_the_world(layout, world, all_described=False)


def _lie(run: Run) -> str:
    shown = ", ".join(map(str, run.group.ranks[:_NEIGHBOURS_SHOWN])) + (", ..." if run.size > _NEIGHBOURS_SHOWN else "")
    return f"{run.size} ranks {run.stride} apart ({shown})" if run.stride > 1 else f"{run.size} neighbours ({shown})"


def _in_use(run: Run) -> str:
    return "gathers and reduce-scatters run" if run.group.use == "shard" else "reductions run"
