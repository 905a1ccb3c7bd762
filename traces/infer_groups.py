"""Process groups of a trace: those it declares and those its collectives ran in, and what ran in each."""

from typing import Final

from projector.specs.record import MOST_DEVICES
from traces.facts import Facts
from traces.implied_types import GroupUse, ProcessGroup
from traces.infer_descriptions import described_axis
from traces.trace import CollectiveArgs

Ranks = tuple[int, ...]

MOST_RANKS_WRITTEN_OUT: Final = 1 << 18

_MOST_GROUPS: Final = 4_096
_USES: Final[tuple[tuple[GroupUse, frozenset[str]], ...]] = (
    ("pair", frozenset({"send_recv", "send", "recv"})),
    ("expert", frozenset({"all_to_all", "expert_dispatch", "expert_combine", "expert_notify"})),
    ("shard", frozenset({"all_gather", "reduce_scatter"})),
    ("reduce", frozenset({"all_reduce", "broadcast", "reduce"})),
)


def process_groups(facts: Facts) -> tuple[ProcessGroup, ...]:
    """Declared groups in their order, then those that only collectives name; each with its axis if described, and use.

    Groups of one name differ where their ranks do. At most 4,096 are kept: a world of many ranks declares the groups
    of others too.
    """
    found: dict[tuple[str, Ranks], ProcessGroup] = {}
    of_name: dict[str, dict[Ranks, None]] = {}
    for declared in facts.trace.metadata.groups:
        group = ProcessGroup(
            name=declared.name, size=declared.size, ranks=declared.ranks, description=declared.description
        )
        found.setdefault((group.name, group.ranks), group)
        of_name.setdefault(group.name, {})[group.ranks] = None
    used: dict[str, set[str]] = {}
    spelled: dict[tuple[int, int, int], Ranks] = {}
    for one in facts.communications:
        used.setdefault(one.group, set()).add(one.collective)
        if one.args is None or not one.group or one.group_size is None or one.group_size > MOST_DEVICES:
            continue
        ranks = _ranks(one.args, one.group_size, spelled)
        alike = of_name.setdefault(one.group, {})
        known = found.get((one.group, ranks)) or (found[one.group, next(iter(alike))] if alike else None)
        if known is None:
            group = ProcessGroup(name=one.group, size=one.group_size, ranks=ranks, description=one.group_description)
        elif not known.ranks and ranks:
            found.pop((known.name, ()))
            alike.pop(())
            group = known.model_copy(update={"ranks": ranks})
        else:
            continue
        found[one.group, ranks] = group
        alike[ranks] = None
    return tuple(_completed(group, used.get(group.name, set())) for group in list(found.values())[:_MOST_GROUPS])


def _ranks(args: CollectiveArgs, size: int, spelled: dict[tuple[int, int, int], Ranks]) -> Ranks:
    """Ranks of a group; where the profiler shortened the list, those that first rank, stride and size tell.

    Written out are `MOST_RANKS_WRITTEN_OUT` over all groups, `spelled`: a few bytes of a file could stand for millions.
    """
    if args.ranks or args.rank_start is None or args.rank_stride is None:
        return args.ranks
    key = (args.rank_start, args.rank_stride, size)
    if key not in spelled:
        room = MOST_RANKS_WRITTEN_OUT - sum(map(len, spelled.values())) if len(spelled) < _MOST_GROUPS else 0
        written = range(args.rank_start, args.rank_start + size * args.rank_stride, args.rank_stride)
        spelled[key] = tuple(written) if size <= room else ()
    return spelled[key]


def _completed(group: ProcessGroup, collectives: set[str]) -> ProcessGroup:
    axis = described_axis(group.description)
    return group.model_copy(update={"axis": axis or "unknown", "use": _use(collectives)})


def _use(collectives: set[str]) -> GroupUse:
    """What runs in a group: gathers beside all-reduces are sharding; sends or all-to-alls beside others are "many"."""
    uses = {use for use, names in _USES if names & collectives}
    if not uses:
        return "unused"
    if len(uses) == 1:
        return uses.pop()
    return "shard" if uses == {"shard", "reduce"} else "many"
