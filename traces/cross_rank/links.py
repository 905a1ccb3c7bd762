"""Bus bandwidth of each process group, waiting removed where its ranks could be compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

import numpy as np
from numpy.typing import NDArray

from projector.breakdown import Axis
from projector.units import NS_PER_S
from traces.cross_rank.matching import Logs, Party, axis_of, parties
from traces.cross_rank.order import middle
from traces.cross_rank.skew import Entered
from traces.job_types import LinkRate
from traces.messages import Pattern, fills_a_link, pattern_of
from traces.trace import Ints, Mask

PATTERNS: Final[tuple[Pattern, ...]] = get_args(Pattern)
_RESOLVED_SPREADS = 4


@dataclass(frozen=True, slots=True, eq=False)
class _Messages:
    """Messages of one party, one entry each: bytes, bytes on the bus, time they took, and whether they ran alone."""

    kinds: NDArray[np.str_]
    message_bytes: Ints
    bus_bytes: Ints
    time_ns: Ints
    alone: Mask
    least_ns: int = 1

    def rate(self, party: Party, pattern: Pattern, axis: Axis, size: int, waiting_removed: bool) -> LinkRate | None:
        """The rate of the messages that are of the pattern, fill a link and last long enough; None without any.

        Those that ran alone speak for the link, where they are a quarter or more.
        """
        of_pattern = np.array([pattern_of(kind) == pattern for kind in self.kinds.tolist()], dtype=np.bool_)
        usable = of_pattern & fills_a_link(self.message_bytes, size) & (self.bus_bytes > 0)
        usable &= self.time_ns >= self.least_ns
        alone = 4 * int((usable & self.alone).sum()) >= int(usable.sum())
        chosen = usable & self.alone if alone else usable
        if not chosen.any():
            return None
        rates = self.bus_bytes[chosen] / self.time_ns[chosen] * NS_PER_S
        return LinkRate(
            group=party.group.name,
            axis=axis,
            ranks=party.pair or party.group.ranks,
            group_size=size,
            kinds=tuple(np.unique(self.kinds[chosen]).tolist()),
            collectives=len(rates),
            bus_bytes=middle(self.bus_bytes[chosen]),
            bus_bytes_per_s=float(np.median(rates)),
            best_bus_bytes_per_s=float(rates.max()),
            waiting_removed=waiting_removed,
            alone=alone,
        )


def link_rates(all_entered: Sequence[Entered], logs: Logs, spread_ns: dict[int, int]) -> tuple[LinkRate, ...]:
    """One record for each party and traffic pattern with at least one message that fills a link, the slowest first.

    Where all ranks of a group were recorded and matched, rates are over transfer times, of collectives whose transfer
    is well above what the clocks are good to. Otherwise they are over durations, lower bounds.
    """
    compared = {one.aligned.match.party: one for one in all_entered}
    alone = {rank: log.alone for rank, log in logs.items()}
    found: list[LinkRate] = []
    for party, rows in parties(logs)[0].items():
        size = 2 if party.pair else party.group.size
        if size is None or size < 2:
            continue
        axis = axis_of(party, rows, logs)
        entered = compared.get(party)
        matched = None if entered is None else _matched(entered, logs, alone, spread_ns)
        whole = entered is not None and (party.pair is not None or len(entered.aligned.match.ranks) == size)
        single = _single(rows, logs, alone)
        for pattern in PATTERNS:
            rate = matched.rate(party, pattern, axis, size, whole) if matched is not None else None
            rate = rate or single.rate(party, pattern, axis, size, False)
            found += [rate] if rate is not None else []
    return tuple(sorted(found, key=lambda link: (link.bus_bytes_per_s, link.group, link.ranks)))


def _matched(entered: Entered, logs: Logs, alone: dict[int, Mask], spread_ns: dict[int, int]) -> _Messages:
    """The collectives of a match, over their transfer."""
    match = entered.aligned.match
    log = logs[match.ranks[0]]
    ran_alone = np.stack([alone[rank][rows] for rank, rows in zip(match.ranks, match.rows, strict=True)])
    return _Messages(
        kinds=np.array(log.collectives)[log.collective[match.rows[0]]],
        message_bytes=match.column(logs, "message_bytes").max(axis=0),
        bus_bytes=match.column(logs, "bus_bytes").max(axis=0),
        time_ns=entered.transfer_ns,
        alone=np.logical_and.reduce(ran_alone),
        least_ns=max(1, _RESOLVED_SPREADS * max(spread_ns[rank] for rank in match.ranks)),
    )


def _single(rows: dict[int, Ints], logs: Logs, alone: dict[int, Mask]) -> _Messages:
    """The collectives of a party on each of its ranks, over their durations."""

    def joined(columns: list[NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate(columns)

    items = list(rows.items())
    return _Messages(
        kinds=joined([np.array(logs[rank].collectives)[logs[rank].collective[mine]] for rank, mine in items]),
        message_bytes=joined([logs[rank].message_bytes[mine] for rank, mine in items]),
        bus_bytes=joined([logs[rank].bus_bytes[mine] for rank, mine in items]),
        time_ns=joined([logs[rank].duration_ns[mine] for rank, mine in items]),
        alone=joined([alone[rank][mine] for rank, mine in items]),
    )
