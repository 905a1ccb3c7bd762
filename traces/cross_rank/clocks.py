"""Clocks of the ranks, set against each other on collectives: whatever their hosts' clocks say, these end together.

For a rank r and a collective k, end[r, k] = true end[k] + offset[r] + noise, so the offsets of two ranks of a group
differ by the median difference of their ends. Groups are joined through the ranks they share, those whose collectives
are numbered first. A rank whose ends scatter as widely as the collectives last is left out of its group, and a group
that contradicts the clocks which better ones give is refused: what looks like one collective is none there.

Ends of a send and its receive agree only where the message is too large to be buffered; such pairs join ranks that no
collective joins, and are not checked. Drift within the window is left out; it shows in the spread.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.cross_rank.clock_tree import ClockTree
from traces.cross_rank.matching import Logs, Match
from traces.cross_rank.order import middle, together_ns
from traces.job_types import ClockOffset
from traces.messages import FILLS_A_LINK_BYTES
from traces.trace import Ints

_MOST_ASTRAY_FRAC: Final = 0.2
_SPREADS: Final = 5
_CANDIDATES = 5
_RANKS_SHOWN = 8


@dataclass(frozen=True, slots=True, eq=False)
class Aligned:
    """A match on the job's clock. All arrays are int64 of shape [ranks, collectives], end_ns [collectives].

    starts_ns  each rank's own start
    stray_ns   how far each rank's own end is from the common one
    end_ns     common end: the median over the ranks, of a pair the end of the receive
    """

    match: Match
    starts_ns: Ints
    stray_ns: Ints
    end_ns: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Clocks:
    """Offsets of the ranks that could be aligned, the matches on the common clock, and sentences about the others.

    spread_ns: for each rank the median distance of its ends from the common ones.
    parts: ranks that collectives join; offsets of different parts have nothing to do with each other.
    """

    offset_ns: dict[int, int]
    spread_ns: dict[int, int]
    matches: dict[int, int]
    parts: tuple[tuple[int, ...], ...]
    aligned: tuple[Aligned, ...]
    refused: tuple[str, ...]

    def offsets(self) -> tuple[ClockOffset, ...]:
        """The offsets as records, by rank."""
        return tuple(
            ClockOffset(rank=rank, offset_ns=offset, spread_ns=self.spread_ns[rank], matches=self.matches[rank])
            for rank, offset in sorted(self.offset_ns.items())
        )


def align(matches: Sequence[Match], logs: Logs) -> Clocks:
    """Clock offsets of the ranks the matches join, and the matches on the common clock."""
    refused: list[str] = []
    tree = ClockTree()
    kept: list[Match] = []
    for steady in sorted(_steady(matches, logs, refused), key=_reliability):
        match = steady.match
        if match.party.pair is None:
            gap = tree.contradiction_ns(steady.offset_ns)
            if gap > steady.tolerance_ns:
                why = f"their ends contradict the clocks that other groups give by {gap:,} ns"
                refused.append(f"{match.party.subject} cannot be matched between ranks: {why}")
                continue
            tree.join(steady.offset_ns)
        elif (match.column(logs, "message_bytes") >= FILLS_A_LINK_BYTES).all():
            tree.join(steady.offset_ns)
        kept.append(match)
    return _on_one_clock(kept, tree.parts(), logs, refused)


@dataclass(frozen=True, slots=True, eq=False)
class _Steady:
    """A match whose ends keep their distance.

    offset_ns: of each of its ranks against one of them. tolerance_ns: how far these may be from what others give.
    """

    match: Match
    offset_ns: dict[int, int]
    tolerance_ns: int


def _steady(matches: Sequence[Match], logs: Logs, refused: list[str]) -> list[_Steady]:
    """Each match without the ranks whose ends scatter as widely as its collectives last."""
    found = []
    for match in matches:
        ends = match.column(logs, "end_ns")
        shortest = match.column(logs, "duration_ns").min(axis=0)
        tolerance = int(together_ns(np.array(middle(shortest))))
        differences = ends - ends[_central(ends)]
        offsets = [middle(row) for row in differences]
        spreads = [middle(np.abs(row - offset)) for row, offset in zip(differences, offsets, strict=True)]
        good = [place for place, spread in enumerate(spreads) if spread <= tolerance or match.party.pair is not None]
        bad = [match.ranks[place] for place in range(len(spreads)) if place not in good]
        if bad:
            refused.append(
                f"{match.party.subject} cannot be matched on {len(bad)} ranks "
                f"({', '.join(map(str, bad[:_RANKS_SHOWN]))}): their ends scatter by {max(spreads):,} ns, as widely as "
                "the collectives last"
            )
        if len(good) > 1:
            tolerance = max(tolerance, _SPREADS * max(spreads[place] for place in good))
            match = Match(match.party, match.axis, tuple(match.ranks[i] for i in good), match.rows[good], match.by)
            found.append(_Steady(match, {match.ranks[i]: offsets[place] for i, place in enumerate(good)}, tolerance))
    return found


def _central(ends: Ints) -> int:
    """The rank whose ends differ from those of all others most steadily, among the first few."""

    half = (ends.shape[1] - 1) // 2

    def scatter(place: int) -> int:
        differences = ends - ends[place]
        middles = np.partition(differences, half, axis=1)[:, half, None]
        return middle(np.partition(np.abs(differences - middles), half, axis=1)[:, half])

    return min(range(min(len(ends), _CANDIDATES)), key=scatter)


def _reliability(steady: _Steady) -> tuple[bool, bool, int]:
    """Sort key: collectives before pairs, numbered before ordered ones, many before few."""
    match = steady.match
    return match.party.pair is not None, match.by == "order", -match.rows.shape[1]


def _on_one_clock(kept: Sequence[Match], parts: Sequence[dict[int, int]], logs: Logs, refused: list[str]) -> Clocks:
    part_of = {rank: number for number, part in enumerate(parts) for rank in part}
    offset = {rank: ns for part in parts for rank, ns in part.items()}
    aligned = [
        _shifted(match, offset, logs)
        for match in kept
        if len({part_of.get(rank, -rank - 1) for rank in match.ranks}) == 1
    ]
    if apart := len(kept) - len(aligned):
        refused.append(f"the clocks of {apart:,} pairs of ranks cannot be compared: no collective joins them")
    spread = _spreads(aligned)
    checked = [found for one in aligned if (found := _together(one, spread, logs, refused)) is not None]
    counts = Counter(dict.fromkeys(offset, 0))
    for one in checked:
        counts.update({rank: len(one.end_ns) for rank in one.match.ranks})
    known = [rank for rank in sorted(offset) if counts[rank]]
    return Clocks(
        offset_ns={rank: offset[rank] for rank in known},
        spread_ns={rank: spread.get(rank, 0) for rank in known},
        matches={rank: counts[rank] for rank in known},
        parts=tuple(tuple(part) for part in parts),
        aligned=tuple(checked),
        refused=tuple(refused),
    )


def _shifted(match: Match, offset: dict[int, int], logs: Logs) -> Aligned:
    own = np.array([[offset[rank]] for rank in match.ranks], dtype=np.int64)
    starts, ends = match.column(logs, "start_ns") - own, match.column(logs, "end_ns") - own
    ordered = np.sort(ends, axis=0)
    common = ends[-1] if match.party.pair else (ordered[(len(ends) - 1) // 2] + ordered[len(ends) // 2]) // 2
    return Aligned(match, starts, ends - common, common)


def _spreads(aligned: Sequence[Aligned]) -> dict[int, int]:
    """For each rank the median distance of the ends of its collectives from the common ones."""
    strays: dict[int, list[Ints]] = {}
    for one in aligned:
        if one.match.party.pair is None:
            for rank, stray in zip(one.match.ranks, one.stray_ns, strict=True):
                strays.setdefault(rank, []).append(np.abs(stray))
    return {rank: middle(np.concatenate(found)) for rank, found in strays.items()}


def _together(one: Aligned, spread: dict[int, int], logs: Logs, refused: list[str]) -> Aligned | None:
    """The match without collectives whose ends are apart on some rank; None where that is more than a few of them."""
    if one.match.party.pair is not None:
        good = one.end_ns > one.starts_ns.max(axis=0)
    else:
        scatter = _SPREADS * max(spread[rank] for rank in one.match.ranks)
        shortest = one.match.column(logs, "duration_ns").min(axis=0)
        good = (np.abs(one.stray_ns) <= np.maximum(together_ns(shortest), scatter)).all(axis=0)
    astray, count = int((~good).sum()), len(good)
    if not astray:
        return one
    subject = one.match.party.subject
    if astray > _MOST_ASTRAY_FRAC * count:
        why = f"{astray:,} of {count:,} end at different times on its ranks"
        refused.append(f"{subject} cannot be matched between ranks: {why}")
        return None
    refused.append(f"{astray:,} of {count:,} {subject} end at different times and were left out")
    return Aligned(one.match.keep(good), one.starts_ns[:, good], one.stray_ns[:, good], one.end_ns[good])
