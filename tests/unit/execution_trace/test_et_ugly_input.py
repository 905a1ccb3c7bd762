"""Broken execution traces: what is whole is read and the rest is told, or a typed error; never anything else."""

import json
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from projector.errors import CorruptTrace, EmptyTrace, TraceError, TraceTooLarge
from tests.unit.execution_trace.et_examples import (
    LIMITS,
    document,
    groups_node,
    node,
    number,
    old_node,
    read,
    tensor,
    tensors,
    text,
)
from traces.content import Content, Limits
from traces.execution_trace.node_texts import LARGEST_NODE_BYTES, NodeTexts
from traces.execution_trace.read import read_execution_trace

CALLS = [node(number_, f"aten::op{number_}", tensor([number_, 4]), number(1)) for number_ in range(3, 40)]
WHOLE = document(groups_node({"pg_name": "0", "ranks": [], "group_size": 2}), *CALLS)


class InPieces(Content):
    """A content that comes in blocks of a few bytes."""

    block_bytes = 7

    def blocks(self) -> Iterator[bytes]:
        data = bytes(self.data)
        for start in range(0, len(data), self.block_bytes):
            yield data[start : start + self.block_bytes]


@pytest.mark.parametrize("block_bytes", [7, 1_000, 16_384, 20_000])
@pytest.mark.parametrize("first_key", ["id", "name"])
def test_small_blocks_give_the_same_nodes(block_bytes: int, first_key: str) -> None:
    calls = CALLS * 20 if first_key == "id" else [old_node(5, "aten::op", tensor([4])) for _ in range(300)]
    data = document(*calls)
    content = InPieces("et.json", data)
    content.block_bytes = block_bytes
    assert [json.loads(one) for one in NodeTexts(content, "nodes", LIMITS)] == json.loads(data)["nodes"]


def test_nodes_with_their_name_first_are_not_cut_at_their_attributes() -> None:
    reordered = [{key: one[key] for key in ("name", *(key for key in one if key != "name"))} for one in CALLS]
    assert len(read(document(*reordered))) == len(CALLS)


def test_nodes_in_the_order_of_another_writer() -> None:
    data = json.dumps({"schema": "1.1.1", "nodes": [dict(sorted(one.items())) for one in CALLS], "pid": 5}).encode()
    assert len(read(data)) == len(CALLS)


@pytest.mark.parametrize("cut", [1, 12, 300, len(WHOLE) // 2])
def test_a_killed_job_leaves_what_was_written(cut: int) -> None:
    found = read(WHOLE[:-cut])
    assert 1 < len(found) <= len(CALLS) + 1
    assert found.warnings == (() if cut <= 12 else ("the file breaks off; the nodes before that were read",))


def test_a_name_the_writer_did_not_escape_costs_that_node_alone() -> None:
    data = document(*CALLS[:3]).replace(b"aten::op4", b'say "hello"\\q')
    found = read(data)
    assert [found.name(entry) for entry in range(len(found))] == ["aten::op3", "aten::op5"]
    assert found.warnings == ("1 of 3 nodes are no valid JSON and were left out",)


@pytest.mark.parametrize("bare", ["inf", "-inf", "nan"])
def test_numbers_without_a_spelling_were_once_written_bare(bare: str) -> None:
    call = node(5, "aten::clamp", tensor([4]), ("Double", [], 12345))
    found = read(document(call).replace(b"12345", bare.encode()))
    assert found.inputs[0].types == ("float", "Scalar")
    assert found.warnings == ()


def test_a_value_of_an_unexpected_type_costs_that_node_alone() -> None:
    found = read(document(CALLS[0], {**CALLS[1], "name": 5}))
    assert len(found) == 1
    assert found.warnings == ("1 of 2 nodes hold a value of an unexpected type and were left out",)


@pytest.mark.parametrize("record_id", [-1, 2**63, 2**80])
def test_record_ids_out_of_range_are_no_calls(record_id: int) -> None:
    assert len(read(document(CALLS[0], node(record_id, "odd")))) == 1


def test_text_in_names_does_not_cut_nodes() -> None:
    odd = node(5, '}, {"id": 9, "name": "x"} ], "nodes": [')
    assert read(document(odd)).name(0) == odd["name"]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b'{"schema": "1.1.1", "nodes": []}', EmptyTrace),
        (document(node(0, "[pytorch|profiler|execution_trace|process]")), EmptyTrace),
        (b'{"schema": "1.1.1", "nodes": [{"id": 5', CorruptTrace),
        (b'{"schema": "1.1.1", "nodes": [', CorruptTrace),
        (b'{"schema": "1.1.1", "nodes": [1, 2]}', CorruptTrace),
        (b'{"schema": "1.1.1", "nodes": {"id": 5}}', CorruptTrace),
        (document({"id": "five"}), CorruptTrace),
    ],
)
def test_files_without_a_call(data: bytes, error: type[TraceError]) -> None:
    with pytest.raises(error) as refused:
        read(data)
    assert refused.value.hint


def test_more_nodes_than_the_limit_are_refused() -> None:
    with pytest.raises(TraceTooLarge, match="number of nodes"):
        read(WHOLE, Limits(max_events=10))


def test_nesting_without_end_is_refused_or_left_out() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    call = document(CALLS[0], node(5, "deep", ("GenericList[]", [], 12345)), CALLS[1])
    with pytest.raises(TraceTooLarge, match="nested too deeply"):
        read(call.replace(b"12345", deep.encode()))


def test_a_node_larger_than_any_is_left_out() -> None:
    huge = node(7, "huge", text("x" * (LARGEST_NODE_BYTES + 10)))
    content = InPieces("et.json", document(CALLS[0], huge, CALLS[5]))
    content.block_bytes = 1 << 20
    found = read_execution_trace(content, LIMITS)
    assert [found.name(entry) for entry in range(len(found))] == ["aten::op3", "aten::op8"]
    assert found.warnings == ("1 of 3 nodes are no valid JSON and were left out",)


ONE_OF_EACH = document(
    groups_node({"pg_name": "0", "ranks": [], "group_size": 2}),
    node(5, "record_param_comms", tensors([4]), number(7), ("Tuple[String,String]", [], ["0", "default_pg"])),
    old_node(6, "aten::mm", tensor([2, 2]), tensor([2, 2])),
)

ODD = [b'"', b"{", b"]", b"\\", b"null", b"1e999", b"[[[]]]", b"\xff"]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_damage_never_raises_anything_but_trace_errors(data: st.DataObject) -> None:
    damaged = bytearray(ONE_OF_EACH)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        kind = data.draw(st.sampled_from(["set", "cut", "insert"]))
        if kind == "set":
            damaged[at] = data.draw(st.integers(0, 255))
        elif kind == "cut":
            del damaged[at : at + data.draw(st.integers(1, 40))]
        else:
            damaged[at:at] = data.draw(
                st.sampled_from([b'"', b"{", b"]", b"\\", b"null", b"1e999", b"[[[]]]", b"\xff"])
            )
        if not damaged:
            break
    try:
        found = read(bytes(damaged))
    except TraceError:
        return
    assert (found.record_ids[1:] > found.record_ids[:-1]).all()


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_random_bytes_behind_a_header(tail: bytes) -> None:
    with suppress(TraceError):
        read(b'{"schema": "1.1.1", "nodes": [' + tail)
