"""Torus: how mesh axes lie on the dimensions of an ICI slice, and what a ring or an all-to-all gets there.

Devices are numbered along the dimensions of the slice, so a group (stride, size) covers an interval of positions and
in each dimension a run of `extent` chips, `gap` apart. A dimension wraps around when the whole of it is covered and
its size is a multiple of the chip's wrap_multiple, in three dimensions only where all sizes are (a v5p slice of 2x2x4
wraps nowhere, one of v5e of 8x16 along its longer side); shorter runs are lines. Source of the rules: jax-ml
scaling-book, tpus.md and sharding.md (own derivation of the all-to-all below).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import permutations
from math import prod

import numpy as np
from numpy.typing import NDArray

from projector.graph.columns import Column, Switch
from projector.graph.groups import Group
from projector.graph.operator import GroupName
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile


@dataclass(frozen=True)
class InnerTier:
    """The inner tier of a group: ranks inside the domain and what their links give, before efficiency."""

    inner: Column
    bytes_per_s: Column
    hops: Column
    spread_bytes_per_s: Column


@dataclass(frozen=True)
class Run:
    """The part of a group along one dimension of `size` chips: `extent` ranks, `gap` chips apart; columns."""

    size: int
    extent: Column
    gap: Column
    wraps: Switch


def torus_tiers(
    groups: Mapping[GroupName, Group], rate: float, cluster: ClusterSpec, hardware: HardwareProfile
) -> dict[GroupName, InnerTier]:
    """The inner tier of every group, with `rate` bytes/s over the links of a chip.

    For each order of the slice's dimensions the bandwidth of the TP group is compared (of the data group where
    tp = 1); each plan takes its best order, as a launcher that picks the device mesh would.
    """
    layouts, best = _layouts(groups, rate, cluster, hardware)
    return {name: _pick([layout[name] for layout in layouts.values()], best) for name in groups}


def torus_runs(
    groups: Mapping[GroupName, Group], rate: float, cluster: ClusterSpec, hardware: HardwareProfile
) -> dict[GroupName, tuple[Run, ...]]:
    """Along which dimensions the groups of one plan (a batch of one) lie in the order that `torus_tiers` takes."""
    layouts, best = _layouts(groups, rate, cluster, hardware)
    order = list(layouts)[int(best[0])]
    return {name: tuple(_runs(group, order, hardware)) for name, group in groups.items()}


def _layouts(
    groups: Mapping[GroupName, Group], rate: float, cluster: ClusterSpec, hardware: HardwareProfile
) -> tuple[dict[tuple[int, ...], dict[GroupName, InnerTier]], NDArray[np.intp]]:
    """The tiers for each order of the slice's dimensions, and the place of each plan's best order."""
    orders = sorted(set(permutations(slice_shape(cluster, hardware))))
    layouts = {order: {name: _tier(group, order, rate, hardware) for name, group in groups.items()} for order in orders}
    tp_busy = groups["tp"].size > 1
    scores = [
        np.where(tp_busy, layout["tp"].bytes_per_s, layout["data"].bytes_per_s) + 1e-6 * layout["data"].bytes_per_s
        for layout in layouts.values()
    ]
    return layouts, np.argmax(np.stack(scores), axis=0)


def slice_shape(cluster: ClusterSpec, hardware: HardwareProfile) -> tuple[int, ...]:
    """The torus shape of one slice: as given, otherwise the most even one (an assumption `project` reports).

    A slice never passes the chip's largest domain; more chips make more slices.
    """
    if cluster.topology is not None:
        return cluster.topology
    return even_shape(slice_chips(cluster, hardware), hardware.intra.torus_dimensions or 2)


def slice_chips(cluster: ClusterSpec, hardware: HardwareProfile) -> int:
    """Chips of one slice: chips / slices, or where that passes the largest domain its largest part that does not."""
    chips = cluster.chips // cluster.slices
    return next(size for size in range(min(chips, hardware.intra.max_domain_chips), 0, -1) if chips % size == 0)


def even_shape(chips: int, dimensions: int) -> tuple[int, ...]:
    """Sizes with the product `chips`, as equal as its prime factors allow; smallest first.

    even_shape(256, 2) == (16, 16); even_shape(128, 3) == (4, 4, 8).
    """
    sizes = [1] * dimensions
    for factor in reversed(_prime_factors(chips)):
        sizes.sort()
        sizes[0] *= factor
    return tuple(sorted(sizes))


def _prime_factors(number: int) -> list[int]:
    factors, divisor = [], 2
    while number > 1:
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        divisor += 1
    return factors


def _tier(group: Group, shape: tuple[int, ...], total: float, hardware: HardwareProfile) -> InnerTier:
    """Bandwidth of one group on a slice of this shape.

    With l the one-way rate of a link (a chip has two a dimension and `total` over all of them):

        ring over a run:   2 l / gap where it wraps, l / gap on a line; dimensions add up
        all-to-all:        a device that spreads b bytes over a run of n loads the busiest link with b n / (8 l) seconds
                           on a wrapped run, b n / (4 l) on a line; dimensions work side by side, the slowest counts

    A group with gaps shares its links with the groups between. The devices of one chip form an innermost run that the
    chip's whole ICI rate serves (no figure for the link inside a chip is published for all chips).
    """
    per_chip = hardware.devices_per_chip
    link = total / (hardware.intra.links_per_chip or 2 * len(shape)) / per_chip
    start, stop = group.stride, group.stride * group.size
    inside = _extent(start, stop, 1, per_chip)
    rate = np.where(inside > 1, total, 0.0)
    hops = inside - 1
    seconds_a_byte = np.where(inside > 1, 1.0 / total, 0.0)
    for run in _runs(group, shape, hardware):
        extent, gap, wraps, busy = run.extent, run.gap, run.wraps, run.extent > 1
        rate = rate + np.where(busy, np.where(wraps, 2.0, 1.0) * link / gap, 0.0)
        hops = hops + np.where(busy, np.where(wraps, extent / 2, extent - 1) * gap, 0.0)
        run_s = extent * gap / (np.where(wraps, 8.0, 4.0) * link)
        seconds_a_byte = np.maximum(seconds_a_byte, np.where(busy, run_s, 0.0))
    inner = _extent(start, stop, 1, per_chip * prod(shape))
    spread = 1.0 / np.where(seconds_a_byte > 0, seconds_a_byte, 1.0 / total)
    return InnerTier(inner, np.where(rate > 0, rate, total), hops, spread)


def _runs(group: Group, shape: tuple[int, ...], hardware: HardwareProfile) -> Iterator[Run]:
    """The group's run in each dimension of a slice of this shape, the first dimension innermost."""
    start, stop = group.stride, group.stride * group.size
    position = hardware.devices_per_chip
    multiple = hardware.intra.wrap_multiple or 1
    # the optical switches of three-dimensional tori join whole cubes: a slice of parts of one is a mesh
    closes = hardware.intra.torus_dimensions != 3 or all(size % multiple == 0 for size in shape)
    for size in shape:
        extent = _extent(start, stop, position, position * size)
        gap = np.maximum(np.minimum(start / position, float(size)), 1.0)
        wraps = (extent >= size) & (size % multiple == 0) & (size > 2) & closes
        yield Run(size, extent, gap, wraps)
        position *= size


def _extent(start: Column, stop: Column, low: float, high: float) -> Column:
    """How many of the group's ranks differ only within positions [low, high)."""
    extent: Column = np.maximum(np.minimum(stop, high) / np.maximum(start, low), 1.0)
    return extent


def _pick(tiers: list[InnerTier], best: NDArray[np.intp]) -> InnerTier:
    def chosen(field: str) -> Column:
        columns = [getattr(tier, field) for tier in tiers]
        return reduce(lambda kept, pair: np.where(best == pair[0], pair[1], kept), enumerate(columns), columns[0])

    return InnerTier(chosen("inner"), chosen("bytes_per_s"), chosen("hops"), chosen("spread_bytes_per_s"))
