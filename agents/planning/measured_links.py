"""Links that a trace shows to be degraded: what plans for that machine are projected with in place of the datasheet.

Only a degraded link counts: it holds up every collective that crosses it, whatever the plan, until it is repaired. A
link in order is projected with the datasheet and its calibrated efficiency, and no measurement raises a figure.
"""

from collections.abc import Sequence
from math import log2
from typing import Literal

from pydantic import Field

from agents.planning.origins import Origins
from agents.wording import quoted
from projector.specs.hardware import Figure, HardwareProfile
from projector.specs.record import Record
from projector.units import GIGA
from traces.cross_rank.placed import LOSS_EACH_DOUBLING, judged
from traces.job_types import LinkRate
from traces.messages import pattern_of
from traces.summary_types import TraceSummary

_PATH = {"scale_up": "intra.bytes_per_s_one_way", "scale_out": "inter.bytes_per_s_one_way"}
_RANKS_SHOWN = 8
_REACH = {"scale_up": "inside a domain", "scale_out": "between domains"}


class MeasuredLink(Record):
    """What takes the place of a datasheet figure. bytes_per_s_one_way: per chip, before the link efficiency."""

    tier: Literal["scale_up", "scale_out"]
    bytes_per_s_one_way: float = Field(gt=0)
    why: str


def measured_links(summary: TraceSummary, hardware: HardwareProfile) -> tuple[MeasuredLink, ...]:
    """The slowest degraded link of each tier, as a bandwidth that projects what was measured; () without one."""
    slowest: dict[str, MeasuredLink] = {}
    for link in judged(summary.links, hardware):
        found = _measured(link, hardware) if link.degraded else None
        known = slowest.get(found.tier) if found is not None else None
        if found is not None and (known is None or found.bytes_per_s_one_way < known.bytes_per_s_one_way):
            slowest[found.tier] = found
    return tuple(slowest[tier] for tier in sorted(slowest))


def with_measured_links(hardware: HardwareProfile, links: Sequence[MeasuredLink]) -> HardwareProfile:
    """The profile with measured bandwidths in place of the datasheet's, never above them."""
    for link in links:
        part = hardware.intra if link.tier == "scale_up" else hardware.inter
        datasheet = part.bytes_per_s_one_way
        if datasheet is None or link.bytes_per_s_one_way >= datasheet.value:
            continue
        figure = Figure(
            value=link.bytes_per_s_one_way,
            source=f"measured in the trace ({link.why}); datasheet {datasheet.value / GIGA:g} GB/s",
            retrieved=datasheet.retrieved,
        )
        changed = part.model_copy(update={"bytes_per_s_one_way": figure})
        hardware = hardware.model_copy(update={"intra" if link.tier == "scale_up" else "inter": changed})
    return hardware


def resolve_links(
    summary: TraceSummary | None, hardware: HardwareProfile | None, moved: bool, origins: Origins
) -> tuple[MeasuredLink, ...]:
    """The degraded links that plans are projected with, said aloud; of another machine they are only told.

    hardware: the chip planned for, None where the catalogue lacks it. moved: the trace is of another machine.
    """
    if summary is None:
        return ()
    if hardware is None or moved:
        told = [f"a degraded link in the trace ({_shown(link)})" for link in summary.links if link.degraded]
        origins.warnings += [f"{link}: plans are projected without it" for link in told]
        return ()
    found = measured_links(summary, hardware)
    for link in found:
        datasheet = hardware.figures()[_PATH[link.tier]]
        rate = f"{link.bytes_per_s_one_way / GIGA:.3g} GB/s"
        whole = f"{datasheet.value / GIGA:.3g} GB/s" if datasheet is not None else "the datasheet's figure"
        where = _REACH[link.tier]
        origins.assumed(
            f"hardware.{_PATH[link.tier]}",
            rate,
            f"a link {where} is degraded, and every plan that crosses it waits for it ({link.why})",
            f"once it is repaired, with {whole}, plans that communicate {where} are faster",
        )
        origins.warnings.append(
            f"a degraded link ({link.why}): plans are projected with {rate} one way {where} until it is repaired"
        )
    return found


def projected_ratio(link: LinkRate, hardware: HardwareProfile) -> float | None:
    """Measured bandwidth of a link over what the projector takes for it; None where the chip states no peak.

    The projector takes figure * efficiency, and for a ring over o domains 1 / loss of that, loss being
    1 + LOSS_EACH_DOUBLING log2 o; the peak of the group is proportional to the figure. So
    measured / peak = ratio * efficiency / loss.
    """
    if link.peak_frac is None or link.tier == "unknown":
        return None
    loss = 1.0
    if link.tier == "scale_out" and link.kinds and pattern_of(link.kinds[0]) == "ring":
        domain = hardware.intra.max_domain_chips * hardware.devices_per_chip
        loss += LOSS_EACH_DOUBLING * log2(len({rank // domain for rank in link.ranks}))
    return link.peak_frac * loss / hardware.calibration.link_efficiency_frac


def _measured(link: LinkRate, hardware: HardwareProfile) -> MeasuredLink | None:
    """The figure that makes the projector see the link as it was measured; None where the chip states no peak."""
    datasheet = hardware.figures().get(_PATH.get(link.tier, ""))
    ratio = projected_ratio(link, hardware)
    if datasheet is None or ratio is None or link.tier == "unknown":
        return None
    figure = min(datasheet.value * ratio, datasheet.value)
    return MeasuredLink(tier=link.tier, bytes_per_s_one_way=figure, why=_shown(link))


def _shown(link: LinkRate) -> str:
    """The link and why it counts as degraded; the group's name is foreign text."""
    ranks = ", ".join(map(str, link.ranks[:_RANKS_SHOWN])) + (", ..." if len(link.ranks) > _RANKS_SHOWN else "")
    return f"group '{quoted(link.group)}'{f' of ranks {ranks}' if ranks else ''}: {quoted(link.why, 300)}"
