"""What the operator table of an XLA profile says of the step: the share of it each resource limits, from rows only.

A row decides something only if the profile says what it is and what limits it. Two kinds of rows decide nothing:
  unattributed  the profile does not identify the operator; the row only fills up the step
  unresolved    identified, but opaque or without a cost: a custom call of zero cost keeps no resource busy that anyone
                could name, whatever its name suggests

The others count for what limits them:
  arithmetic    bound by compute, or by on-chip memory: both are limits inside the core, and its kernels' own
  memory        bound by HBM, and copies
  communication collectives that do not keep HBM busy
  host          the core waits for input of the host or for the host to take its output: idle time with a reason
A collective labelled HBM-bound counts as memory where it uses a tenth of the HBM bandwidth or more. Below that HBM is
idle nine tenths of its time, so the label names only the least idle resource: it waits for links or for its peers.

A table may list only the costliest operators. Communication that the headline counts beyond all listed collectives,
of every kind or of plain all-reduce alone, is communication all the same.

A figure above 105 % of a peak is implausible (5 %: clocks above the datasheet's, rounded times). The row's label then
decides nothing: a kernel is unresolved, a collective counts as communication, which it is by what it does.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from agents.diagnosis_parts import Limiter
from traces.summary_types import TraceSummary
from traces.xplane.op_table import BOUNDS, Bound, Kpis, OpRow

Limit = Literal["arithmetic", "memory", "communication", "host", "unresolved", "unattributed"]
LIMITS: Final[tuple[Limit, ...]] = ("arithmetic", "memory", "communication", "host", "unresolved", "unattributed")

BUSY_HBM_FRAC: Final = 0.10
ABOVE_PEAK: Final = 1.05
ALL_REDUCE: Final = "all-reduce"
FEEDS: Final = frozenset({"infeed", "outfeed"})
# what these hold is not in their name: the compiler wraps any code in them
OPAQUE: Final = frozenset({"custom-call", "custom fusion", "custom_call"})


@dataclass(frozen=True)
class OpGroup:
    """Rows that belong together, and how much of the step they take.

    efficiency: of the roofline, weighted by time over the rows that state it. bound: the label of most of their time.
    costliest: the row that takes most of it. limiters: parts of `share` by what holds them up.
    """

    name: str
    share: float
    count: int
    limiters: dict[Limiter, float]
    efficiency: float | None
    bound: Bound
    costliest: OpRow


@dataclass(frozen=True)
class OpLevel:
    """limits: rows by what limits them. categories: identified rows by HLO category, the largest share first.

    memory_collectives: share of collectives counted as memory. resolved: whether any row states what bounds it.
    collectives: identified communication by category, the largest share first, exposed or not.
    exposed_frac: part of communication that no kernel hides. implausible: share in rows with figures above a peak.
    unlisted: exposed communication that the headline counts and no row explains. missing: the rest of the busy time
    that is in no row, where the table lists only the costliest.
    """

    kpis: Kpis | None
    limits: dict[Limit, OpGroup]
    categories: tuple[OpGroup, ...]
    memory_collectives: float
    resolved: bool
    collectives: tuple[OpGroup, ...] = ()
    exposed_frac: float = 1.0
    implausible: float = 0.0
    unlisted: float = 0.0
    missing: float = 0.0

    def share(self, limit: Limit) -> float:
        """Share of the step in rows of this limit; 0 where there are none."""
        return self.limits[limit].share if limit in self.limits else 0.0


def op_level_of(summary: TraceSummary, exposed_frac: float) -> OpLevel | None:
    """The table read row by row; None without one. exposed_frac: part of communication that no kernel hides.

    Times of rows are summed, so communication that other kernels hide is taken out by its exposed part.
    """
    rows = [row for row in summary.op_table if row.total_ps > 0]
    if not rows:
        return None

    def share_of(row: OpRow) -> float:
        return row.share_of_step_frac * (exposed_frac if row.event_class == "communication" else 1.0)

    identified = [row for row in rows if row.attributed]
    unlisted = _unlisted(summary.kpis, identified)
    busy = summary.kpis.duty_cycle_frac if summary.kpis is not None else 0.0
    collectives = [row for row in identified if row.event_class == "communication" and limit_of(row) == "memory"]
    by_limit = {group.name: group for group in _grouped(rows, limit_of, share_of)}
    return OpLevel(
        kpis=summary.kpis,
        limits={limit: by_limit[limit] for limit in LIMITS if limit in by_limit},
        categories=_grouped(identified, lambda row: row.category or "no category", share_of),
        memory_collectives=sum(map(share_of, collectives)),
        resolved=any(row.bound in BOUNDS for row in identified),
        collectives=_grouped(
            [row for row in identified if row.event_class == "communication"],
            lambda row: row.category or "no category",
            lambda row: row.share_of_step_frac,
        ),
        exposed_frac=exposed_frac,
        implausible=sum(share_of(row) for row in identified if implausible(row)),
        unlisted=exposed_frac * unlisted,
        missing=max(0.0, busy - unlisted - sum(row.share_of_step_frac for row in rows)),
    )


def _unlisted(kpis: Kpis | None, identified: Iterable[OpRow]) -> float:
    """Communication the headline counts beyond the rows, each kind once: 0 where the table has all of it."""
    if kpis is None:
        return 0.0
    listed: dict[bool, float] = {True: 0.0, False: 0.0}
    for row in identified:
        if row.event_class == "communication":
            listed[row.category == ALL_REDUCE] += row.share_of_step_frac
    of_all = kpis.communication_frac - sum(listed.values())
    return max(0.0, of_all, kpis.all_reduce_only_frac - listed[True])


def implausible(row: OpRow) -> bool:
    """Whether a figure of the row is above what its peak allows."""
    figures = (row.compute_efficiency_frac, row.hbm_utilisation_frac, row.memory_utilisation_frac)
    return any(figure is not None and figure > ABOVE_PEAK for figure in (*figures, row.roofline_efficiency_frac))


def limit_of(row: OpRow) -> Limit:
    """What limits a row, by the rules of this module."""
    if not row.attributed:
        return "unattributed"
    if row.category in FEEDS:
        return "host"
    if row.bound == "unknown" and (row.category in OPAQUE or row.event_class == "compute"):
        return "unresolved"
    if row.event_class == "copy":
        return "memory"
    if row.event_class == "communication":
        busy = row.bound == "hbm" and (row.hbm_utilisation_frac or 0.0) >= BUSY_HBM_FRAC
        return "memory" if busy and not implausible(row) else "communication"
    if implausible(row):
        return "unresolved"
    return "memory" if row.bound == "hbm" else "arithmetic"


def limiter_of(row: OpRow) -> Limiter:
    """The same, with on-chip memory apart from arithmetic; links stand for peers as well."""
    limit = limit_of(row)
    if limit == "arithmetic":
        return "arithmetic" if row.bound == "compute" else "on_chip_memory"
    found: dict[Limit, Limiter] = {"memory": "hbm", "communication": "link", "host": "waiting"}
    return found.get(limit, "unknown")


def _grouped(
    rows: Iterable[OpRow], key: Callable[[OpRow], str], share_of: Callable[[OpRow], float]
) -> tuple[OpGroup, ...]:
    groups: dict[str, list[OpRow]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    found = [_group(name, members, share_of) for name, members in groups.items()]
    return tuple(sorted(found, key=lambda group: (-group.share, group.name)))


def _group(name: str, rows: list[OpRow], share_of: Callable[[OpRow], float]) -> OpGroup:
    by_bound: dict[Bound, int] = defaultdict(int)
    limiters: dict[Limiter, float] = defaultdict(float)
    for row in rows:
        by_bound[row.bound] += row.total_ps
        limiters[limiter_of(row)] += share_of(row)
    stated = [(row.roofline_efficiency_frac, row.total_ps) for row in rows if row.roofline_efficiency_frac is not None]
    weight = sum(total_ps for _, total_ps in stated)
    return OpGroup(
        name=name,
        share=sum(map(share_of, rows)),
        count=sum(row.count for row in rows),
        limiters=dict(limiters),
        efficiency=sum(efficiency * total_ps for efficiency, total_ps in stated) / weight if weight else None,
        bound=max(sorted(by_bound), key=lambda bound: by_bound[bound]),
        costliest=max(rows, key=lambda row: row.total_ps),
    )
