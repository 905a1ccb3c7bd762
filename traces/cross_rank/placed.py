"""Links put beside what they should reach: their sister groups always, the hardware where it is known.

Tier of a group: scale_up where all its ranks lie in one tightly coupled domain of the chip, scale_out otherwise,
unknown without a list of ranks or without hardware. Ranks are taken to fill domains in order, as launchers do.

A link is degraded where its bus bandwidth, waiting removed, is far below
  its sisters   below 0.7 of the median of the other groups of its axis, size, tier, traffic pattern and spacing of
                ranks, and below their lower Tukey fence; below half where it has only one sister
  its peak      below half of what the chip's links reach with messages of that size: peak times calibrated link
                efficiency, less what a ring over many domains loses, with the latency of its steps
and its best message is below 0.9 of the same: a link that is merely busy at times reaches it once.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import log2
from typing import Final

import numpy as np

from projector.specs.hardware import HardwareProfile
from projector.units import GIGA
from traces.job_types import LinkRate, Tier
from traces.messages import Pattern, pattern_of
from traces.summary_types import TraceSummary

BELOW_SISTERS_FRAC: Final = 0.7
BELOW_ONE_SISTER_FRAC: Final = 0.5
BELOW_PEAK_FRAC: Final = 0.5
BEST_FRAC: Final = 0.9
LOSS_EACH_DOUBLING: Final = 0.15
"""What a ring over domains loses each time their number doubles, as the projector's routes have it."""

_ABOVE_PEAK_FRAC: Final = 1.05
_MOST_SUSPECTS = 2
_FENCE: Final = 1.5


def place_links(summary: TraceSummary, hardware: HardwareProfile | None) -> TraceSummary:
    """The summary with tier, peak and verdict of every link; None where the chip is not known."""
    return summary.model_copy(update={"links": judged(summary.links, hardware)})


def judged(links: Sequence[LinkRate], hardware: HardwareProfile | None) -> tuple[LinkRate, ...]:
    """The links with tier, peak and verdict, in the same order."""
    placed = [_placed(link, hardware) for link in links]
    kin: dict[tuple[object, ...], list[float]] = defaultdict(list)
    for link in placed:
        if _comparable(link):
            kin[_kin(link)].append(link.bus_bytes_per_s)
    why = [_below_sisters(link, kin) or _below_peak(link, hardware) for link in placed]
    shared = _ranks_in_all([link for link, reason in zip(placed, why, strict=True) if reason])
    return tuple(
        link.model_copy(update={"degraded": bool(reason), "why": reason + shared if reason else _above_peak(link)})
        for link, reason in zip(placed, why, strict=True)
    )


def _placed(link: LinkRate, hardware: HardwareProfile | None) -> LinkRate:
    tier: Tier = "unknown"
    peak: float | None = None
    if hardware is not None and link.ranks:
        domain = hardware.intra.max_domain_chips * hardware.devices_per_chip
        inside = Counter(rank // domain for rank in link.ranks)
        tier = "scale_up" if len(inside) == 1 else "scale_out"
        peak = _scale_up_peak(link, hardware) if len(inside) == 1 else _scale_out_peak(link, inside, hardware)
    frac = None if peak is None else link.bus_bytes_per_s / peak
    return link.model_copy(update={"tier": tier, "peak_bytes_per_s": peak, "peak_frac": frac})


def _scale_up_peak(link: LinkRate, hardware: HardwareProfile) -> float | None:
    """Bus bandwidth the links of a domain allow one device. On a torus it depends on the axes the group lies on: None.

    On a full mesh each pair of chips has its own link, so c of the domain's chips use (c - 1) / (domain - 1) of a
    chip's rate. A bridge joins devices 2k and 2k + 1.
    """
    intra, devices = hardware.intra, hardware.devices_per_chip
    if intra.bytes_per_s_one_way is None or intra.kind == "torus":
        return None
    first = min(link.ranks)
    if intra.bridge_bytes_per_s_one_way is not None and first % 2 == 0 and set(link.ranks) == {first, first + 1}:
        return intra.bridge_bytes_per_s_one_way.value / devices
    rate = intra.bytes_per_s_one_way.value
    chips = len({rank // devices for rank in link.ranks})
    if intra.kind == "mesh" and chips > 1:
        rate *= (chips - 1) / max(intra.max_domain_chips - 1, 1)
    return rate / devices


def _scale_out_peak(link: LinkRate, inside: Counter[int], hardware: HardwareProfile) -> float | None:
    """Bus bandwidth the network ports of a group allow: with i of its n ranks in each domain and b a device's port,

    ring         i b, as each port carries its share of the ring, and no more than the links inside the domain
    all-to-all   b (n - 1) / (n - i), as only that part of a message leaves the domain
    pair         b
    """
    figure, intra = hardware.inter.bytes_per_s_one_way, hardware.intra.bytes_per_s_one_way
    if figure is None:
        return None
    port = figure.value / hardware.devices_per_chip
    fewest, size = min(inside.values()), inside.total()
    pattern = _pattern(link)
    if pattern == "all_to_all":
        return port * (size - 1) / (size - fewest)
    if pattern == "ring" and fewest > 1:
        most = intra.value / hardware.devices_per_chip if intra is not None else fewest * port
        return min(fewest * port, most)
    return port


def _pattern(link: LinkRate) -> Pattern | None:
    return pattern_of(link.kinds[0]) if link.kinds else None


def _kin(link: LinkRate) -> tuple[object, ...]:
    """What two links must have in common to be expected to reach the same."""
    spacing = tuple(after - before for before, after in pairwise(sorted(link.ranks)))
    return link.axis, link.group_size, link.tier, _pattern(link), spacing


def _comparable(link: LinkRate) -> bool:
    """Whether a link may be set beside its sisters: two ranks may share a host or not, and only the hardware says."""
    return link.waiting_removed and (link.tier != "unknown" or _pattern(link) != "pair")


def _below_sisters(link: LinkRate, kin: Mapping[tuple[object, ...], Sequence[float]]) -> str:
    """Why a link is degraded beside its sisters, '' where it is not."""
    if not _comparable(link):
        return ""
    others = list(kin[_kin(link)])
    others.remove(link.bus_bytes_per_s)
    if not others:
        return ""
    usual = float(np.median(others))
    low, high = np.quantile(others, [0.25, 0.75]).tolist()
    frac = BELOW_SISTERS_FRAC if len(others) > 1 else BELOW_ONE_SISTER_FRAC
    if link.bus_bytes_per_s >= min(frac * usual, low - _FENCE * (high - low)):
        return ""
    if link.best_bus_bytes_per_s >= BEST_FRAC * usual:
        return ""
    sisters = "its sister group reaches" if len(others) == 1 else f"its {len(others)} sister groups reach"
    return f"{_measured(link)}; {sisters} {usual / GIGA:.3g} GB/s"


def _below_peak(link: LinkRate, hardware: HardwareProfile | None) -> str:
    """Why a link is degraded beside what the chip's links reach, '' where it is not or nobody knows.

    What an all-to-all reaches depends on its algorithm and on the sizes of single messages too much to be judged so.
    """
    if hardware is None or link.peak_bytes_per_s is None or not link.waiting_removed or not link.alone:
        return ""
    reachable = _reachable(link, link.peak_bytes_per_s, hardware)
    if _pattern(link) == "all_to_all" or link.bus_bytes_per_s >= BELOW_PEAK_FRAC * reachable:
        return ""
    if link.best_bus_bytes_per_s >= BEST_FRAC * reachable:
        return ""
    return (
        f"{_measured(link)}; {hardware.id} reaches about {reachable / GIGA:.3g} GB/s of its "
        f"{link.peak_bytes_per_s / GIGA:.3g} GB/s there"
    )


def _reachable(link: LinkRate, peak_bytes_per_s: float, hardware: HardwareProfile) -> float:
    """Bus bandwidth to expect of the median message.

    B bus bytes take B / (peak * efficiency / (1 + LOSS log2 o)) + steps, over o domains of i ranks; a ring has o - 1
    steps between domains and o (i - 1) inside, an all-reduce goes round twice.
    """
    rate = peak_bytes_per_s * hardware.calibration.link_efficiency_frac
    if _pattern(link) != "ring":
        return rate
    domain = hardware.intra.max_domain_chips * hardware.devices_per_chip
    domains = len({rank // domain for rank in link.ranks})
    rate /= 1 + LOSS_EACH_DOUBLING * log2(domains)
    if link.bus_bytes is None:
        return rate
    inside = len(link.ranks) - domains
    round_s = (domains - 1) * hardware.inter.latency_s + inside * hardware.intra.latency_s
    rounds = 2 if "all_reduce" in link.kinds else 1
    return link.bus_bytes / (link.bus_bytes / rate + rounds * round_s)


def _above_peak(link: LinkRate) -> str:
    peak = link.peak_bytes_per_s
    if peak is None or link.bus_bytes_per_s <= _ABOVE_PEAK_FRAC * peak:
        return ""
    return (
        f"{_measured(link)}, above the link's {peak / GIGA:.3g} GB/s: reduced inside a switch, or sizes or hardware "
        "are not what they seem"
    )


def _measured(link: LinkRate) -> str:
    plural = "s" if link.collectives > 1 else ""
    return f"{link.bus_bytes_per_s / GIGA:.3g} GB/s of bus bandwidth (median of {link.collectives:,} message{plural})"


def _ranks_in_all(degraded: Sequence[LinkRate]) -> str:
    """A clause naming the rank or two that all of several degraded links have in common."""
    if len(degraded) < 2:
        return ""
    common = sorted(set.intersection(*(set(link.ranks) for link in degraded)))
    if not 0 < len(common) <= _MOST_SUSPECTS:
        return ""
    named = " and ".join(f"rank {rank}" for rank in common)
    return f"; {named} {'is' if len(common) == 1 else 'are'} in all {len(degraded)} degraded groups"
