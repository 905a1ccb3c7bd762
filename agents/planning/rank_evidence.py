"""Evidence from what ranks show together: waiting inside collectives, stragglers, degraded links."""

from agents.findings import Evidence
from agents.wording import percent, quoted
from projector.specs.hardware import HardwareProfile
from projector.units import GIGA
from traces.cross_rank.placed import judged
from traces.summary_types import TraceSummary

_SHOWN = 3
_LEAST_WAITING = 0.01


def waiting_share(summary: TraceSummary) -> float | None:
    """Share of the windows in which ranks wait inside collectives for others, nothing hiding it; None where unknown.

    The most it can be: waiting in two groups at once counts twice, up to all exposed communication. Left out is
    pipeline traffic, where a stage waits for its turn.
    """
    compared = [skew for skew in summary.skew if skew.axis != "pp"]
    if not compared or not summary.window_ns:
        return None
    waiting_ns = sum(skew.exposed_waiting_ns for skew in compared)
    return min(waiting_ns, summary.exposed_communication_ns) / summary.window_ns


def imbalance_share(summary: TraceSummary, chip: HardwareProfile | None) -> float | None:
    """The part of `waiting_share` that ranks are to blame for: none where a degraded link, and no straggler, shows.

    Ranks behind a slow link come late to whatever follows, however even their own work is.
    """
    straggling = any(one.straggler for one in summary.lateness)
    if not straggling and any(link.degraded for link in judged(summary.links, chip)):
        return None
    return waiting_share(summary)


def rank_evidence(summary: TraceSummary, chip: HardwareProfile | None) -> tuple[Evidence, ...]:
    """How long ranks wait for one another, who holds them up, and which links are slow; () for one rank."""
    return (*_waiting(summary), *_stragglers(summary), *_links(summary, chip))


def _waiting(summary: TraceSummary) -> list[Evidence]:
    share = waiting_share(summary)
    if share is None or share < _LEAST_WAITING:
        return []
    claim = f"Ranks wait {percent(share)} of the window inside collectives for the last one to come."
    ref = "summary.skew[].exposed_waiting_ns"
    return [Evidence(id="ev-waiting", claim=claim, value=share, unit="fraction", source="measured", ref=ref)]


def _stragglers(summary: TraceSummary) -> list[Evidence]:
    """Value: the share of its collectives that it entered last."""
    named = sorted((one for one in summary.lateness if one.straggler), key=lambda one: (-one.late_ns, one.rank))
    more = f" ({len(named) - _SHOWN} more ranks do)" if len(named) > _SHOWN else ""
    return [
        Evidence(
            id=f"ev-straggler-{number}",
            claim=(
                f"Rank {one.rank} holds the others up, last to {one.last_count:,} of {one.matched:,} collectives: "
                f"{quoted(one.why, 400)}.{more if number == _SHOWN else ''}"
            ),
            value=one.last_count / one.matched,
            unit="fraction",
            source="measured",
            ref=f"summary.lateness[rank={one.rank}]",
        )
        for number, one in enumerate(named[:_SHOWN], 1)
    ]


def _links(summary: TraceSummary, chip: HardwareProfile | None) -> list[Evidence]:
    degraded = [link for link in judged(summary.links, chip) if link.degraded]
    more = f" ({len(degraded) - _SHOWN} more links are)" if len(degraded) > _SHOWN else ""
    return [
        Evidence(
            id=f"ev-degraded-link-{number}",
            claim=(
                f"The link of group '{quoted(link.group)}' is degraded: {quoted(link.why, 300)}."
                f"{more if number == _SHOWN else ''}"
            ),
            value=link.bus_bytes_per_s / GIGA,
            unit="GB/s",
            source="measured",
            ref="summary.links[].bus_bytes_per_s",
        )
        for number, link in enumerate(degraded[:_SHOWN], 1)
    ]
