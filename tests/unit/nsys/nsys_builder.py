"""Writes small databases in the shape of Nsight Systems' sqlite exports. Times are nanoseconds, as in the exports."""

import sqlite3
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traces.content import Content, Limits
from traces.read import DEFAULT_LIMITS
from traces.readers.nsys import READER
from traces.trace import Trace

Value = int | float | str | bytes | None
Row = dict[str, Value]

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
MEMCPY = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSET = "CUPTI_ACTIVITY_KIND_MEMSET"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
GRAPH = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
NVTX = "NVTX_EVENTS"

PUSH_POP, START_END, MARK, DOMAIN = 59, 60, 34, 75
PID = 1000

_PLACE = ("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid")
COLUMNS: dict[str, tuple[str, ...]] = {
    "META_DATA_EXPORT": ("name", "value"),
    "META_DATA_CAPTURE": ("name", "value"),
    "StringIds": ("id", "value"),
    KERNEL: (*_PLACE, "demangledName", "shortName", "graphNodeId"),
    MEMCPY: (*_PLACE, "bytes", "copyKind", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId"),
    MEMSET: (*_PLACE, "value", "bytes", "memKind"),
    GRAPH: (*_PLACE, "graphId", "graphExecId"),
    RUNTIME: ("start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue"),
    NVTX: ("start", "end", "eventType", "text", "globalTid", "textId", "domainId", "binaryData"),
    "NVTX_PAYLOAD_SCHEMAS": ("domainId", "schemaId", "name", "type", "flags", "numEntries", "payloadSize", "alignTo"),
    "NVTX_PAYLOAD_SCHEMA_ENTRIES": ("domainId", "schemaId", "idx", "flags", "type", "name", "offset"),
    "TARGET_INFO_GPU": ("id", "name", "totalMemory", "smCount", "cuDevice", "computeMajor", "computeMinor"),
    "TARGET_INFO_CUDA_DEVICE": ("gpuId", "cudaId", "pid"),
    "TARGET_INFO_SYSTEM_ENV": ("name", "value"),
    "TARGET_INFO_SESSION_START_TIME": ("utcEpochNs",),
    "DIAGNOSTIC_EVENT": ("severity", "text"),
}


def process(pid: int = PID) -> int:
    """Serialised id of a process."""
    return (1 << 48) | (pid << 24)


def thread(tid: int = 1, pid: int = PID) -> int:
    """Serialised id of a thread."""
    return process(pid) | tid


@dataclass
class Export:
    """Rows by table; a table is written where it has rows or was asked for, as the exporter does."""

    version: str | None = "3.25.0"
    rows: dict[str, list[Row]] = field(default_factory=dict)
    absent: dict[str, tuple[str, ...]] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    statements: list[str] = field(default_factory=list)
    strings: dict[str, int] = field(default_factory=dict)

    def add(self, table: str, **row: Value) -> None:
        self.rows.setdefault(table, []).append(row)

    def string(self, text: str) -> int:
        """Id of a text in StringIds."""
        if text not in self.strings:
            self.strings[text] = 100 + len(self.strings)
            self.add("StringIds", id=self.strings[text], value=text)
        return self.strings[text]

    def kernel(self, name: str, start: int, end: int, *, pid: int = PID, **more: Value) -> None:
        row = _placed(start, end, pid) | {"demangledName": self.string(name), "shortName": self.string(name)}
        self.add(KERNEL, **(row | more))

    def copy(self, start: int, end: int, kind: int, size: int, *, pid: int = PID, **more: Value) -> None:
        row = _placed(start, end, pid) | {"copyKind": kind, "bytes": size, "srcKind": 0, "dstKind": 2}
        self.add(MEMCPY, **(row | more))

    def memset(self, start: int, end: int, size: int, *, pid: int = PID, **more: Value) -> None:
        self.add(MEMSET, **(_placed(start, end, pid) | {"bytes": size, "memKind": 2} | more))

    def graph(self, number: int, start: int, end: int, *, pid: int = PID, **more: Value) -> None:
        self.add(GRAPH, **(_placed(start, end, pid) | {"graphId": number, "graphExecId": number + 1} | more))

    def call(
        self, name: str, start: int, end: int, *, correlation: int = 0, pid: int = PID, tid: int = 1, **more: Value
    ) -> None:
        row: Row = {"start": start, "end": end, "globalTid": thread(tid, pid), "correlationId": correlation}
        self.add(RUNTIME, **(row | {"nameId": self.string(name)} | more))

    def span(
        self,
        text: str | None,
        start: int,
        end: int | None,
        *,
        pid: int = PID,
        tid: int = 1,
        domain: int = 0,
        **more: Value,
    ) -> None:
        """An NVTX range, with its text in the row."""
        row: Row = {"start": start, "end": end, "eventType": PUSH_POP, "text": text, "domainId": domain}
        self.add(NVTX, **(row | {"globalTid": thread(tid, pid)} | more))

    def domain(self, name: str, number: int, *, pid: int = PID) -> None:
        self.span(name, 0, None, pid=pid, domain=number, eventType=DOMAIN)

    def launched(
        self, name: str, start: int, end: int, correlation: int, at: int, *, pid: int = PID, tid: int = 1, **more: Value
    ) -> None:
        """A kernel and the call that launched it at a time, which takes 5 ns."""
        self.kernel(name, start, end, pid=pid, correlationId=correlation, **more)
        self.call("cudaLaunchKernel_v7000", at, at + 5, correlation=correlation, pid=pid, tid=tid)

    def gpu(self, index: int, name: str, **more: Value) -> None:
        row: Row = {"id": index, "cuDevice": index, "name": name, "totalMemory": 80 << 30, "smCount": 132}
        self.add("TARGET_INFO_GPU", **(row | {"computeMajor": 9, "computeMinor": 0} | more))

    def without(self, table: str, *columns: str) -> None:
        """Leave columns out of a table."""
        self.absent[table] = columns

    def write(self, path: Path) -> Path:
        """The database as a file."""
        rows = dict(self.rows)
        if self.version is not None:
            stated: Row = {"name": "EXPORT_SCHEMA_VERSION", "value": self.version}
            rows["META_DATA_EXPORT"] = [stated, *rows.get("META_DATA_EXPORT", [])]
        with sqlite3.connect(path) as database:
            for table, entries in rows.items():
                columns = [name for name in COLUMNS[table] if name not in self.absent.get(table, ())]
                _fill(database, self.renamed.get(table, table), columns, entries)
            for statement in self.statements:
                database.execute(statement)
        database.close()
        return path

    def read(self, folder: Path, limits: Limits = DEFAULT_LIMITS) -> tuple[Trace, ...]:
        """The traces the reader makes of the file."""
        return read_file(self.write(folder / "export.sqlite"), limits)

    def trace(self, folder: Path) -> Trace:
        (trace,) = self.read(folder)
        return trace


def read_file(path: Path, limits: Limits = DEFAULT_LIMITS) -> tuple[Trace, ...]:
    """Read a file that the reader must claim."""
    content = Content.on_disk(path, limits, path.name, compressed=path.suffix == ".gz")
    assert READER.claims(content)
    return READER.read(content, limits)


def _placed(start: int, end: int, pid: int) -> Row:
    return {
        "start": start, "end": end, "deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": 0,
        "globalPid": process(pid),
    }  # fmt: skip


def _fill(database: sqlite3.Connection, table: str, columns: list[str], rows: list[Row]) -> None:
    declared = ", ".join(f'"{name}" {_declared(table, name)}' for name in columns)
    database.execute(f'CREATE TABLE "{table}" ({declared})')
    places = ", ".join("?" * len(columns))
    database.executemany(
        f'INSERT INTO "{table}" VALUES ({places})',  # noqa: S608
        [[row.get(name) for name in columns] for row in rows],
    )


def _declared(table: str, column: str) -> str:
    if (table, column) == ("StringIds", "id"):
        return "INTEGER NOT NULL PRIMARY KEY"
    return "TEXT" if column in ("name", "value", "text", "binaryData") and table != MEMSET else "INTEGER"


def names(trace: Trace) -> list[str]:
    """Name of every row."""
    return [trace.name(row) for row in range(len(trace))]


COMMUNICATOR = (18, "NCCL communicator ID", 0)
MESSAGE = (22, "Message size [bytes]", 8)
RANKS, RANK, DEVICE = (5, "No. of ranks", 8), (5, "Rank", 12), (5, "CUDA device", 16)
MADE, GATHERED, REDUCED, SENT = 16777218, 16777220, 16777221, 16777225


def describe_nccl(export: Export, domain: int = 1) -> None:
    """The layouts NCCL registers, as an export holds them: the offset of the first entry is NULL."""
    layouts: dict[int, tuple[int, list[tuple[Any, ...]]]] = {
        MADE: (24, [COMMUNICATOR, RANKS, RANK, DEVICE]),
        GATHERED: (16, [COMMUNICATOR, MESSAGE]),
        REDUCED: (24, [COMMUNICATOR, MESSAGE, (16777232, "Reduction operation", 16)]),
        SENT: (24, [COMMUNICATOR, MESSAGE, (5, "Peer rank", 16)]),
    }
    for schema, (size, entries) in layouts.items():
        export.add("NVTX_PAYLOAD_SCHEMAS", domainId=domain, schemaId=schema, payloadSize=size)
        for index, (kind, name, offset) in enumerate(entries):
            row: Row = {"domainId": domain, "schemaId": schema, "idx": index, "type": kind, "name": name}
            export.add("NVTX_PAYLOAD_SCHEMA_ENTRIES", **row, offset=offset or None)


def payload(schema: int, body: bytes, domain: int = 1) -> bytes:
    """The blob of a range: header and struct."""
    return struct.pack("<QQQQ", domain, schema, len(body), 32 + len(body)) + body


def made(communicator: int, ranks: int, rank: int, device: int = 0) -> bytes:
    return payload(MADE, struct.pack("<Qiiii", communicator, ranks, rank, device, 0))


def gathered(communicator: int, size: int) -> bytes:
    return payload(GATHERED, struct.pack("<QQ", communicator, size))


def reduced(communicator: int, size: int) -> bytes:
    return payload(REDUCED, struct.pack("<QQii", communicator, size, 0, 0))


def sent(communicator: int, size: int, peer: int = 1) -> bytes:
    return payload(SENT, struct.pack("<QQii", communicator, size, peer, 0))
