"""The JSON forms: the workload graph, and PyTorch nodes a linker gave times to."""

import json
from typing import Any

import pytest

from projector.errors import CorruptTrace, EmptyTrace, TraceWithoutTimes
from tests.unit.chakra.chakra_examples import read, warned
from tests.unit.execution_trace.et_examples import document, node, number, tensor, tensors, text
from traces.content import Content
from traces.linking import link
from traces.reader import all_readers
from traces.trace import Category, CollectiveArgs

KERNEL = {"Id": 4, "Name": "gemm", "NodeType": 4, "ctrlDeps": [3], "data_deps": [], "runtime": 28, "is_cpu_op": False}


def graph(*nodes: dict[str, Any]) -> bytes:
    return json.dumps({"workload_graph": nodes, "ngpus": 8}, indent=2).encode()


def test_a_workload_graph_has_durations_only() -> None:
    with pytest.raises(TraceWithoutTimes, match=r"nodes: 2.*56 us in sum, without start times"):
        read(graph(KERNEL, {**KERNEL, "Id": 5}))


def test_keys_in_the_spelling_of_protobuf_are_the_same_keys() -> None:
    spelled = {"id": "4", "name": "all", "type": "COMM_COLL_NODE", "ctrlDeps": ["3"], "durationMicros": "28"}
    times = {"startTimeMicros": "0", "isCpuOp": False, "comm_type": 0, "commSize": 64, "pg_name": "2", "stream": 20}
    trace = read(graph({**spelled, **times}))
    assert (trace.start_ns.tolist(), trace.duration_ns.tolist()) == ([0], [28_000])
    assert trace.stream.tolist() == [20]
    assert trace.collectives[0] == CollectiveArgs("all_reduce", "2", dtype="Byte", in_elements=64)


def test_a_node_that_is_no_json_is_told() -> None:
    timed = {**KERNEL, "start_time_micros": 7}
    trace = read(graph(timed, {**timed, "Name": "odd"}, timed).replace(b'"odd"', b'"o"dd"'))
    assert len(trace) == 2
    assert warned(trace, "1 of 3 nodes cannot be decoded and were left out")


def test_a_graph_that_breaks_off() -> None:
    timed = {**KERNEL, "start_time_micros": 7}
    assert warned(read(graph(timed, timed)[:-120]), "the file breaks off")


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b'{"workload_graph": []}', EmptyTrace),
        (b'{"workload_graph": [', CorruptTrace),
        (b'{"workload_graph": 5}', CorruptTrace),
        (b'{"workload_graph": [{"Id" 5}]}', CorruptTrace),
    ],
)
def test_graphs_without_a_node(data: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        read(data)


def linked(*nodes: dict[str, Any]) -> bytes:
    return document(*nodes)


def test_a_linked_trace_has_the_times_of_the_profile_to_the_nanosecond() -> None:
    operator = node(3, "aten::mm", tensor([4, 8]), tensor([8, 16]), ts=5182289779064.439, inclusive_dur=45.425)
    kernel = {**operator, "id": 900, "ctrl_deps": operator["id"], "name": "nvjet_tst", "cat": "kernel", "stream": 7}
    kernel |= {"ts": 5182289779080, "inclusive_dur": 12.5}
    data = linked(operator, kernel, node(4, "aten::never_seen", tensor([4])))
    assert [reader.name for reader in all_readers() if reader.claims(Content("a", data))] == ["chakra"]
    trace = read(data)
    assert trace.start_ns.tolist() == [5182289779064439, 5182289779080000]
    assert trace.duration_ns.tolist() == [45_425, 12_500]
    assert trace.category.tolist() == [Category.CPU_OP, Category.KERNEL]
    assert link(trace).operator.tolist() == [0]
    assert list(trace.inputs) == [0]
    assert warned(trace, "1 of 3 nodes state no start time")


def test_a_linked_communication_kernel_has_the_arguments_of_its_collective() -> None:
    none = ("GenericList[]", [], [])
    inputs = (tensors([64]), number(7), ("Tuple[String,String]", [], ["3", "mesh_dp"]), number(0), text("allreduce"))
    inside = node(3, "record_param_comms", *inputs, none, none, number(0), number(1), number(8))
    base = {"ts": 10, "inclusive_dur": 5, "cat": "kernel", "stream": 20, "ctrl_deps": inside["id"]}
    kernels = [
        {**inside, **base, "id": 900, "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL"},
        {**inside, **base, "id": 901, "name": "void at::native::vectorized_elementwise_kernel<4>", "ts": 20},
    ]
    trace = read(linked(inside, *kernels))
    assert list(trace.collectives) == [0]
    args = trace.collectives[0]
    assert (args.name, args.group, args.group_size, args.in_elements) == ("allreduce", "3", 8, 64)


def test_a_collective_without_arguments_keeps_the_group_of_its_kernel() -> None:
    kernel = node(3, "ncclDevKernel_Generic", ts=1, inclusive_dur=2, cat="kernel", stream=2, pg_name="5")
    assert read(linked(kernel)).collectives == {0: CollectiveArgs("", group="5")}
