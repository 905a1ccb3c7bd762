"""Routes: which links a process group crosses, as two tiers: the tightly coupled domain and the network between."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from projector.cost.torus import InnerTier, torus_tiers
from projector.errors import InvalidDescription
from projector.graph.columns import Column, largest_divisor_at_most
from projector.graph.groups import Group
from projector.graph.operator import GroupName
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile


@dataclass(frozen=True)
class Route:
    """How the ranks of one group reach each other. Columns of shape [n]; bytes/s are one way and per device.

    inner     ranks of the group inside one domain, outer: domains it spans; size = inner * outer
    inner_bytes_per_s        rate of a ring over the inner ranks
    inner_hop_s, inner_hops  latency of one step, and steps of one pass over the inner ranks
    direct                   every inner rank reaches every other in one step (switch, full mesh)
    spread_bytes_per_s       rate at which a device can send distinct data to all inner ranks (all-to-all)
    outer_bytes_per_s, outer_hop_s   rate and latency between domains
    outer_ring_bytes_per_s           rate of a ring over the domains
    """

    inner: Column
    outer: Column
    inner_bytes_per_s: Column
    inner_hop_s: float
    inner_hops: Column
    direct: bool
    spread_bytes_per_s: Column
    outer_bytes_per_s: float
    outer_ring_bytes_per_s: Column
    outer_hop_s: float

    @property
    def size(self) -> Column:
        """Ranks of the group."""
        return self.inner * self.outer


def routes(
    groups: Mapping[GroupName, Group], cluster: ClusterSpec, hardware: HardwareProfile
) -> dict[GroupName, Route]:
    """The route of every group on this cluster.

    Devices fill domains in the order of `projector.graph.groups`: an NVLink domain or a torus slice holds consecutive
    ranks, so inner axes stay on its links and outer ones cross the network. Bandwidth is the datasheet figure times
    the calibrated link efficiency, shared by the devices of a chip.
    InvalidDescription where a group would need links or a network whose rate the chip file does not state.
    """
    rate = _fabric_bytes_per_s(groups, hardware)
    if hardware.intra.kind == "torus":
        tiers = torus_tiers(groups, rate, cluster, hardware)
    else:
        tiers = {name: _switch_tier(group, rate, cluster, hardware) for name, group in groups.items()}
    return {name: _route(tiers[name], group, hardware) for name, group in groups.items()}


def _fabric_bytes_per_s(groups: Mapping[GroupName, Group], hardware: HardwareProfile) -> float:
    """One-way rate of a chip's links; any number where no group needs them."""
    figure = hardware.intra.bytes_per_s_one_way
    if figure is not None:
        return figure.value
    widest = max(float(group.size.max()) for group in groups.values())
    if widest > 1:
        raise InvalidDescription(
            f"{hardware.id} states no bandwidth between its chips, and a group of {widest:.0f} devices needs it",
            hint="project plans of one device, or add the figure to the chip's file",
        )
    return 1.0


def _switch_tier(group: Group, rate: float, cluster: ClusterSpec, hardware: HardwareProfile) -> InnerTier:
    """Ranks of the group inside one domain: the largest divisor of its size that fits beside its stride.

    On a fully connected mesh each pair of chips has its own link, so a group on c of the domain's chips uses
    (c - 1) / (domain - 1) of a chip's rate; inside one chip, for want of a figure, the chip's whole rate.
    A bridge joins neighbouring chips two by two: groups of two neighbours use it in place of the fabric.
    """
    intra, devices = hardware.intra, hardware.devices_per_chip
    domain_devices = min(intra.max_domain_chips, cluster.chips) * devices
    inner = largest_divisor_at_most(group.size, domain_devices / group.stride)
    rates = np.full_like(inner, rate / devices)
    if intra.kind == "mesh":
        chips = np.maximum(inner * np.minimum(group.stride, devices) / devices, 1.0)
        rates = np.where(chips > 1, rates * (chips - 1) / max(intra.max_domain_chips - 1, 1), rate)
    if intra.bridge_bytes_per_s_one_way is not None:
        neighbours = (group.stride == 1) & (group.size == 2)
        rates = np.where(neighbours, intra.bridge_bytes_per_s_one_way.value / devices, rates)
    return InnerTier(inner=inner, bytes_per_s=rates, hops=inner - 1, spread_bytes_per_s=rates)


def _route(tier: InnerTier, group: Group, hardware: HardwareProfile) -> Route:
    efficiency = hardware.calibration.link_efficiency_frac
    outer = group.size / tier.inner
    figure = hardware.inter.bytes_per_s_one_way
    if figure is None and (outer > 1).any():
        raise InvalidDescription(
            f"{hardware.id} states no bandwidth between domains, and a group of {group.size.max():.0f} devices "
            f"spans {outer.max():.0f} of them",
            hint=f"keep the plan inside one domain of {hardware.intra.max_domain_chips} chips",
        )
    outer_rate = 1.0 if figure is None else figure.value / hardware.devices_per_chip * efficiency
    return Route(
        inner=tier.inner,
        outer=outer,
        inner_bytes_per_s=tier.bytes_per_s * efficiency,
        inner_hop_s=hardware.intra.latency_s,
        inner_hops=tier.hops,
        direct=hardware.intra.kind != "torus",
        spread_bytes_per_s=tier.spread_bytes_per_s * efficiency,
        outer_bytes_per_s=outer_rate,
        outer_ring_bytes_per_s=outer_rate / (1 + hardware.calibration.scale_loss * np.log2(outer)),
        outer_hop_s=hardware.inter.latency_s,
    )
