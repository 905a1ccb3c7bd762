"""Protobuf wire format to columns: one by one and in lock-step, and what both refuse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xplane_builder import bytes_field, double_field, number_field, varint

from traces.trace import Ints
from traces.xplane.wire import DELIMITED, FIXED32, FIXED64, VARINT, Fields, WireFault, read_fields

MANY = 100
"""More messages than are read one by one."""


def placed(messages: list[bytes]) -> tuple[bytes, Ints, Ints]:
    """Messages with a byte of something else around each."""
    data, starts, ends = b"\xff", [], []
    for message in messages:
        starts.append(len(data))
        data += message
        ends.append(len(data))
        data += b"\xff"
    return data, np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64)


def fields_of(*messages: bytes) -> Fields:
    return read_fields(*placed(list(messages)))


def table(fields: Fields) -> list[tuple[int, int, int, int, int]]:
    columns = (fields.owner, fields.number, fields.wire, fields.word, fields.length)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_one_message_of_every_wire_type() -> None:
    message = number_field(1, 300) + double_field(2, 1.5) + bytes_field(3, b"text") + varint(4 << 3 | 5) + b"\1\0\0\0"
    fields = fields_of(message)
    assert table(fields) == [
        (0, 1, VARINT, 300, 0),
        (0, 2, FIXED64, np.float64(1.5).view(np.uint64), 0),
        (0, 3, DELIMITED, 0, 4),
        (0, 4, FIXED32, 1, 0),
    ]
    data = placed([message])[0]
    assert data[int(fields.start[2]) : int(fields.end[2])] == b"text"


def test_a_negative_number_is_the_two_s_complement() -> None:
    fields = fields_of(number_field(1, -5))
    assert fields.signed.tolist() == [-5]
    assert fields.last_word(1, 1).tolist() == [-5]


def test_of_a_number_given_twice_the_last_counts_and_an_absent_one_has_the_default() -> None:
    fields = fields_of(number_field(1, 3) + number_field(1, 4), b"", number_field(2, 9))
    assert fields.last_word(1, 3, default=-1).tolist() == [4, -1, -1]


def test_a_field_of_an_unexpected_wire_type_is_an_unknown_field() -> None:
    fields = fields_of(bytes_field(1, b"7") + number_field(1, 7))
    assert fields.of(1, VARINT).word.tolist() == [7]


numbers = st.integers(1, 2**29 - 1)
field_bytes = st.one_of(
    st.builds(number_field, numbers, st.integers(-(2**63), 2**64 - 1)),
    st.builds(bytes_field, numbers, st.binary(max_size=12)),
    st.builds(double_field, numbers, st.floats(allow_nan=False)),
)
messages = st.lists(field_bytes, max_size=6).map(b"".join)


@given(st.lists(messages, min_size=1, max_size=8))
@settings(deadline=None, max_examples=60)
def test_lock_step_reads_what_reading_one_by_one_reads(some: list[bytes]) -> None:
    alone = [table(fields_of(message)) for message in some]
    many = (some * MANY)[:MANY]
    together = table(fields_of(*many))
    expected = [(index, *row[1:]) for index in range(MANY) for row in alone[index % len(some)]]
    assert together == expected


FAULTS = {
    "a varint that is cut off": [b"\x08", b"\x08\x80", b"\x08" + b"\x80" * 9],
    "a varint of more than 64 bits": [b"\x08" + b"\xff" * 9 + b"\x02", b"\x08" + b"\x80" * 10 + b"\x01"],
    "a length beyond the end of its message": [b"\x0a\x05abcd", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"],
    "a field number that does not exist": [b"\x00\x01", varint((1 << 32) | 0) + b"\x01"],
    "a value that is cut off": [b"\x09\x01\x02", b"\x0d\x01"],
    "a wire type that is not in use": [b"\x0b", b"\x0c\x01", b"\x0f\x01"],
}


@pytest.mark.parametrize(("reason", "message"), [(why, data) for why, all_data in FAULTS.items() for data in all_data])
@pytest.mark.parametrize("before", [0, MANY])
def test_damage_is_refused_with_its_offset(reason: str, message: bytes, before: int) -> None:
    good = number_field(1, 1)
    with pytest.raises(WireFault, match=reason) as refused:
        fields_of(*[good] * before, good + message, *[good] * before)
    begin = 1 + before * (len(good) + 1) + len(good)
    assert begin <= refused.value.offset <= begin + len(message)


def test_nothing_to_read() -> None:
    assert table(fields_of()) == []
    assert table(fields_of(b"", b"")) == []
