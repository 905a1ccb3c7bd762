"""Which axis of a proposal crosses which links: the placement that its projection is priced with, in words."""

from collections.abc import Iterator

from agents.planning.job import Job
from agents.proposal_parts import AxisPlacement
from agents.wording import listed
from projector.breakdown import Axis, AxisLink, AxisTime, LinkTier, Projection
from projector.cost.placement import PlacedRun, Placement, placements
from projector.units import bytes_to_gb

MOST_RANKS = 8
BETWEEN: tuple[LinkTier, ...] = ("nic", "dcn")
TIER_WORDS: dict[LinkTier, str] = {
    "nvlink": "NVLink",
    "xgmi": "xGMI links",
    "pcie": "PCIe",
    "ici": "ICI",
    "neuronlink": "NeuronLink",
    "nic": "the network between nodes",
    "dcn": "the data-centre network between slices",
}


def axis_links(projection: Projection, job: Job) -> tuple[AxisPlacement, ...]:
    """One entry an axis with more than one rank and a tier it crosses, innermost first.

    Axes that never communicate are left out; of a plan with a prefill pool these are the engines that decode. With the
    model unknown the ranks are known and the rates are not.
    """
    times = {entry.axis: entry for entry in projection.breakdown.by_axis}
    placed = placements(projection.plan, job.cluster, job.hardware)
    found: list[AxisPlacement] = []
    for axis, placement in placed.items():
        crossed = [link for link in projection.links if link.axis == axis]
        if crossed or (not projection.links and axis in times):
            found += _entries(axis, placement, crossed, times.get(axis), projection, job)
    return tuple(found)


def _entries(
    axis: Axis, placed: Placement, links: list[AxisLink], time: AxisTime | None, projection: Projection, job: Job
) -> Iterator[AxisPlacement]:
    plan = projection.plan
    groups = max((plan.devices - plan.prefill_devices) // placed.size, 1)
    crossed: list[AxisLink | None] = [*links] or [None]
    for link in crossed:
        inside = link is not None and link.tier not in BETWEEN
        yield AxisPlacement(
            axis=axis,
            group_size=placed.size,
            stride=placed.stride,
            groups=groups,
            ranks=placed.ranks(MOST_RANKS),
            tier=None if link is None else link.tier,
            ranks_per_domain=None if link is None else link.ranks_per_domain,
            one_way_bytes_per_s=None if link is None else link.one_way_bytes_per_s,
            communication_s=0.0 if time is None else time.total_s,
            exposed_s=0.0 if time is None else time.exposed_s,
            wraps=all(run.wraps for run in placed.runs) if inside and placed.runs else None,
            text=f"{_group_text(axis, placed)} {_link_text(placed, link, job)}.",
        )


def _group_text(axis: Axis, placed: Placement) -> str:
    shown = placed.ranks(3 if placed.size > 4 else 4)
    last = placed.stride * (placed.size - 1)
    ranks = ", ".join(map(str, shown)) + (f" ... {last}" if placed.size > len(shown) else "")
    beside = "neighbouring ranks" if placed.stride == 1 else f"ranks {placed.stride} apart"
    return f"{axis}: groups of {placed.size} {beside} ({ranks}),"


def _link_text(placed: Placement, link: AxisLink | None, job: Job) -> str:
    if link is None:
        return "on links that are not projected, as the model or the chip is unknown"
    rate = f"{bytes_to_gb(link.one_way_bytes_per_s):.1f} GB/s one way a device"
    domains = link.group_size // link.ranks_per_domain
    if link.tier in BETWEEN:
        where = "slices" if link.tier == "dcn" else "domains of fast links"
        return f"over {domains} {where} on {TIER_WORDS[link.tier]}, {rate}"
    inside = f"{link.ranks_per_domain} of them inside" if domains > 1 else "inside"
    if placed.runs:
        runs = listed([_run_text(run) for run in placed.runs])
        return f"{inside} one slice on {TIER_WORDS[link.tier]}, along {runs}, {rate}"
    return f"{inside} one {TIER_WORDS[link.tier]} domain of {_domain(job)} devices, {rate}"


def _run_text(run: PlacedRun) -> str:
    shape = "closed to a ring" if run.wraps else "an open line"
    if run.extent == run.size and run.gap == 1:
        return f"a whole dimension of {run.size} chips ({shape})"
    gap = "" if run.gap == 1 else f", {run.gap} apart"
    return f"{run.extent} of the {run.size} chips of a dimension{gap} ({shape})"


def _domain(job: Job) -> int:
    assert job.hardware is not None, "a link has a rate only where the chip is known"
    return min(job.hardware.intra.max_domain_chips, job.cluster.chips) * job.hardware.devices_per_chip
