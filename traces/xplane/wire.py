"""Protobuf wire format to columns, for many messages at once.

`read_fields` decodes one level of nesting: it lists the fields of every message of a set, in their order, and does not
look into length-delimited payloads, so nesting is as deep as the caller's schema and never deeper. Many messages (the
events of a line) are read in lock-step, one field of each at a time, over whole columns; the few that are left, or that
have very many fields (a line, a plane), are read one after the other. Both ways refuse the same input.

Wire format: https://protobuf.dev/programming-guides/encoding/
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from traces.trace import Ints, Mask

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]

VARINT: Final = 0
FIXED64: Final = 1
DELIMITED: Final = 2
FIXED32: Final = 5

_FIXED_BYTES: Final = {FIXED64: 8, FIXED32: 4}
_LONGEST_VARINT: Final = 10
_WORD: Final = (1 << 64) - 1
_LARGEST_FIELD: Final = (1 << 29) - 1
_COLUMNS: Final = 6
_ONE_BY_ONE_BELOW: Final = 48


class WireFault(ValueError):
    """Bytes that are no protobuf message: what is wrong, and at which offset of the data."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(f"{reason} at byte {offset:,}")
        self.reason = reason
        self.offset = offset


@dataclass(frozen=True, slots=True, eq=False)
class Fields:
    """The fields of a set of messages, one entry each, ordered by message and then as written.

    owner    index of the message
    number   field number
    wire     VARINT, FIXED64, DELIMITED or FIXED32
    word     value of a varint or fixed field as 64 unsigned bits; 0 for a delimited one
    start    offset of the payload of a delimited field, of the value of others
    length   bytes of that payload
    """

    owner: Ints
    number: Ints
    wire: Ints
    word: Words
    start: Ints
    length: Ints

    def where(self, mask: Mask) -> "Fields":
        """The fields the mask selects."""
        return Fields(
            self.owner[mask], self.number[mask], self.wire[mask], self.word[mask], self.start[mask], self.length[mask]
        )

    def of(self, number: int, wire: int) -> "Fields":
        """The fields of one number; those of an unexpected wire type are unknown fields, and left out."""
        return self.where((self.number == number) & (self.wire == wire))

    @property
    def end(self) -> Ints:
        """Offset after each payload."""
        return self.start + self.length

    @property
    def signed(self) -> Ints:
        """`word` as int64."""
        return self.word.view(np.int64)

    def last_word(self, number: int, messages: int, default: int = 0) -> Ints:
        """Varint `number` of each message as int64; the last one counts, `default` where a message has none."""
        found = np.full(messages, default, dtype=np.int64)
        mine = self.of(number, VARINT)
        found[mine.owner] = mine.signed
        return found


def read_fields(data: bytes | bytearray, starts: Ints, ends: Ints) -> Fields:
    """Fields of the messages that lie at data[starts[i]:ends[i]].

    Raises `WireFault`: a varint that is cut off, longer than ten bytes or wider than 64 bits, a length beyond the end
    of its message, a field number of 0 or above 2**29 - 1, a wire type that is not in use.
    """
    view = np.frombuffer(data, dtype=np.uint8)
    parts: list[tuple[Ints, Words]] = []
    at = starts.astype(np.int64, copy=True)
    active = np.flatnonzero(at < ends)
    while len(active) >= _ONE_BY_ONE_BELOW:
        numbers, words, at[active] = _one_field_each(view, at[active], ends[active])
        numbers[:, 0] = active
        parts.append((numbers, words))
        active = active[at[active] < ends[active]]
    if len(active):
        parts.append(_one_by_one(data, active.tolist(), at[active].tolist(), ends[active].tolist()))
    return _ordered(parts)


def _ordered(parts: list[tuple[Ints, Words]]) -> Fields:
    """One table; the rounds of the lock-step bring the fields of each message in order, so a stable sort is enough."""
    if not parts:
        parts = [(np.empty((0, _COLUMNS - 1), dtype=np.int64), np.empty(0, dtype=np.uint64))]
    numbers = np.concatenate([part[0] for part in parts])
    words = np.concatenate([part[1] for part in parts])
    if len(parts) > 1:
        order = np.argsort(numbers[:, 0], kind="stable")
        numbers, words = numbers[order], words[order]
    owner, number, wire, start, length = (np.ascontiguousarray(column) for column in numbers.T)
    return Fields(owner, number, wire, words, start, length)


def _one_field_each(view: Bytes, at: Ints, ends: Ints) -> tuple[Ints, Words, Ints]:
    """The next field of every message: its columns (owner left open), its word, and the offset after it."""
    begins = at
    key, at = _varints(view, at, ends)
    wire = (key & np.uint64(7)).astype(np.int64)
    number = key >> np.uint64(3)
    _refuse((number == 0) | (number > _LARGEST_FIELD), "a field number that does not exist", begins)
    word = np.zeros(len(at), dtype=np.uint64)
    length = np.zeros(len(at), dtype=np.int64)
    start = at.copy()

    plain = np.flatnonzero(wire == VARINT)
    word[plain], at[plain] = _varints(view, at[plain], ends[plain])
    delimited = np.flatnonzero(wire == DELIMITED)
    if len(delimited):
        size, payload = _varints(view, at[delimited], ends[delimited])
        room = (ends[delimited] - payload).astype(np.uint64)
        _refuse(size > room, "a length beyond the end of its message", begins[delimited])
        length[delimited], start[delimited] = size.astype(np.int64), payload
        at[delimited] = payload + length[delimited]
    for kind, width in _FIXED_BYTES.items():
        fixed = np.flatnonzero(wire == kind)
        _refuse(at[fixed] + width > ends[fixed], "a value that is cut off", begins[fixed])
        for index in range(width if len(fixed) else 0):
            word[fixed] |= view[at[fixed] + index].astype(np.uint64) << np.uint64(8 * index)
        at[fixed] += width
    known = (wire == VARINT) | (wire == FIXED64) | (wire == DELIMITED) | (wire == FIXED32)
    _refuse(~known, "a wire type that is not in use", begins)
    return np.stack([np.zeros_like(at), number.astype(np.int64), wire, start, length], axis=1), word, at


def _varints(view: Bytes, at: Ints, ends: Ints) -> tuple[Words, Ints]:
    """One varint from each offset: values and the offsets after them."""
    begins, at = at, at.copy()
    value = np.zeros(len(at), dtype=np.uint64)
    open_ones = np.arange(len(at))
    for index in range(_LONGEST_VARINT):
        _refuse(at[open_ones] >= ends[open_ones], "a varint that is cut off", begins[open_ones])
        byte = view[at[open_ones]]
        if index == _LONGEST_VARINT - 1:
            _refuse(byte > 1, "a varint of more than 64 bits", begins[open_ones])
        value[open_ones] |= (byte & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * index)
        at[open_ones] += 1
        open_ones = open_ones[byte >= 0x80]
        if not len(open_ones):
            break
    return value, at


def _refuse(wrong: Mask, reason: str, offsets: Ints) -> None:
    if wrong.any():
        raise WireFault(reason, int(offsets[wrong].min()))


def _one_by_one(data: bytes | bytearray, owners: list[int], starts: list[int], ends: list[int]) -> tuple[Ints, Words]:
    """All fields of each message in turn."""
    rows = array("q")
    words = array("Q")
    for owner, start, end in zip(owners, starts, ends, strict=True):
        for number, wire, word, at, length in _fields_of(data, start, end):
            rows.extend((owner, number, wire, at, length))
            words.append(word)
    table = np.frombuffer(rows, dtype=np.int64).reshape(-1, _COLUMNS - 1) if rows else np.empty((0, 5), dtype=np.int64)
    return table, np.frombuffer(words, dtype=np.uint64) if words else np.empty(0, dtype=np.uint64)


def _fields_of(data: bytes | bytearray, at: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
    """(number, wire, word, start, length) of each field of data[at:end]."""
    while at < end:
        begin = at
        key, at = one_varint(data, at, end)
        number, wire = key >> 3, key & 7
        if not 0 < number <= _LARGEST_FIELD:
            raise WireFault("a field number that does not exist", begin)
        word, start, length = 0, at, 0
        if wire == VARINT:
            word, at = one_varint(data, at, end)
        elif wire == DELIMITED:
            length, start = one_varint(data, at, end)
            at = start + length
            if at > end:
                raise WireFault("a length beyond the end of its message", begin)
        elif wire in _FIXED_BYTES:
            at += _FIXED_BYTES[wire]
            if at > end:
                raise WireFault("a value that is cut off", begin)
            word = int.from_bytes(data[start:at], "little")
        else:
            raise WireFault("a wire type that is not in use", begin)
        yield number, wire, word, start, length


def one_varint(data: bytes | bytearray, at: int, end: int) -> tuple[int, int]:
    """The varint at data[at:end], and the offset after it. Raises `WireFault`."""
    begin = at
    value = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        if at - begin == _LONGEST_VARINT and byte > 1:
            raise WireFault("a varint of more than 64 bits", begin)
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _WORD, at
        shift += 7
    raise WireFault("a varint that is cut off", begin)
