"""Damaged and hostile Chakra files: what is whole and a warning, or a typed error, with flat memory."""

import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projector.errors import CorruptTrace, TraceError, TraceTooLarge
from tests.unit.chakra.chakra_examples import (
    ALL_REDUCE,
    COLL,
    COMP,
    METADATA,
    delimited,
    et,
    framed,
    node,
    operands,
    read,
    varint,
    warned,
)
from traces.content import Content, Limits
from traces.readers import chakra

TIMED = [node(one, f"k{one}", COMP, start=one, duration=1, is_cpu_op=False) for one in range(1, 60)]
WHOLE = et(
    node(1, "groups", METADATA, inputs=operands(values='[{"pg_name": "0", "ranks": [], "group_size": 2}]')),
    node(2, "c", COLL, start=5, duration=1, comm_type=ALL_REDUCE, comm_size=64, involved_dim=[True], pg_name="0"),
    *TIMED,
)


@pytest.mark.parametrize("claimed", [10 * 2**30, 2**40, 2**63])
def test_a_header_that_claims_more_than_any_file_is_corrupt_with_flat_memory(claimed: int) -> None:
    metadata = delimited(1, b"0.0.4")
    tracemalloc.start()
    try:
        for data in (varint(claimed) + metadata, et(*TIMED) + varint(claimed) + metadata):
            content = Content("a.et", data)
            assert chakra.claims(content)
            with pytest.raises(CorruptTrace, match="beyond any file"):
                chakra.read(content, Limits())
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()


def test_a_file_that_breaks_off_gives_its_whole_nodes() -> None:
    trace = read(WHOLE[:-3])
    assert len(trace) == len(TIMED)  # the collective, and all but the last of the timed ones
    assert warned(trace, "the file breaks off: ")


@pytest.mark.parametrize("kept", [3, 7, 14])
def test_a_file_that_breaks_off_before_its_first_node_is_corrupt(kept: int) -> None:
    with pytest.raises(CorruptTrace):
        read(WHOLE[:kept])


def test_a_message_that_is_none_is_corrupt_and_says_where() -> None:
    with pytest.raises(CorruptTrace, match="at byte"):
        read(et(TIMED[0], b"\x0a\xff\x01abc"))


def test_more_messages_than_the_limit_are_refused() -> None:
    with pytest.raises(TraceTooLarge, match="number of messages"):
        read(WHOLE, limits=Limits(max_events=10))
    with pytest.raises(TraceTooLarge, match="number of messages"):
        read(et() + bytes(1_000), limits=Limits(max_events=10))


def test_times_that_cannot_be_right_are_dropped_and_told() -> None:
    day = 86_400 * 10**6
    long = node(70, "long", COMP, start=5, duration=day + 1, is_cpu_op=False)
    far = node(71, "far", COMP, start=3 * day, duration=1, is_cpu_op=True)
    huge = node(72, "huge", COMP, start=2**62, duration=2**62, is_cpu_op=False)
    trace = read(et(*TIMED, long, far, huge))
    assert len(trace) == len(TIMED)
    assert warned(trace, "1 nodes had times out of range and were dropped (1 of them on the device)")
    assert warned(trace, "1 nodes lasted longer than a day and were dropped (1 of them on the device)")
    assert warned(trace, "1 nodes started more than a day from the others and were dropped (0 of them on the device)")


def test_sizes_no_machine_has_are_unknown_and_told() -> None:
    odd = node(80, "c", COLL, start=5, duration=1, comm_type=ALL_REDUCE, comm_size=2**60, pg_size=2**40)
    trace = read(et(odd))
    assert (trace.collectives[0].in_elements, trace.collectives[0].group_size) == (None, None)
    assert warned(trace, "2 sizes of messages or groups are beyond any machine")


def test_names_that_are_no_text_are_read_as_well_as_they_go() -> None:
    broken = delimited(2, b"\xff\xfe") + node(1, "", COMP, start=5, duration=1)[2:].replace(b"\x12\x00", b"", 1)
    assert "�" in read(framed(delimited(1, b"0.0.4"), broken)).names[0]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damage_never_raises_anything_but_trace_errors(data: st.DataObject) -> None:
    damaged = bytearray(WHOLE[: data.draw(st.integers(1, len(WHOLE)))])
    for _ in range(data.draw(st.integers(0, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    content = Content("a.0.et", bytes(damaged))
    chakra.claims(content)
    with suppress(TraceError):
        (trace,) = chakra.read(content, Limits())
        assert (trace.duration_ns >= 0).all()


@settings(max_examples=300, deadline=None)
@given(st.binary(min_size=1, max_size=200))
def test_random_bytes(data: bytes) -> None:
    for content in (Content("a", data), Content("a", et() + data)):
        chakra.claims(content)
        with suppress(TraceError):
            chakra.read(content, Limits())


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_behind_a_json_header(tail: bytes) -> None:
    for head in (b'{"workload_graph": [{"Id": 1', b'{"schema": "1.1.1", "nodes": [{"id": 1, "inclusive_dur": 5'):
        with suppress(TraceError):
            chakra.read(Content("a", head + tail), Limits())
