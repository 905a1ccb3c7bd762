"""Which machine is planned for: the request's cluster, otherwise what the trace implies, and chips to compare on."""

from dataclasses import dataclass

from agents.planning.conflicts import LEAST_SURE
from agents.planning.origins import Origins
from agents.planning.request_checks import nothing_to_plan
from agents.request import PlanRequest
from agents.wording import quoted
from projector import catalog
from projector.errors import InvalidDescription
from projector.search_space import usable_cluster
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from traces.summary_types import Inferred, TraceSummary

COMPARE_FIRST = ("tpu-v5p", "tpu-v6e", "h100-sxm", "b200")
UNNAMED_CHIP = "unnamed"


@dataclass(frozen=True)
class Placed:
    """hardware None: not in the catalogue. moved: the trace was recorded on another chip or device count.

    capped: constraints.max_chips left only a part of the cluster.
    """

    cluster: ClusterSpec
    hardware: HardwareProfile | None
    devices: int
    moved: bool
    capped: bool


def resolve_cluster(request: PlanRequest, summary: TraceSummary | None, origins: Origins) -> Placed:
    """The cluster of the job. A stated one wins over the trace; where they differ, the trace only diagnoses."""
    if request.cluster is not None:
        return _stated(request.cluster, request, summary, origins)
    if summary is None:
        raise nothing_to_plan(request)
    return _implied(request, summary, origins)


def compare_chips(requested: tuple[str, ...], own: HardwareProfile | None) -> tuple[str, ...]:
    """Ids of the chips to compare on, without the own one: as requested, otherwise one TPU and one GPU."""
    own_id = own.id if own else None
    if requested:
        ids = [catalog.chip(name).id for name in requested]
        return tuple(dict.fromkeys(name for name in ids if name != own_id))
    known = {profile.id: profile for profile in catalog.chips()}
    order = [known[name] for name in COMPARE_FIRST if name in known]
    order += [profile for profile in catalog.chips() if profile not in order]
    chosen: dict[str, str] = {}
    for profile in order:
        if profile.id != own_id:
            chosen.setdefault(profile.kind, profile.id)
    return tuple(chosen[kind] for kind in ("tpu", "gpu") if kind in chosen)


def _stated(stated: ClusterSpec, request: PlanRequest, summary: TraceSummary | None, origins: Origins) -> Placed:
    hardware = catalog.chip(stated.chip)
    origins.stated("chip", hardware.id, "request.cluster.chip")
    origins.stated("chips", stated.chips, "request.cluster.chips")
    stated = stated.model_copy(update={"chip": hardware.id})
    cluster = _capped(stated, hardware, request, origins)
    moved = cluster.chips != stated.chips
    devices = cluster.chips * hardware.devices_per_chip
    if summary is not None:
        seen, seen_name = _traced_chip(summary)
        world = summary.implied.world_size
        only = "the trace gives the diagnosis, not the times"
        chip_name = summary.implied.chip_name
        if chip_name is not None and seen_name and (seen is None or seen.id != hardware.id):
            origins.warnings.append(
                f"the trace was recorded on '{quoted(seen_name)}', the request plans for {hardware.id} "
                f"(confidence {chip_name.confidence:.2f} in the former); the request wins: {only}"
            )
            moved = True
        if world is not None and world.value != devices and not _may_be_part(world, devices):
            origins.warnings.append(
                f"the trace was recorded on {world.value} devices, the request plans for {devices} "
                f"(confidence {world.confidence:.2f} in the former); the request wins: {only}"
            )
            moved = True
    return Placed(cluster, hardware, devices, moved, capped=cluster.chips != stated.chips)


def _may_be_part(world: Inferred[int], devices: int) -> bool:
    """Whether the trace only shows a group of the job: the world is not stated in it, and the request's is larger."""
    return world.confidence <= LEAST_SURE and world.value < devices


def _capped(
    cluster: ClusterSpec, hardware: HardwareProfile | None, request: PlanRequest, origins: Origins
) -> ClusterSpec:
    """The part of the cluster that constraints.max_chips leaves."""
    usable = usable_cluster(cluster, request.constraints, hardware)
    if usable.chips != cluster.chips:
        limit = request.constraints.max_chips
        origins.warnings.append(f"constraints.max_chips {limit} leaves {usable.chips} of {cluster.chips} chips")
    return usable


def _implied(request: PlanRequest, summary: TraceSummary, origins: Origins) -> Placed:
    hardware, name = _traced_chip(summary)
    chip_name = summary.implied.chip_name
    if hardware is not None and chip_name is not None:
        origins.implied(
            "chip", chip_name.model_copy(update={"value": hardware.id}), f"{hardware.id} ('{quoted(name)}')"
        )
    else:
        origins.assumed(
            "cluster.chip",
            quoted(name) if name else "unknown",
            "the catalogue has no such chip" if name else "the trace names no chip",
            "with a known chip memory and times are computed; without it the measured step is only scaled",
        )
    devices = _world_size(request, summary, origins)
    per_chip = hardware.devices_per_chip if hardware else 1
    if devices % per_chip:
        raise InvalidDescription(
            f"the trace shows {devices} devices, {hardware.id if hardware else ''} has {per_chip} a chip",
            hint="state cluster.chips",
        )
    whole = ClusterSpec(chip=hardware.id if hardware else quoted(name) or UNNAMED_CHIP, chips=devices // per_chip)
    cluster = _capped(whole, hardware, request, origins)
    capped = cluster.chips != whole.chips
    return Placed(cluster, hardware, cluster.chips * per_chip, moved=capped, capped=capped)


def _traced_chip(summary: TraceSummary) -> tuple[HardwareProfile | None, str]:
    """The chip the trace names, in the catalogue or not, and its name there."""
    named = summary.implied.chip_name
    if named is None or not named.value.strip():
        return None, ""
    hbm = summary.implied.hbm_bytes
    return catalog.match_chip(named.value, float(hbm.value) if hbm else None), named.value


def _world_size(request: PlanRequest, summary: TraceSummary, origins: Origins) -> int:
    world = summary.implied.world_size
    if world is not None:
        origins.implied("world_size", world, str(world.value))
        return world.value
    if request.current_plan is not None:
        return request.current_plan.devices
    count = max(len(summary.ranks), 1)
    origins.assumed(
        "cluster.chips",
        count,
        "the trace does not say how many devices the job has; the ranks it holds were counted",
        "every layout multiplies to the device count: with more devices all proposals change; state cluster.chips",
    )
    return count
