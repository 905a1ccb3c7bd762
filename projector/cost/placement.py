"""Placement: which ranks form the groups of an axis, and where on the fabric they lie, of one plan.

The order of devices is that of `projector.graph.groups`, the torus dimensions are those that `projector.cost.torus`
gives each axis: what projections are priced with, read off for people.
"""

from dataclasses import dataclass

from projector.breakdown import Axis
from projector.cost.links import GROUPS
from projector.cost.torus import torus_runs
from projector.graph.groups import Degrees, Group, groups
from projector.graph.operator import GroupName
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch


@dataclass(frozen=True)
class PlacedRun:
    """Ranks of a group along one torus dimension of `size` chips: `extent` of them, `gap` chips apart."""

    size: int
    extent: int
    gap: int
    wraps: bool


@dataclass(frozen=True)
class Placement:
    """Groups of `size` ranks, `stride` apart; runs: torus dimensions they lie along, () off a torus."""

    stride: int
    size: int
    runs: tuple[PlacedRun, ...] = ()

    def ranks(self, most: int) -> tuple[int, ...]:
        """The first ranks of the first group."""
        return tuple(range(0, self.stride * min(self.size, most), self.stride))


def placements(plan: ParallelismPlan, cluster: ClusterSpec, hardware: HardwareProfile | None) -> dict[Axis, Placement]:
    """The placement of every axis that has more than one rank; on an unknown chip the ranks alone.

    Of a serving plan with a prefill pool: of the engines that decode, whose ranks are counted by themselves.
    """
    found = groups(Degrees.of(PlanBatch.from_plans([plan])))
    runs = _runs(found, cluster, hardware)
    placed: dict[Axis, Placement] = {}
    for axis, names in GROUPS:
        name = next((name for name in names if found[name].size[0] > 1), None)
        if name is not None:
            group = found[name]
            placed[axis] = Placement(round(group.stride[0]), round(group.size[0]), runs.get(name, ()))
    return placed


def _runs(
    found: dict[GroupName, Group], cluster: ClusterSpec, hardware: HardwareProfile | None
) -> dict[GroupName, tuple[PlacedRun, ...]]:
    if hardware is None or hardware.intra.kind != "torus":
        return {}
    # any rate does: orders are compared by what they give of it
    return {
        name: tuple(
            PlacedRun(run.size, round(float(run.extent[0])), round(float(run.gap[0])), bool(run.wraps[0]))
            for run in runs
            if run.extent[0] > 1
        )
        for name, runs in torus_runs(found, 1.0, cluster, hardware).items()
    }
