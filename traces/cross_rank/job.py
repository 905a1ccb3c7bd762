"""cross_rank: the logs of a job's ranks to clocks, waiting, stragglers and links."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from traces.cross_rank.clocks import Clocks, align
from traces.cross_rank.links import link_rates
from traces.cross_rank.log import MOST_INSTANCES, CollectiveLog
from traces.cross_rank.matching import Logs, match_ranks
from traces.cross_rank.placed import judged
from traces.cross_rank.skew import Entered, entered, group_skews
from traces.cross_rank.stragglers import stragglers
from traces.job_types import ClockOffset, GroupSkew, LinkRate, RankLateness

_REFUSALS_TOLD = 8


@dataclass(frozen=True, slots=True)
class CrossRank:
    """What the ranks show together, for the fields of the same names in a TraceSummary."""

    clocks: tuple[ClockOffset, ...] = ()
    skew: tuple[GroupSkew, ...] = ()
    lateness: tuple[RankLateness, ...] = ()
    links: tuple[LinkRate, ...] = ()
    warnings: tuple[str, ...] = ()


def cross_rank(ranks: Sequence[tuple[int | None, CollectiveLog]]) -> CrossRank:
    """Compare the collectives of a job's ranks. Each is given with its rank, None where its file states none.

    Logs without a rank, and further logs of a rank that is given twice, are compared with nothing; their links are
    measured all the same, as those of a job of one rank are. `warnings` says what could not be compared and why.
    """
    logs: dict[int, CollectiveLog] = {}
    alone: list[CollectiveLog] = []
    for rank, log in ranks:
        if rank is None or rank in logs:
            alone.append(log)
        else:
            logs[rank] = log
    logs = dict(sorted(logs.items()))
    matches = match_ranks(logs)
    clocks = align(matches.found, logs)
    all_entered = [entered(one, clocks) for one in clocks.aligned]
    links = [*link_rates(all_entered, logs, clocks.spread_ns), *link_rates([], _unranked(alone), {})]
    return CrossRank(
        clocks=clocks.offsets(),
        skew=group_skews(all_entered, logs),
        lateness=_lateness(all_entered, logs),
        links=judged(links, None),
        warnings=(*_cut(ranks), *_further(ranks), *_told((*matches.refused, *clocks.refused)), *_apart(clocks)),
    )


def _unranked(logs: Sequence[CollectiveLog]) -> Logs:
    """Logs under numbers that are no ranks."""
    return {-1 - number: log for number, log in enumerate(logs)}


def _lateness(all_entered: Sequence[Entered], logs: Logs) -> tuple[RankLateness, ...]:
    """One record a rank that was compared in a collective; sends and receives do not count, a sender is always last."""
    collectives = [one for one in all_entered if one.aligned.match.party.pair is None]
    found = stragglers([one.aligned for one in collectives], logs)
    matched, last, late, waited = (Counter[int]() for _ in range(4))
    for one in collectives:
        for place, rank in enumerate(one.aligned.match.ranks):
            was_last = one.last == place
            matched[rank] += len(was_last)
            last[rank] += int(was_last.sum())
            late[rank] += int(one.late_ns[was_last].sum())
            waited[rank] += int(one.waiting_ns[place].sum())
    return tuple(
        RankLateness(
            rank=rank,
            matched=matched[rank],
            last_count=last[rank],
            late_ns=late[rank],
            waited_ns=waited[rank],
            straggler=rank in found,
            why=found[rank].why if rank in found else "",
        )
        for rank in sorted(matched)
    )


def _cut(ranks: Sequence[tuple[int | None, CollectiveLog]]) -> list[str]:
    left_out = [log.left_out for _, log in ranks if log.left_out]
    if not left_out:
        return []
    most, count = max(left_out), len(left_out)
    return [
        f"between ranks the first {MOST_INSTANCES:,} collectives of a rank are compared; {count} ranks have up to "
        f"{most:,} more"
    ]


def _further(ranks: Sequence[tuple[int | None, CollectiveLog]]) -> list[str]:
    """A rank profiled twice, where there are others to compare it with."""
    profiles = Counter(rank for rank, log in ranks if rank is not None and len(log))
    further = profiles.total() - len(profiles)
    if len(profiles) < 2 or not further:
        return []
    return [
        f"{further} profiles are further ones of their rank: between ranks only the collectives of the first are "
        "compared"
    ]


def _told(refused: Sequence[str]) -> list[str]:
    """The first few reasons, each once; a job may have hundreds of groups."""
    distinct = list(dict.fromkeys(refused))
    more = len(distinct) - _REFUSALS_TOLD
    return [*distinct[:_REFUSALS_TOLD], *([f"{more:,} more groups or pairs could not be compared"] if more > 0 else [])]


def _apart(clocks: Clocks) -> list[str]:
    if len(clocks.parts) < 2:
        return []
    first, second = clocks.parts[0], clocks.parts[1]
    return [
        f"no collective joins the clocks of {len(clocks.parts)} sets of ranks (rank {first[0]} is in one, rank "
        f"{second[0]} in another): their clock offsets have nothing to do with each other"
    ]
