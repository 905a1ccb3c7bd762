"""Length-delimited messages: each one is a varint of its length, and that many bytes (GlobalMetadata, then Nodes)."""

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from projector.errors import CorruptTrace
from traces.content import Content, Limits
from traces.trace import Ints
from traces.xplane.wire import DELIMITED, WireFault, one_varint, read_fields

_LONGEST_TEXT: Final = 64
_VERSION: Final = re.compile(rb"\d[\w.+-]*")
_NAME: Final = re.compile(rb"[A-Za-z_][\w.-]*")
_ATTRIBUTE_NAME: Final = 0x0A
_METADATA_FIELDS: Final = (1, 2)
_NODE_BEGINS: Final = (0x08, 0x12, 0x18)  # id, name or type: a first node's id of 0 is not written


@dataclass(frozen=True, slots=True, eq=False)
class Frames:
    """Where each whole message lies, in order; how many bytes are left behind the last one."""

    starts: Ints
    ends: Ints
    left_over: int


def begins_like_chakra(head: bytes) -> bool:
    """Whether a file begins with a GlobalMetadata message: a version, or an attribute with a name, and then a node."""
    try:
        length, at = one_varint(head, 0, len(head))
        end = at + length
        if length < 2 or not _is_metadata_field(head, at):
            return False
        if end > len(head):
            return True
        fields = read_fields(head, np.array([at]), np.array([end]))
        if not np.isin(fields.number, _METADATA_FIELDS).all() or (fields.wire != DELIMITED).any():
            return False
        if end == len(head):
            return True
        _, at = one_varint(head, end, len(head))
        return at < len(head) and head[at] in _NODE_BEGINS
    except WireFault:
        return False


def _is_metadata_field(head: bytes, at: int) -> bool:
    """A version (field 1), or an attribute (field 2, and field 1 before 2024) that begins with its name."""
    tag = head[at] if at < len(head) else 0
    length, start = one_varint(head, at + 1, len(head))
    if tag == 0x0A and _VERSION.fullmatch(head[start : start + min(length, _LONGEST_TEXT)]):
        return True
    if tag not in (0x0A, 0x12) or head[start : start + 1] != bytes([_ATTRIBUTE_NAME]):
        return False
    length, start = one_varint(head, start + 1, len(head))
    return _NAME.fullmatch(head[start : start + min(length, _LONGEST_TEXT)]) is not None


def frames_of(content: Content, limits: Limits) -> Frames:
    """The messages of a file. Raises `CorruptTrace` for a length no file can have, `TraceTooLarge` for max_events."""
    data, size = content.data, len(content.data)
    starts: list[int] = []
    ends: list[int] = []
    at = count = 0
    while at < size:
        try:
            length, begin = one_varint(data, at, size)
        except WireFault:
            break
        if begin + length > size:
            if length > limits.max_decompressed_bytes:
                raise CorruptTrace(
                    f"{content.file} claims a message of {length:,} bytes at byte {at:,}, beyond any file",
                    hint="copy the file again",
                )
            break
        at = begin + length
        count += 1
        if count > limits.max_events:
            limits.check("max_events", count, f"number of messages in {content.file}")
        if length:
            starts.append(begin)
            ends.append(at)
    return Frames(np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64), size - at)
