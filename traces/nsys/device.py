"""What kept the devices busy: kernels, copies, memsets, and CUDA graphs whose kernels were not traced.

Column and table names: https://docs.nvidia.com/nsight-systems/UserGuide (SQLite schema reference). The documented
numbers of a copy's direction and of kinds of memory are those of ENUM_CUDA_MEMCPY_OPER and ENUM_CUDA_MEM_KIND, which
the exporter writes into each file.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from projector.errors import UnsupportedTrace
from traces.nsys.database import NO_NUMBER, Database
from traces.nsys.events import Events, Names, events, joined, with_usable_times
from traces.nsys.schema import find_table
from traces.trace import ABSENT, NOT_STATED, UNKNOWN_WORK, Category, Ints

KERNEL: Final = "CUPTI_ACTIVITY_KIND_KERNEL"
MEMCPY: Final = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSET: Final = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPH: Final = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"

COPY_TEXTS: Final = ("", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP")
"""Directions of copies by `copyKind`, spelled as PyTorch's profiler does; A is an array (texture memory)."""

_MIGRATIONS: Final = {11: 1, 12: 2, 13: 8}
"""copyKind of a unified-memory migration -> that of the plain copy of its direction."""
_ON_DEVICE: Final = COPY_TEXTS.index("DtoD")
_PEER: Final = COPY_TEXTS.index("PtoP")
_MEMORY: Final = ("Pageable", "Pinned", "Device", "Array", "Managed", "Device static", "Managed static")
_PLACE: Final = ("start", "end", "globalPid", "deviceId", "streamId", "correlationId")
_LARGEST_INDEX: Final = 2**31


def device_events(db: Database, names: Names, warnings: list[str]) -> Events:
    """Every event of every device with usable times."""
    tables = (_kernels, _copies, _memsets, _graphs)
    found = joined([read(db, names, warnings) for read in tables])
    found = with_usable_times(found, "events on the devices", warnings)
    hidden = found.kind == UNKNOWN_WORK
    if hidden.any():
        time_ns = int((found.end_ns - found.start_ns)[hidden].sum())
        warnings.append(
            f"{int(hidden.sum()):,} CUDA graph launches ({time_ns:,} ns) were traced as wholes: the kernels, copies "
            "and collectives inside are hidden, and the time counts as unclassified computation; profile with "
            "--cuda-graph-trace=node to see them"
        )
    return found


def name_ids(db: Database, ids: Ints, names: Names, what: str, warnings: list[str], second: Ints | None = None) -> Ints:
    """Name id of each text id of StringIds, or of the second one where the first is not in the file.

    What has neither, or an empty one, gets a name that says so.
    """
    pairs = np.stack((ids, ids if second is None else second), axis=1)
    distinct, place = np.unique(pairs, axis=0, return_inverse=True)
    texts = db.texts("StringIds", "id", "value", np.unique(pairs[pairs != NO_NUMBER]).tolist())
    told = [texts.get(first) or texts.get(other) for first, other in distinct.tolist()]
    known = [names.id(text or _nameless(first)) for text, (first, _) in zip(told, distinct.tolist(), strict=True)]
    place = place.ravel()
    nameless = int(np.array([not text for text in told], dtype=np.bool_)[place].sum())
    if nameless:
        warnings.append(f"the names of {nameless:,} {what} are not in the file (StringIds lacks them)")
    found: Ints = np.array(known, dtype=np.int64)[place]
    return found


def processes(global_ids: Ints) -> Ints:
    """What the serialised ids of one process and of its threads have in common; ABSENT where none is stated."""
    return np.where(global_ids == NO_NUMBER, ABSENT, global_ids >> 24)


def absent_for_none(column: Ints, none: int = NO_NUMBER) -> Ints:
    """A column with ABSENT for what is not stated."""
    return np.where((column == NO_NUMBER) | (column == none), ABSENT, column)


def _nameless(text_id: int) -> str:
    return "(no name)" if text_id == NO_NUMBER else f"(no name, string {text_id})"


def _placed(db: Database, table: str, more: tuple[str, ...], warnings: list[str]) -> Ints:
    """Rows of a table of device events: the columns of _PLACE, then `more`."""
    found = find_table(db, table, warnings)
    columns = db.tables.get(found, ())
    missing = [name for name in ("start", "end") if columns and name not in columns]
    if missing:
        raise UnsupportedTrace(
            f"table {found} of {db.file} has no column {' and '.join(missing)}",
            hint="export the report again: nsys export --type sqlite",
        )
    return db.numbers(found, (*_PLACE, *more))


def _rows(
    table: Ints,
    category: Category,
    name: Ints,
    *,
    size_bytes: Ints | int = ABSENT,
    copy: Ints | int = ABSENT,
    kind: int = NOT_STATED,
) -> Events:
    start, end, process, device, stream, correlation = table[:, : len(_PLACE)].T
    device, stream = (np.where((one < 0) | (one > _LARGEST_INDEX), ABSENT, one) for one in (device, stream))
    return events(
        start,
        end,
        category,
        name,
        processes(process),
        device=device,
        stream=stream,
        correlation=absent_for_none(correlation, 0),
        size_bytes=size_bytes,
        copy=copy,
        kind=kind,
    )


def _kernels(db: Database, names: Names, warnings: list[str]) -> Events:
    """Kernels under their full (demangled) name, or the short one where only that is in the file."""
    table = _placed(db, KERNEL, ("demangledName", "shortName"), warnings)
    name = name_ids(db, table[:, -2], names, "kernels", warnings, second=table[:, -1])
    return _rows(table, Category.KERNEL, name)


def _copies(db: Database, names: Names, warnings: list[str]) -> Events:
    """Copies with their direction; one between two devices is PtoP whatever it is called."""
    more = ("bytes", "copyKind", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId")
    table = _placed(db, MEMCPY, more, warnings)
    size, copy_kind, source, target, from_device, to_device = table[:, len(_PLACE) :].T
    migrated = np.isin(copy_kind, list(_MIGRATIONS))
    direction = np.where(migrated, 0, copy_kind)
    for number, plain in _MIGRATIONS.items():
        direction[copy_kind == number] = plain
    direction[(direction < 0) | (direction >= len(COPY_TEXTS))] = 0
    both = (from_device >= 0) & (to_device >= 0) & (from_device != to_device)
    direction[both & (direction == _ON_DEVICE)] = _PEER
    keys = np.stack((direction, migrated, _memory(source), _memory(target)), axis=1)
    name = _named(keys, lambda key: names.id(_copy_name(*key)))
    unknown = int((direction == 0).sum())
    if unknown:
        warnings.append(f"{unknown:,} copies do not state their direction, or one that is not known here")
    copy = np.where(direction == 0, ABSENT, direction)
    return _rows(table, Category.MEMCPY, name, size_bytes=_sizes(size), copy=copy)


def _memsets(db: Database, names: Names, warnings: list[str]) -> Events:
    table = _placed(db, MEMSET, ("bytes", "memKind"), warnings)
    memory = _memory(table[:, -1])
    told = [names.id(f"Memset ({_MEMORY[one]})" if one >= 0 else "Memset") for one in range(-1, len(_MEMORY))]
    name = np.array(told, dtype=np.int64)[memory + 1]
    return _rows(table, Category.MEMSET, name, size_bytes=_sizes(table[:, -2]))


def _graphs(db: Database, names: Names, warnings: list[str]) -> Events:
    """Graph launches traced as wholes: device time of which nobody says what it computes."""
    table = _placed(db, GRAPH, ("graphId", "graphExecId"), warnings)
    graph = np.where(table[:, -2] == NO_NUMBER, table[:, -1], table[:, -2])
    name = _named(graph[:, None], lambda key: names.id(graph_name(key[0])))
    return _rows(table, Category.KERNEL, name, kind=UNKNOWN_WORK)


def graph_name(graph: int) -> str:
    """What the launches of one graph are called."""
    return "CUDA graph (kernels not traced)" if graph == NO_NUMBER else f"CUDA graph {graph} (kernels not traced)"


def _named(keys: Ints, name_id: Callable[[list[int]], int]) -> Ints:
    """Name id of each row of keys."""
    distinct, place = np.unique(keys, axis=0, return_inverse=True)
    ids: Ints = np.array([name_id(key) for key in distinct.tolist()], dtype=np.int64)[place.ravel()]
    return ids


def _memory(kinds: Ints) -> Ints:
    """Index into _MEMORY; ABSENT for unknown kinds."""
    return np.where((kinds >= 0) & (kinds < len(_MEMORY)), kinds, ABSENT)


def _sizes(column: Ints) -> Ints:
    return np.where(column < 0, ABSENT, column)


def _copy_name(direction: int, migrated: int, source: int, target: int) -> str:
    """As PyTorch's profiler names copies: "Memcpy HtoD (Pageable -> Device)"."""
    name = f"Memcpy {COPY_TEXTS[direction] or 'Unknown'}"
    if migrated:
        return f"{name} (unified memory migration)"
    if source < 0 or target < 0:
        return name
    return f"{name} ({_MEMORY[source]} -> {_MEMORY[target]})"
