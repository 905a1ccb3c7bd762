"""Which rank of the job each process and device of a file is, where the file says so.

Two things say so. The environment of the profiled command, where the profiler ran once for each rank (`mpirun ... nsys
profile ...`): then the file holds one process with one device. And NCCL, whose calls that make or end a communicator
state rank and number of ranks: the rank within the largest communicator stands for the rank in the job if every device
of the file has one there, and no two the same. Nothing else is taken for a rank; device numbers are not.

Of the environment only the variables named here are looked at.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from projector.specs.record import MOST_DEVICES
from traces.nsys.database import Database
from traces.nsys.nccl import Membership, group_name
from traces.nsys.schema import named_values

_VARIABLES: Final = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)
_NAMES: Final = frozenset(name for pair in _VARIABLES for name in pair)
_ASSIGNMENT: Final = re.compile(r"([A-Z][A-Z0-9_]{0,40})=\"?(\d{1,9})\"?")

Place = tuple[int, int]
"""(process, device)."""


@dataclass(frozen=True, slots=True)
class RankOf:
    """A rank and where it is stated. world_size: None where only a part of the job may be meant."""

    rank: int
    world_size: int | None = None
    basis: str = ""


def ranks_of(
    db: Database, places: Sequence[Place], members: Mapping[int, Sequence[Membership]], warnings: list[str]
) -> Mapping[Place, RankOf]:
    """The rank of each (process, device) that has one; `members` are NCCL's statements by process."""
    if len(places) == 1 and (stated := _stated(environment(db))) is not None:
        return {places[0]: stated}
    found = _by_communicator(places, members)
    if found:
        one = next(iter(found.values()))
        warnings.append(f"ranks are those within {one.basis}, taken for the ranks in the job")
    elif len(places) > 1:
        warnings.append(
            f"the file holds {len(places)} devices of {len({process for process, _ in places})} processes and does not "
            "state their ranks; they come in the order of processes and devices"
        )
    return found


def environment(db: Database) -> Mapping[str, int]:
    """Variables that may state a rank, of the profiled command and, where it has none, of the profiler itself."""
    found: dict[str, int] = {}
    for name, value in named_values(db, ("TARGET_INFO_SYSTEM_ENV",)):
        if name == "DeviceEnvironment":
            for entry in re.split(r"[;\0]", value):
                _note(entry, found)
    for name, value in named_values(db, ("META_DATA_CAPTURE",)):
        if name.endswith(":ENVIRONMENT_VARIABLE"):
            _note(value, found)
    return found


def _note(entry: str, found: dict[str, int]) -> None:
    match = _ASSIGNMENT.fullmatch(entry)
    if match is not None and match[1] in _NAMES:
        found[match[1]] = int(match[2])


def _stated(variables: Mapping[str, int]) -> RankOf | None:
    """The rank a launcher set, where it also set the number of ranks and that is more than one."""
    for rank_name, size_name in _VARIABLES:
        rank, size = variables.get(rank_name), variables.get(size_name)
        if rank is not None and size is not None and 1 < size <= MOST_DEVICES and rank < size:
            return RankOf(rank, size, f"{size_name} in the environment of the profiled command")
    return None


def _by_communicator(places: Sequence[Place], members: Mapping[int, Sequence[Membership]]) -> dict[Place, RankOf]:
    """Ranks within the largest communicator; {} unless it has all places of the file, each under a rank of its own."""
    stated = [member for one in members.values() for member in one]
    if not stated:
        return {}
    largest = max(stated, key=lambda member: (member.ranks, member.communicator))
    basis = f"the largest NCCL communicator, {group_name(largest.communicator)} of {largest.ranks} ranks"
    found: dict[Place, RankOf] = {}
    for place in places:
        process, device = place
        alone = sum(other == process for other, _ in places) == 1
        mine = {
            member.rank
            for member in members.get(process, ())
            if member.communicator == largest.communicator and (alone or member.device == device)
        }
        if len(mine) != 1:
            return {}
        found[place] = RankOf(mine.pop(), basis=basis)
    distinct = {one.rank for one in found.values()}
    return found if len(distinct) == len(found) else {}
