"""A database to Traces: one for each process and device with events, or for each process with operators where no device
has any.

Host rows go with every device of their process. Threads are numbered within a process; start/end ranges, which may
overlap others of their thread, are on a line of their own beside it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from projector.errors import EmptyTrace
from traces.nsys.clock import base_time_ns
from traces.nsys.counts import complaints, counts_of, left_out
from traces.nsys.database import Database
from traces.nsys.device import COPY_TEXTS, device_events
from traces.nsys.events import Events, Names, joined
from traces.nsys.hardware import all_devices, devices_by_pid, pid_of
from traces.nsys.host import calls_of, ranges_of
from traces.nsys.nccl import collective_args, groups_of, memberships, nccl_calls, sizes_of
from traces.nsys.payload import layouts_of
from traces.nsys.ranks import Place, RankOf, ranks_of
from traces.nsys.schema import check_version, export_facts
from traces.trace import ABSENT, NOT_STATED, Category, CollectiveArgs, Ints, Metadata, OpInputs, Trace, moved


@dataclass(frozen=True, slots=True)
class _Common:
    """What all traces of a file share."""

    file: str
    names: tuple[str, ...]
    inputs: Sequence[OpInputs]
    metadata: Metadata
    counts: Mapping[str, int]
    warnings: tuple[str, ...]

    def trace(self, found: Events, args: Mapping[int, CollectiveArgs], chosen: Ints, metadata: Metadata) -> Trace:
        """The chosen rows of one process as a Trace, in order of start, the longer first."""
        start, end = found.start_ns[chosen], found.end_ns[chosen]
        order = np.lexsort((found.stream[chosen], found.category[chosen], start - end, start))
        place = np.full(len(found), ABSENT, dtype=np.int64)
        place[chosen[order]] = np.arange(len(order))
        rows = found.take(chosen[order])
        _, thread = np.unique(rows.thread, return_inverse=True)
        stated = (rows.kind != NOT_STATED).any()
        return Trace(
            format="nsys",
            file=self.file,
            start_ns=rows.start_ns,
            duration_ns=rows.end_ns - rows.start_ns,
            category=rows.category,
            name_id=rows.name,
            stream=rows.stream,
            device=rows.device,
            thread=np.where(rows.thread == ABSENT, ABSENT, thread.ravel()).astype(np.int32),
            correlation=rows.correlation,
            external_id=np.full(len(rows), ABSENT, dtype=np.int64),
            size_bytes=rows.size_bytes,
            names=self.names,
            collectives=moved(args, place),
            inputs={row: self.inputs[rows.inputs[row]] for row in np.flatnonzero(rows.inputs != ABSENT).tolist()},
            metadata=metadata,
            event_counts=self.counts,
            warnings=self.warnings,
            stated_kind=rows.kind if stated else None,
            copy_kinds={row: COPY_TEXTS[rows.copy[row]] for row in np.flatnonzero(rows.copy != ABSENT).tolist()},
        )


def traces_of(db: Database) -> tuple[Trace, ...]:
    """Traces of a file: by rank where ranks are stated, then by process and device.

    Raises `UnsupportedTrace` for a schema that is not known, `EmptyTrace` where neither a device event nor an operator
    is in the file.
    """
    names = Names()
    facts = export_facts(db)
    warnings = [*db.warnings, *check_version(db, facts), *complaints(db)]
    device, calls = device_events(db, names, warnings), calls_of(db, names, warnings)
    ranges = ranges_of(db, names, warnings)
    device = _with_processes(device, calls, ranges.events, warnings)
    found = joined([device, calls, ranges.events])
    del device, calls
    nccl = nccl_calls(ranges, names, layouts_of(db, warnings), warnings)
    members = {process: memberships(made) for process, made in nccl.items()}
    sizes = sizes_of([one for some in members.values() for one in some])
    places = _places(found)
    if not places:
        raise EmptyTrace(
            f"{db.file} holds neither device events nor operators ({len(found):,} API calls and ranges of the host)",
            hint="profile at least one whole step with --trace=cuda,nvtx",
        )
    db.limits.check("max_devices", len(places), f"number of processes and devices in {db.file}")
    ranks = ranks_of(db, places, members, warnings)
    arguments: dict[int, Mapping[int, CollectiveArgs]] = {}
    for process in dict.fromkeys(process for process, _ in places):
        mine = np.flatnonzero(found.process == process)
        arguments[process] = collective_args(found, mine, nccl.get(process, ()), sizes, warnings)
    warnings += left_out(db, found, places)
    counts = counts_of(db, found, ranges.marks)
    metadata = Metadata(
        groups=groups_of(sizes), base_time_ns=base_time_ns(db, facts), devices_basis="TARGET_INFO_GPU of the export"
    )
    common = _Common(db.file, tuple(names.ids), ranges.inputs, metadata, counts, tuple(warnings))
    by_pid, every = devices_by_pid(db), all_devices(db)
    return tuple(
        common.trace(
            found,
            arguments[process],
            np.flatnonzero((found.process == process) & (~found.on_device | (found.device == device_index))),
            replace(_ranked(metadata, ranks.get((process, device_index))), devices=by_pid.get(pid_of(process), every)),
        )
        for process, device_index in _in_order(places, ranks)
    )


def _places(found: Events) -> list[Place]:
    """(process, device) of every device event, each once; without any, (process, ABSENT) of every operator."""
    rows = found.on_device
    if not rows.any():
        rows = found.category == Category.CPU_OP
    pairs = np.unique(np.stack((found.process[rows], found.device[rows]), axis=1), axis=0)
    return [(process, index) for process, index in pairs.tolist()]


def _in_order(places: Sequence[Place], ranks: Mapping[Place, RankOf]) -> list[Place]:
    return sorted(places, key=lambda place: (ranks[place].rank if place in ranks else len(places), *place))


def _ranked(metadata: Metadata, stated: RankOf | None) -> Metadata:
    if stated is None:
        return metadata
    if stated.world_size is None:
        return replace(metadata, rank=stated.rank)
    return replace(metadata, rank=stated.rank, world_size=stated.world_size, world_size_basis=stated.basis)


def _with_processes(device: Events, calls: Events, ranges: Events, warnings: list[str]) -> Events:
    """Device events that do not state their process belong to the one process the host rows are of."""
    silent = device.process == ABSENT
    if not silent.any():
        return device
    known = np.union1d(calls.process, ranges.process)
    known = known[known != ABSENT]
    if len(known) > 1:
        warnings.append(
            f"{int(silent.sum()):,} device events do not state their process, and the host rows are of {len(known)}: "
            "they are not joined"
        )
    if len(known) != 1:
        return device
    return replace(device, process=np.where(silent, known[0], device.process))
