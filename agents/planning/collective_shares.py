"""Every kind of collective that was seen: what nothing hides, what kernels hide, and what it is held up by.

An operator table tells by its figures: a collective that keeps HBM busy is held up by HBM, another one by its links or
peers. Elsewhere sizes and ranks tell: messages too small to fill a link wait for its latency; where several ranks were
recorded, time before the last of them came is waiting; a link at four tenths of its peak or more is at work. All else
is unknown. None of this decides a class: rates change with the clock, classes must not.
"""

from collections import defaultdict
from typing import Final

from agents.diagnosis_parts import CollectiveLimiter, CollectiveShare
from agents.planning.op_level import OpGroup, OpLevel
from agents.planning.signals import SMALL_MESSAGE_BYTES, Signals
from agents.wording import percent, quoted
from projector.breakdown import Axis
from traces.cross_rank.placed import judged
from traces.summary_types import CollectiveTime, TraceSummary

# what large messages reach of a link's peak: calibrated efficiencies of the catalogue lie between 0.6 and 0.9
BUSY_LINK_FRAC: Final = 0.4
ABOVE_PEAK_FRAC: Final = 1.05


def collective_shares(summary: TraceSummary, signals: Signals) -> tuple[CollectiveShare, ...]:
    """By kind and axis, what is exposed most first; from the operator table where there is one."""
    ops = signals.ops
    found = _of_rows(ops) if ops is not None and ops.collectives else _of_events(summary, signals)
    return tuple(sorted(found, key=lambda one: (-one.exposed_frac, -one.hidden_frac, one.collective, one.axis)))


def projected_collectives(signals: Signals) -> tuple[CollectiveShare, ...]:
    """Of a projected step, which knows axes and no kinds."""
    return tuple(
        CollectiveShare(
            collective="all",
            axis=axis,
            count=0,
            exposed_frac=signals.axes_exposed.get(axis, 0.0),
            hidden_frac=max(0.0, total - signals.axes_exposed.get(axis, 0.0)),
            limiter="link",
            basis="the cost model: latency and bytes over the links of the axis",
        )
        for axis, total in sorted(signals.axes_total.items(), key=lambda item: (-item[1], item[0]))
        if total > 0
    )


def _of_rows(ops: OpLevel) -> list[CollectiveShare]:
    return [
        CollectiveShare(
            collective=quoted(group.name),
            axis="unknown",
            count=group.count,
            exposed_frac=group.share * ops.exposed_frac,
            hidden_frac=group.share * (1 - ops.exposed_frac),
            limiter=_row_limiter(group),
            basis=_row_basis(group),
        )
        for group in ops.collectives
    ]


def _row_limiter(group: OpGroup) -> CollectiveLimiter:
    hbm, link = group.limiters.get("hbm", 0.0), group.limiters.get("link", 0.0)
    if max(hbm, link) < group.share / 2:
        return "unknown"
    return "hbm" if hbm > link else "link"


def _row_basis(group: OpGroup) -> str:
    hbm = group.limiters.get("hbm", 0.0) / group.share if group.share else 0.0
    link = group.limiters.get("link", 0.0) / group.share if group.share else 0.0
    rest = max(0.0, 1 - hbm - link)
    told = f"operator table: {percent(hbm)} of its time keeps HBM busy, {percent(link)} waits for links or peers"
    return told + (f", {percent(rest)} has no cost" if rest > 0.005 else "")


def _of_events(summary: TraceSummary, signals: Signals) -> list[CollectiveShare]:
    """Shares are split in proportion to the collectives' own times, which may overlap one another."""
    groups: dict[tuple[str, Axis], list[CollectiveTime]] = defaultdict(list)
    for entry in summary.collectives:
        groups[entry.collective, entry.axis].append(entry)
    exposed_ns = sum(entry.exposed_ns for entry in summary.collectives)
    hidden_ns = sum(max(0, entry.total_ns - entry.exposed_ns) for entry in summary.collectives)
    found = []
    for (collective, axis), entries in groups.items():
        own_exposed = sum(entry.exposed_ns for entry in entries)
        own_hidden = sum(max(0, entry.total_ns - entry.exposed_ns) for entry in entries)
        limiter, basis = _limiter(entries, axis, summary, signals)
        found.append(
            CollectiveShare(
                collective=quoted(collective),
                axis=axis,
                count=sum(entry.count for entry in entries),
                exposed_frac=signals.shares.exposed_communication * (own_exposed / exposed_ns) if exposed_ns else 0.0,
                hidden_frac=signals.shares.hidden_communication * (own_hidden / hidden_ns) if hidden_ns else 0.0,
                limiter=limiter,
                basis=basis,
            )
        )
    return found


def _limiter(
    entries: list[CollectiveTime], axis: Axis, summary: TraceSummary, signals: Signals
) -> tuple[CollectiveLimiter, str]:
    """(what holds these collectives up, why that is said)."""
    waiting = _waiting_part(axis, summary)
    if waiting is not None and waiting >= 0.5:
        return (
            "waiting",
            f"{percent(waiting)} of the ranks' time in matched collectives passes before the last one came",
        )
    sized = [entry for entry in entries if entry.message_bytes is not None and entry.count]
    time_ns, sized_ns = sum(e.total_ns for e in entries), sum(e.total_ns for e in sized)
    small_ns = sum(e.total_ns for e in sized if (e.message_bytes or 0) / e.count < SMALL_MESSAGE_BYTES)
    if time_ns and small_ns >= time_ns / 2:
        return "waiting", "messages below 256 KiB: the latency of a link, not its rate"
    kinds, groups = {entry.collective for entry in entries}, {entry.group for entry in entries}
    rates = [
        link.peak_frac
        for link in judged(summary.links, signals.chip)
        if link.peak_frac is not None and link.axis == axis and link.group in groups and kinds & set(link.kinds)
    ]
    if rates:
        best = max(rates)
        if best > ABOVE_PEAK_FRAC:
            return "unknown", f"{percent(best)} of the link's peak cannot be: sizes or hardware are not what they seem"
        if best >= BUSY_LINK_FRAC:
            return "link", f"large messages reach {percent(best)} of the link's peak"
        return "unknown", f"large messages reach {percent(best)} of the link's peak: a slow link, or a slow peer"
    if sized_ns < time_ns / 2:
        return "unknown", "the trace states no message sizes"
    return "unknown", "no peak of the links is known to compare with"


def _waiting_part(axis: Axis, summary: TraceSummary) -> float | None:
    """Part of the time in collectives matched over ranks that is waiting for the last one; None: none was matched."""
    skews = [skew for skew in summary.skew if skew.axis == axis]
    waiting = sum(skew.waiting_ns for skew in skews)
    whole = waiting + sum(skew.transfer_ns * len(skew.ranks) for skew in skews)
    return waiting / whole if whole else None
