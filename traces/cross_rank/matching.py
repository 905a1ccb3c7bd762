"""Which collective of one rank is which of another: same group, same number in it or same place in order."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from projector.breakdown import Axis
from traces.cross_rank.log import CollectiveLog, Group
from traces.cross_rank.order import LEAST_OVERLAP, LEAST_OVERLAP_FRAC, best_shift, overlap
from traces.cross_rank.order import Sequence as Ordered
from traces.grouping import places_by
from traces.messages import pattern_of
from traces.trace import ABSENT, Ints, Mask

Logs = Mapping[int, CollectiveLog]
Pair = tuple[int, int]

_MOST_CONTRADICTING_FRAC: Final = 0.1
_SAME_SIZE: Final = frozenset({"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "send_recv"})
_RANKS_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Party:
    """Who communicates: a group, or within it the (sender, receiver) of point-to-point traffic."""

    group: Group
    pair: Pair | None = None

    @property
    def subject(self) -> str:
        """What it does, as the subject of a sentence."""
        if self.pair:
            return f"messages from rank {self.pair[0]} to rank {self.pair[1]} {self.group.label}"
        return f"collectives {self.group.label}"


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """Collectives of one party found on all of `ranks`: rows[i, k] is the row of the k-th in the log of ranks[i]."""

    party: Party
    axis: Axis
    ranks: tuple[int, ...]
    rows: Ints
    by: Literal["sequence", "order"]

    def column(self, logs: Logs, name: str) -> Ints:
        """A column of the logs at the matched rows, int64 of shape [ranks, collectives]."""
        return np.stack(
            [getattr(logs[rank], name)[rows].astype(np.int64) for rank, rows in zip(self.ranks, self.rows, strict=True)]
        )

    def keep(self, columns: Mask) -> "Match":
        """The match reduced to some of its collectives."""
        return Match(self.party, self.axis, self.ranks, self.rows[:, columns], self.by)


@dataclass(frozen=True, slots=True)
class Matches:
    """What could be matched, and sentences about what could not."""

    found: tuple[Match, ...]
    refused: tuple[str, ...]


def match_ranks(logs: Logs) -> Matches:
    """Match the collectives of every group that more than one rank recorded.

    By number where all state one: what the number says is checked against kind and size. Otherwise by order
    (`traces.cross_rank.order`). Ranks that do not fit the others are left out, and said so; a group that cannot be
    matched at all is refused with the reason.
    """
    members, lacking = parties(logs)
    found: list[Match] = []
    refused: list[str] = []
    if lacking and len(logs) > 1:
        refused.append(f"{lacking:,} sends and receives do not say between which ranks: they are not compared")
    for party, rows in members.items():
        if len(rows) < 2:
            continue
        match, told = _matched(party, rows, logs)
        refused += told
        if match is not None:
            found.append(match)
    return Matches(tuple(found), tuple(refused))


def parties(logs: Logs) -> tuple[dict[Party, dict[int, Ints]], int]:
    """For each party the rows of its collectives on each rank, and how many sends and receives name no pair of theirs.

    What a rank sends to itself is no traffic between ranks.
    """
    members: dict[Party, dict[int, Ints]] = {}
    lacking = 0
    for rank, log in logs.items():
        is_pair = np.array([pattern_of(name) == "pair" for name in log.collectives], dtype=np.bool_)[log.collective]
        for index, group in enumerate(log.groups):
            rows = log.rows_of(index)
            collectives = rows[~is_pair[rows]]
            if len(collectives):
                members.setdefault(Party(group), {})[rank] = collectives
            for pair, of_pair in _pairs(log, rank, rows[is_pair[rows]]).items():
                if ABSENT in pair or rank not in pair:
                    lacking += len(of_pair)
                elif pair[0] != pair[1]:
                    members.setdefault(Party(group, pair), {})[rank] = of_pair
    return members, lacking


def _pairs(log: CollectiveLog, rank: int, rows: Ints) -> dict[Pair, Ints]:
    """Sends and receives by (sender, receiver); what is not stated is the rank itself, by what it does."""
    names = np.array(log.collectives)[log.collective[rows]] if len(rows) else np.array([])
    source = np.where((log.source[rows] == ABSENT) & (names == "send"), rank, log.source[rows])
    target = np.where((log.target[rows] == ABSENT) & (names == "recv"), rank, log.target[rows])
    ends = np.column_stack((source, target))
    distinct, place = np.unique(ends, axis=0, return_inverse=True)
    return {
        (int(pair[0]), int(pair[1])): rows[mine]
        for pair, (_, mine) in zip(distinct, places_by(place.ravel()), strict=True)
    }


def _matched(party: Party, rows: dict[int, Ints], logs: Logs) -> tuple[Match | None, list[str]]:
    size = party.group.size
    if not party.group.ranks and size is not None and len(rows) > size:
        why = f"{len(rows)} ranks use a group of {size} of that name, and which of them belong together is not stated"
        return None, [_refusal(party, why)]
    # sends and receives are numbered by each rank on its own
    numbered = party.pair is None and all((logs[rank].sequence[mine] != ABSENT).all() for rank, mine in rows.items())
    columns, told = _by_sequence(party, rows, logs) if numbered else _by_order(party, rows, logs)
    if not columns or not set(party.pair or ()) <= set(columns):
        return None, told
    ranks = party.pair or tuple(sorted(columns))
    matched = np.stack([columns[rank] for rank in ranks])
    return Match(party, axis_of(party, ranks, logs), ranks, matched, "sequence" if numbered else "order"), told


def _by_sequence(party: Party, rows: dict[int, Ints], logs: Logs) -> tuple[dict[int, Ints], list[str]]:
    """Rows of the numbers that every rank has, ranks that share few of them left out."""
    keys = _keys({rank: logs[rank].sequence[mine].astype(np.int64) for rank, mine in rows.items()})
    known, counts = np.unique(np.concatenate(list(keys.values())), return_counts=True)
    usual = known[2 * counts >= len(rows)]
    shared = {rank: int(np.isin(mine, usual).sum()) for rank, mine in keys.items()}
    enough = [rank for rank in rows if shared[rank] >= LEAST_OVERLAP_FRAC * max(shared.values())]
    told = _left_out(party, sorted(set(rows) - set(enough)), "they share few numbers with the other ranks")
    common = keys[enough[0]]
    for rank in enough[1:]:
        common = np.intersect1d(common, keys[rank])
    if not len(common):
        return {}, [*told, _refusal(party, "no number is on all ranks, so their windows do not overlap")]
    places = {rank: np.argsort(keys[rank], kind="stable") for rank in enough}
    columns = {rank: rows[rank][place[np.searchsorted(keys[rank][place], common)]] for rank, place in places.items()}
    return _agreeing(party, columns, logs, told)


def _keys(sequences: dict[int, Ints]) -> dict[int, Ints]:
    """One key for each entry: its number, and which entry of that number it is (coalesced ones share theirs)."""
    numbers = np.unique(np.concatenate(list(sequences.values())))
    occurrence = {rank: _occurrence(mine) for rank, mine in sequences.items()}
    width = 1 + max(int(one.max(initial=0)) for one in occurrence.values())
    return {rank: np.searchsorted(numbers, mine) * width + occurrence[rank] for rank, mine in sequences.items()}


def _occurrence(values: Ints) -> Ints:
    """For each entry how many equal ones precede it."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    first = np.searchsorted(ordered, ordered, side="left")
    found = np.empty(len(values), dtype=np.int64)
    found[order] = np.arange(len(values)) - first
    return found


def _agreeing(party: Party, columns: dict[int, Ints], logs: Logs, told: list[str]) -> tuple[dict[int, Ints], list[str]]:
    """The columns whose kind and size are the same on all ranks; a group where many differ is refused."""
    orders = _ordered(columns, logs)
    first = next(iter(orders.values()))
    same = np.ones(len(first), dtype=np.bool_)
    for other in orders.values():
        sizes = (first.size == other.size) | (first.size == ABSENT) | (other.size == ABSENT)
        same &= (first.kind == other.kind) & sizes
    differing = int((~same).sum())
    if differing > _MOST_CONTRADICTING_FRAC * len(same):
        why = f"{differing:,} of {len(same):,} collectives of the same number differ in kind or size between ranks"
        return {}, [*told, _refusal(party, why)]
    if differing:
        told = [*told, f"{differing:,} {party.subject} differ between ranks and were left out"]
    return {rank: rows[same] for rank, rows in columns.items()}, told


def _by_order(party: Party, rows: dict[int, Ints], logs: Logs) -> tuple[dict[int, Ints], list[str]]:
    """Rows lined up with those of the rank whose list most others share; ranks that do not fit are left out."""
    orders = _ordered(rows, logs)
    reference = _commonest(orders)
    shifts = {rank: best_shift(orders[reference], other) for rank, other in orders.items() if rank != reference}
    fitting = {reference: 0} | {rank: shift.by for rank, shift in shifts.items() if shift.by is not None}
    misfits = sorted(set(rows) - set(fitting))
    why = shifts[misfits[0]].why if misfits else ""
    if len(fitting) < 2:
        return {}, [_refusal(party, why)]
    told = _left_out(party, misfits, why)
    faced = [overlap(len(orders[reference]), len(orders[rank]), by)[0] for rank, by in fitting.items()]
    first, last = max(one.start for one in faced), min(one.stop for one in faced)
    least = 1 if party.group.name else LEAST_OVERLAP
    if last - first < least:
        return {}, [
            *told,
            _refusal(party, f"{max(last - first, 0)} in the same order on all ranks are too few to tell"),
        ]
    return {rank: rows[rank][first + by : last + by] for rank, by in fitting.items()}, told


def _ordered(rows: dict[int, Ints], logs: Logs) -> dict[int, Ordered]:
    """What is compared of each rank's collectives, kinds numbered the same on all ranks."""
    numbers: dict[str, int] = {}
    orders: dict[int, Ordered] = {}
    for rank, mine in rows.items():
        log = logs[rank]
        names = ["send_recv" if pattern_of(name) == "pair" else name for name in log.collectives]
        codes = np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
        sized = np.array([name in _SAME_SIZE for name in names], dtype=np.bool_)
        kinds = log.collective[mine]
        orders[rank] = Ordered(
            kind=codes[kinds],
            size=np.where(sized[kinds], log.message_bytes[mine], ABSENT).astype(np.int64),
            end_ns=log.end_ns[mine],
            duration_ns=log.duration_ns[mine].astype(np.int64),
        )
    return orders


def _commonest(orders: dict[int, Ordered]) -> int:
    """The lowest rank of those whose list of kinds and sizes most ranks share."""
    lists = {rank: (order.kind.tobytes(), order.size.tobytes()) for rank, order in orders.items()}
    shared = Counter(lists.values())
    return min(lists, key=lambda rank: (-shared[lists[rank]], rank))


def axis_of(party: Party, ranks: Iterable[int], logs: Logs) -> Axis:
    """Axis most of the ranks see the group serve."""
    axes = [logs[rank].axes[logs[rank].groups.index(party.group)] for rank in ranks]
    votes = Counter(axis for axis in axes if axis != "unknown")
    return votes.most_common(1)[0][0] if votes else "unknown"


def _refusal(party: Party, why: str) -> str:
    return f"{party.subject} cannot be matched between ranks: {why}"


def _left_out(party: Party, ranks: Sequence[int], why: str) -> list[str]:
    if not ranks:
        return []
    listed = ", ".join(map(str, ranks[:_RANKS_SHOWN])) + (", ..." if len(ranks) > _RANKS_SHOWN else "")
    return [f"{party.subject} cannot be matched on {len(ranks)} ranks ({listed}): {why}"]
