"""Chakra protobuf with start times becomes a Trace; without them it says so."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projector.errors import EmptyTrace, TraceWithoutTimes
from tests.unit.chakra.chakra_examples import (
    ALL_GATHER,
    ALL_REDUCE,
    COLL,
    COMP,
    MEM_LOAD,
    MEM_STORE,
    METADATA,
    RECV,
    SEND,
    delimited,
    et,
    framed,
    node,
    operands,
    read,
    varint,
    warned,
)
from traces.content import Content
from traces.linking import link
from traces.reader import all_readers
from traces.summary import summarise
from traces.trace import ABSENT, Category, CollectiveArgs, GroupConfig, OpInputs

GROUPS = json.dumps([{"pg_name": "7", "pg_desc": "mesh_tp", "ranks": [4, 5, 6, 7], "group_size": 4}])


def test_an_operator_and_the_kernel_it_launched() -> None:
    given_to_mm = operands("[[4, 5], [6, 7]]", "[[4, 8], [8, 16]]", "['Tensor(float)', 'Tensor(c10::Half)']")
    trace = read(
        et(
            node(3, "aten::mm", COMP, start=100, duration=20, is_cpu_op=True, tid=1, inputs=given_to_mm),
            node(4, "nvjet_tst", COMP, start=110, duration=50, parents=[3], is_cpu_op=False, stream=7),
        )
    )
    assert trace.format == "chakra"
    assert trace.start_ns.tolist() == [100_000, 110_000]
    assert trace.duration_ns.tolist() == [20_000, 50_000]
    assert trace.category.tolist() == [Category.CPU_OP, Category.KERNEL]
    assert (trace.stream.tolist(), trace.thread.tolist()) == ([ABSENT, 7], [1, ABSENT])
    assert trace.inputs[0] == OpInputs(((4, 8), (8, 16)), ("float", "c10::Half"), ("", ""))
    assert link(trace).operator.tolist() == [0]
    assert trace.warnings == ()


@pytest.mark.parametrize("packed", [True, False])
def test_dependencies_packed_or_one_by_one(packed: bool) -> None:
    kernel = node(4, "k", COMP, start=2, duration=1, parents=[300, 3], packed=packed, is_cpu_op=False)
    trace = read(et(node(300, "aten::mm", COMP, start=1, duration=1, is_cpu_op=True), kernel))
    assert link(trace).operator.tolist() == [0]


def test_communication_has_the_arguments_the_nodes_state() -> None:
    trace = read(
        et(
            node(2, "ncclDevKernel", COLL, start=10, duration=5, comm_type=ALL_REDUCE, comm_size=4096, pg_name="7"),
            node(3, "gather", COLL, start=20, duration=5, comm_type=ALL_GATHER, comm_size=1000, pg_name="7"),
            node(4, "send", SEND, start=30, duration=5, comm_size=64, comm_dst=3, comm_src=2),
            node(5, "recv", RECV, start=40, duration=5, tensor_size=32, comm_dst=3, comm_src=2),
            node(9, "## process_group:init ##", METADATA, inputs=operands(values=str([GROUPS]))),
        )
    )  # fmt: skip
    ranks = (4, 5, 6, 7)
    assert trace.collectives == {
        0: CollectiveArgs("all_reduce", "7", "", 4, ranks, "Byte", 4096),
        1: CollectiveArgs("all_gather", "7", "", 4, ranks, "Byte", 1000, 4000),
        2: CollectiveArgs("send", dtype="Byte", in_elements=64, target_rank=3),
        3: CollectiveArgs("recv", dtype="Byte", in_elements=32, source_rank=2),
    }
    assert trace.metadata.groups == (GroupConfig("7", "mesh_tp", 4, ranks),)
    lines = {line.collective: line.message_bytes for line in summarise([trace]).collectives}
    assert lines == {"all_reduce": 4096, "all_gather": 4000, "send": 64, "recv": 32}


def test_the_message_of_a_gather_takes_the_size_of_its_group() -> None:
    trace = read(et(node(2, "gather", COLL, start=1, duration=1, comm_type=ALL_GATHER, comm_size=1000)))
    assert trace.collectives[0] == CollectiveArgs("all_gather")
    assert warned(trace, "1 gathers belong to groups of unknown size")


def test_dimensions_of_the_network_are_told_in_words() -> None:
    dims = (True, False, True)
    trace = read(et(node(2, "c", COLL, start=1, duration=1, comm_type=ALL_REDUCE, involved_dim=dims)))
    assert trace.collectives[0].group_description == "network dimensions 0, 2 of 3"


@pytest.mark.parametrize(("kind", "name"), [(MEM_LOAD, "load"), (MEM_STORE, "store"), (COMP, "Memcpy DtoD")])
def test_memory_nodes_and_what_a_profiler_calls_a_copy_are_copies(kind: int, name: str) -> None:
    trace = read(et(node(2, name, kind, start=1, duration=1, is_cpu_op=False, tensor_size=512)))
    assert trace.category.tolist() == [Category.MEMCPY]
    assert trace.size_bytes.tolist() == [ABSENT if kind == COMP else 512]


def test_collectives_of_the_host_are_operators() -> None:
    trace = read(et(node(2, "c10d::allreduce_", COLL, start=1, duration=1, is_cpu_op=True, comm_type=ALL_REDUCE)))
    assert trace.category.tolist() == [Category.CPU_OP]
    assert trace.collectives == {}


def test_a_mark_of_the_user_is_an_annotation() -> None:
    trace = read(et(node(2, "ProfilerStep#3", COMP, start=1, duration=1, is_cpu_op=True, scope=7)))
    assert trace.category.tolist() == [Category.ANNOTATION]


def test_durations_and_dependencies_are_no_time_line() -> None:
    graph = et(node(1, "a", COMP, duration=30, is_cpu_op=False), node(2, "b", COMP, duration=12, parents=[1]))
    with pytest.raises(TraceWithoutTimes, match=r"nodes: 2.*42 us in sum, without start times") as refused:
        read(graph)
    assert (refused.value.http_status, refused.value.code) == (422, "trace_without_times")


def test_of_a_graph_with_some_start_times_those_count_and_the_rest_is_told() -> None:
    trace = read(
        et(
            node(1, "a", COMP, start=5, duration=30, is_cpu_op=False),
            node(2, "b", COMP, duration=12, is_cpu_op=False),
            node(3, "c", COMP, duration=12, is_cpu_op=True),
        )
    )
    assert len(trace) == 1
    assert warned(trace, "2 of 3 nodes state no start time and were left out (1 of them on the device)")


def test_what_nodes_do_not_say_is_told() -> None:
    trace = read(et(node(1, "a", COMP, start=5), node(2, "b", 99, start=5)))
    assert trace.category.tolist() == [Category.KERNEL]
    assert warned(trace, "1 nodes state no duration, or one of zero, and count as 0 ns")
    assert warned(trace, "1 nodes do not say whether they ran on the host")
    assert warned(trace, "1 nodes are of a type the schema does not have")


def test_host_durations_without_what_was_called_are_told() -> None:
    caller = node(1, "aten::linear", COMP, start=100, duration=5, is_cpu_op=True)
    callee = node(2, "aten::addmm", COMP, start=110, duration=5, parents=[1], is_cpu_op=True)
    assert warned(read(et(caller, callee)), "1 of 1 called host operators begin after their caller ended")


@pytest.mark.parametrize(("file", "rank"), [("chakra.12.et", 12), ("et_3.et.gz", 3), ("trace.et", None)])
def test_the_rank_in_the_name_of_the_file_is_taken_and_told(file: str, rank: int | None) -> None:
    trace = read(et(node(1, "a", COMP, start=5, duration=1, is_cpu_op=False)), file)
    assert trace.metadata.rank == rank
    assert warned(trace, "was taken from the name of the file") is (rank is not None)


@pytest.mark.parametrize("first", ["1.0.0", "0.0.4-beta.1+2"])
def test_files_are_known_by_their_metadata(first: str) -> None:
    later = et(node(0, "a", COMP), version=first)
    earlier = framed(delimited(1, delimited(1, b"schema") + delimited(29, b"1.0.1")), node(5, "a", COMP))
    long = framed(delimited(2, delimited(1, b"input_file") + delimited(29, b"x" * 90_000)), node(5, "a", COMP))
    for data in (later, earlier, long, et()):
        assert [reader.name for reader in all_readers() if reader.claims(Content("a", data))] == ["chakra"]


@pytest.mark.parametrize(
    "data", [b"h\nX\n 5 foo", b"\x07\x0a\x05hello" + b"\x04\x08\x01\x12\x00", b"\x02\x12\x00", b""]
)
def test_other_bytes_are_not_claimed(data: bytes) -> None:
    assert not [reader.name for reader in all_readers() if reader.claims(Content("a", data))]


def test_a_file_of_metadata_alone_is_empty() -> None:
    with pytest.raises(EmptyTrace):
        read(et())


TIMES = st.integers(0, 10**9)
NODES = st.lists(
    st.tuples(st.integers(0, 2**63 - 1), st.text(max_size=8), st.integers(2, 7), TIMES, TIMES, st.booleans(), TIMES),
    max_size=120,
)


@settings(max_examples=60, deadline=None)
@given(NODES)
def test_what_is_encoded_is_decoded(nodes: list[tuple[int, str, int, int, int, bool, int]]) -> None:
    messages = [
        node(id, name, kind, start=start, duration=duration, is_cpu_op=on_host, comm_size=size)
        for id, name, kind, start, duration, on_host, size in nodes
    ]
    timed = [one for one in nodes if one[3]]
    if not timed:
        with pytest.raises((TraceWithoutTimes, EmptyTrace)):
            read(et(*messages))
        return
    trace = read(et(*messages))
    found = sorted(
        zip(trace.start_ns.tolist(), trace.duration_ns.tolist(), map(trace.name, range(len(trace))), strict=True)
    )
    assert found == sorted((start * 1000, duration * 1000, name) for _, name, _, start, duration, _, _ in timed)
    on_host = np.isin(trace.category, (Category.CPU_OP, Category.ANNOTATION))
    assert int(on_host.sum()) == sum(one[5] for one in timed)
    sizes = [args.in_elements for args in trace.collectives.values()]
    assert sorted(sizes) == sorted(one[6] for one in timed if one[2] >= SEND and not one[5])


def test_varints_of_ten_bytes_stay_whole() -> None:
    assert len(varint(2**63)) == 10
    assert warned(read(et(node(1, "a", COMP, start=5), node(2, "b", COMP, start=2**63))), "had times out of range")
