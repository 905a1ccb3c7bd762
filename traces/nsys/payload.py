"""The payload of NCCL's NVTX ranges: which communicator, how many bytes, which rank.

NCCL hands a C struct to each range and registers what the struct looks like (src/include/nvtx_payload_schemas.h). The
export keeps the layouts in NVTX_PAYLOAD_SCHEMAS and NVTX_PAYLOAD_SCHEMA_ENTRIES, and with `--include-blobs=true` the
structs in NVTX_EVENTS.binaryData, each behind four little-endian 64-bit numbers: domain, schema, bytes of the struct,
and a fourth that is not needed. That header is not documented; it is the one public readers of such files decode
(GindaChen/nsys-ai, `nccl_communicator.py` and `nccl_payload_breakdown.py`), and no sample here holds one. A blob whose
header, layout and length do not agree is counted as unreadable and never guessed at.

Types of entries: nvtx3/nvToolsExtPayload.h. A layout that two processes describe differently is not used.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from traces.nsys.database import NO_NUMBER, Database
from traces.nsys.schema import find_table

_HEADER: Final = struct.Struct("<QQQQ")
_NO_FLAGS: Final = (0, NO_NUMBER)
_CODES: Final = {
    5: "<i", 6: "<I", 7: "<q", 8: "<Q", 9: "<q", 10: "<Q", 11: "<b", 12: "<B", 13: "<h", 14: "<H", 15: "<i", 16: "<I",
    17: "<q", 18: "<Q", 22: "<Q",
}  # fmt: skip

COMMUNICATOR: Final = "NCCL communicator ID"
MESSAGE_BYTES: Final = "Message size [bytes]"
RANKS: Final = "No. of ranks"
RANK: Final = "Rank"
DEVICE: Final = "CUDA device"


@dataclass(frozen=True, slots=True)
class Field:
    """Where one number of a struct lies."""

    name: str
    code: str
    offset: int


@dataclass(frozen=True, slots=True)
class Layout:
    """One kind of struct. size_bytes: None where the file does not state it."""

    size_bytes: int | None
    fields: tuple[Field, ...]


Layouts = Mapping[tuple[int, int], Layout]
"""(domain, schema) -> layout."""


def layouts_of(db: Database, warnings: list[str]) -> Layouts:
    """The layouts the file describes, of whole numbers only: arrays, pointers and enumerations are left out."""
    sizes: dict[tuple[int, int], set[int]] = {}
    for domain, schema, size in db.numbers(
        find_table(db, "NVTX_PAYLOAD_SCHEMAS", warnings), ("domainId", "schemaId", "payloadSize")
    ).tolist():
        sizes.setdefault((domain, schema), set()).add(size)
    entries: dict[tuple[int, int], dict[int, set[tuple[int, int, int, str]]]] = {}
    table = find_table(db, "NVTX_PAYLOAD_SCHEMA_ENTRIES", warnings)
    for rows in db.records(table, ("domainId", "schemaId", "idx", "type", "offset", "flags"), ("name",)):
        for domain, schema, index, kind, offset, flags, name in rows:
            entries.setdefault((domain, schema), {}).setdefault(index, set()).add((kind, offset, flags, db.text(name)))
    ambiguous = {key for key, found in sizes.items() if len(found) > 1}
    ambiguous |= {key for key, by_index in entries.items() if any(len(found) > 1 for found in by_index.values())}
    if ambiguous:
        warnings.append(f"{len(ambiguous)} NVTX payload layouts are described in two ways and are not used")
    return {
        key: Layout(_size(sizes.get(key, set())), tuple(_fields(by_index)))
        for key, by_index in entries.items()
        if key not in ambiguous
    }


def _size(stated: set[int]) -> int | None:
    size = next(iter(stated), NO_NUMBER)
    return size if size > 0 else None


def _fields(by_index: Mapping[int, set[tuple[int, int, int, str]]]) -> list[Field]:
    found = []
    for index, described in sorted(by_index.items()):
        kind, offset, flags, name = next(iter(described))
        if offset == NO_NUMBER and index == 0:
            offset = 0  # the exporter writes NULL for the first
        if name and kind in _CODES and offset >= 0 and flags in _NO_FLAGS:
            found.append(Field(name, _CODES[kind], offset))
    return found


def decoded(blob: bytes, layouts: Layouts) -> Mapping[str, int] | None:
    """Numbers of a payload by name; None where header, layout and length do not agree."""
    if len(blob) < _HEADER.size:
        return None
    domain, schema, size, _ = _HEADER.unpack_from(blob)
    layout = layouts.get((domain, schema))
    if layout is None or len(blob) < _HEADER.size + size or layout.size_bytes not in (None, size):
        return None
    fits = [one for one in layout.fields if one.offset + struct.calcsize(one.code) <= size]
    return {one.name: struct.unpack_from(one.code, blob, _HEADER.size + one.offset)[0] for one in fits}
