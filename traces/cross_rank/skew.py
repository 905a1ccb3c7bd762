"""Waiting inside collectives told apart from transfer, by group, and which ranks the others wait for.

On the job's clock a collective has, on every rank, a start of its own and one common end.
  waiting of a rank   last start - own start
  transfer            common end - last start
A collective of which some rank was not recorded may have been entered later still by that one: its waiting is a lower
bound and its transfer an upper one.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from projector.breakdown import Axis
from traces.cross_rank.clocks import Aligned, Clocks
from traces.cross_rank.log import Group
from traces.cross_rank.matching import Logs
from traces.job_types import GroupSkew
from traces.trace import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Entered:
    """How the ranks of one match entered its collectives.

    waiting_ns   int64 of shape [ranks, collectives]
    transfer_ns  int64 of shape [collectives], 0 where the last rank began after the common end
    last         place of the rank that was last by more than the clocks are good to, -1 where none was
    late_ns      how much later than the second last it came, 0 where none was
    """

    aligned: Aligned
    waiting_ns: Ints
    transfer_ns: Ints
    last: Ints
    late_ns: Ints


def entered(aligned: Aligned, clocks: Clocks) -> Entered:
    """Waiting, transfer and the last rank of every collective of a match."""
    starts = aligned.starts_ns
    order = np.argsort(starts, axis=0, kind="stable")
    columns = np.arange(starts.shape[1])
    latest = starts[order[-1], columns]
    late = latest - starts[order[-2], columns]
    spread = np.array([clocks.spread_ns[rank] for rank in aligned.match.ranks], dtype=np.int64)
    is_late = late > spread[order[-1]] + spread[order[-2]]
    return Entered(
        aligned=aligned,
        waiting_ns=latest - starts,
        transfer_ns=np.maximum(aligned.end_ns - latest, 0),
        last=np.where(is_late, order[-1], -1),
        late_ns=np.where(is_late, late, 0),
    )


def group_skews(all_entered: Sequence[Entered], logs: Logs) -> tuple[GroupSkew, ...]:
    """One record a process group, pairs of senders and receivers added up; the longest waiting first."""
    by_group: dict[tuple[Group, Axis], list[Entered]] = defaultdict(list)
    for one in all_entered:
        by_group[one.aligned.match.party.group, one.aligned.match.axis].append(one)
    found = [_skew(group, axis, members, logs) for (group, axis), members in by_group.items()]
    return tuple(sorted(found, key=lambda skew: (-skew.waiting_ns, skew.group, skew.ranks)))


def _skew(group: Group, axis: Axis, members: Sequence[Entered], logs: Logs) -> GroupSkew:
    exposed = sum(
        int(np.minimum(one.waiting_ns, one.aligned.match.column(logs, "exposed_ns")).sum()) for one in members
    )
    return GroupSkew(
        group=group.name,
        axis=axis,
        ranks=tuple(sorted({rank for one in members for rank in one.aligned.match.ranks})),
        matched=sum(len(one.transfer_ns) for one in members),
        waiting_ns=sum(int(one.waiting_ns.sum()) for one in members),
        transfer_ns=sum(int(one.transfer_ns.sum()) for one in members),
        largest_wait_ns=max(int(one.waiting_ns.max()) for one in members),
        exposed_waiting_ns=exposed,
    )
