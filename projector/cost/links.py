"""Links: which tier of the fabric each axis of a plan crosses, and the rate its traffic gets there."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from projector.breakdown import Axis, AxisLink, LinkTier
from projector.cost.routes import Route
from projector.graph.operator import GroupName
from projector.specs.hardware import HardwareProfile

# The group whose collectives are an axis' traffic; behind it that of experts, which may be all there is. Experts trade
# with all ranks at once, the others in rings, and stages with their neighbour alone.
GROUPS: tuple[tuple[Axis, tuple[GroupName, ...]], ...] = (
    ("tp", ("tp", "etp")),
    ("cp", ("cp",)),
    ("ep", ("ep",)),
    ("fsdp", ("shard", "expert_shard")),
    ("dp", ("replica", "expert_replica")),
    ("pp", ("pp",)),
)


@dataclass(frozen=True)
class Links:
    """The routes of a batch on one chip's fabric; `of` reads those of one plan."""

    routes: Mapping[GroupName, Route]
    hardware: HardwareProfile

    def of(self, index: int, busy: frozenset[Axis]) -> tuple[AxisLink, ...]:
        """One entry an axis that communicates (`busy`) and a tier it crosses, innermost first."""
        return tuple(
            link
            for axis, names in GROUPS
            if axis in busy
            for link in self._crossed(axis, self._route(names, index), index)
        )

    def _route(self, names: tuple[GroupName, ...], index: int) -> Route:
        """The route of the first of the groups that has ranks to talk to, else of the last."""
        found = [self.routes[name] for name in names]
        return next((route for route in found if route.size[index] > 1), found[-1])

    def _crossed(self, axis: Axis, route: Route, index: int) -> Iterator[AxisLink]:
        inner, outer = float(route.inner[index]), float(route.outer[index])
        inner_rate = route.spread_bytes_per_s if axis == "ep" else route.inner_bytes_per_s
        outer_rate = route.outer_bytes_per_s if axis in ("ep", "pp") else float(route.outer_ring_bytes_per_s[index])
        tiers = ((inner, self._inside(), float(inner_rate[index])), (outer, self._between(), outer_rate))
        for ranks, tier, rate in tiers:
            if ranks > 1:
                yield AxisLink(
                    axis=axis,
                    tier=tier,
                    group_size=round(inner * outer),
                    ranks_per_domain=round(inner),
                    one_way_bytes_per_s=rate,
                )

    def _inside(self) -> LinkTier:
        """The fabric of a domain: NVIDIA's chips are the only ones behind a switch, AMD's the only full meshes."""
        fabric = self.hardware.intra.kind
        if fabric == "torus":
            return "ici" if self.hardware.kind == "tpu" else "neuronlink"
        return "nvlink" if fabric == "switch" else "xgmi" if fabric == "mesh" else "pcie"

    def _between(self) -> LinkTier:
        return "dcn" if self.hardware.kind == "tpu" else "nic"
