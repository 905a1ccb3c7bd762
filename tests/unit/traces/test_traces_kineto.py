"""Schemas Kineto has written from 2021 on, and what becomes of them."""

import json
from pathlib import Path

from trace_examples import (
    annotation,
    device_annotation,
    document,
    external,
    kernel,
    launch,
    memcpy,
    memset,
    op,
    trace_of,
)

from traces.read import read_traces
from traces.trace import ABSENT, Category, CollectiveArgs, DeviceProperties, GroupConfig, OpInputs


def test_columns_of_a_step() -> None:
    trace = trace_of(
        op("aten::mm", 10.5, 4, **external(3)),
        launch(9, 11, **external(3)),
        kernel("gemm", 20.001, 5, stream=7, correlation=9, **external(3)),
        memcpy(30, 2, bytes=4096),
        memset(33, 1),
        annotation("ProfilerStep#1", 10, 40),
        device_annotation("ProfilerStep#1", 20, 15),
    )
    assert trace.start_ns.tolist() == [10_000, 10_500, 11_000, 20_000, 20_001, 30_000, 33_000]
    assert trace.category.tolist() == [
        Category.ANNOTATION,
        Category.CPU_OP,
        Category.RUNTIME,
        Category.DEVICE_ANNOTATION,
        Category.KERNEL,
        Category.MEMCPY,
        Category.MEMSET,
    ]
    row = int(trace.rows(Category.KERNEL)[0])
    assert (trace.name(row), trace.duration_ns[row], trace.end_ns[row]) == ("gemm", 5_000, 25_001)
    assert (trace.stream[row], trace.device[row], trace.correlation[row], trace.external_id[row]) == (7, 0, 9, 3)
    assert trace.size_bytes[trace.rows(Category.MEMCPY)].tolist() == [4096]
    assert trace.device_rows.tolist() == [4, 5, 6]
    assert trace.device_index == 0
    assert trace.event_counts == {
        "cpu_op": 1,
        "cuda_runtime": 1,
        "gpu_memcpy": 1,
        "gpu_memset": 1,
        "gpu_user_annotation": 1,
        "kernel": 1,
        "user_annotation": 1,
    }


def test_the_schema_of_2021() -> None:
    old = {"tid": "stream 7"}
    trace = trace_of(
        {**op("aten::conv2d", 1, 9), "cat": "Operator"},
        {**op("ProfilerStep#16", 0, 50), "cat": "Operator"},
        {**launch(5, 2), "cat": "Runtime", "args": {"correlation": 5, "external id": 8}},
        {**kernel("conv", 12, 3), **old, "cat": "Kernel", "args": {"correlation": 5, "external id": 8}},
        {**memcpy(16, 3), **old, "cat": "Memcpy", "args": {"bytes": 7}},
        {**memset(20, 3), **old, "cat": "Memset", "args": {}},
    )
    assert trace.category.tolist() == [
        Category.ANNOTATION,
        Category.CPU_OP,
        Category.RUNTIME,
        Category.KERNEL,
        Category.MEMCPY,
        Category.MEMSET,
    ]
    assert trace.stream[trace.device_rows].tolist() == [7, 7, 7]
    assert trace.device[trace.device_rows].tolist() == [0, 0, 0]
    assert trace.external_id[trace.rows(Category.KERNEL)].tolist() == [8]


def test_everything_else_is_counted_and_left_out() -> None:
    flow = {"ph": "s", "cat": "ac2g", "id": 1, "ts": 5, "pid": 0, "tid": 0, "name": "ac2g"}
    trace = trace_of(
        kernel("k", 1, 2),
        flow,
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
        {"ph": "X", "cat": "python_function", "name": "f", "ts": 1, "dur": 2},
        {"ph": "X", "cat": "overhead", "name": "Activity Buffer Request", "ts": 1, "dur": 2},
        {"ph": "i", "name": "Iteration Start", "ts": 1},
    )
    assert len(trace) == 1
    assert trace.event_counts == {
        "ac2g": 1,
        "instant": 1,
        "kernel": 1,
        "metadata": 1,
        "overhead": 1,
        "python_function": 1,
    }


def test_arguments_of_a_collective() -> None:
    trace = trace_of(
        kernel(
            "ncclDevKernel_Generic",
            1,
            2,
            dtype="BFloat16",
            **{
                "Collective name": "allreduce",
                "In msg nelems": 100,
                "Out msg nelems": 100,
                "Group size": 2,
                "Process Group Name": "0",
                "Process Group Description": "default_pg",
                "Process Group Ranks": "[0, 1]",
            },
        )
    )
    assert trace.collectives == {0: CollectiveArgs("allreduce", "0", "default_pg", 2, (0, 1), "BFloat16", 100, 100)}


def test_a_shortened_list_of_ranks_is_not_taken_for_the_ranks() -> None:
    args = {"Collective name": "allreduce", "Process Group Ranks": "[0, 1, 2, ..., 62, 63]"}
    assert trace_of(kernel("nccl", 1, 2, **args)).collectives[0].ranks == ()


def test_inputs_of_operators_that_tell_sizes() -> None:
    args = {
        "Input Dims": [[8, 4], [2, 4], [[1], [2]], []],
        "Input type": ["c10::BFloat16", "", "TensorList", "Scalar"],
        "Concrete Inputs": ["", "", "", "64"],
    }
    trace = trace_of(op("aten::linear", 1, 2, **args), op("aten::empty", 4, 1, **args))
    assert trace.inputs == {
        0: OpInputs(
            ((8, 4), (2, 4), (), ()),
            ("c10::BFloat16", "", "TensorList", "Scalar"),
            ("", "", "", "64"),
            lists=((), (), ((1,), (2,)), ()),
        )
    }


def test_metadata() -> None:
    trace = trace_of(
        kernel("k", 1, 2, device=1),
        deviceProperties=[
            {
                "id": 1,
                "name": "NVIDIA  B200",
                "totalGlobalMem": 191503138816,
                "numSms": 148,
                "computeMajor": 10,
                "computeMinor": 0,
            }
        ],
        distributedInfo={
            "backend": "nccl",
            "rank": 0,
            "world_size": 8,
            "pg_config": [{"pg_name": "3", "pg_desc": "undefined", "pg_size": 2, "ranks": [0, 1]}, {"pg_name": "x"}],
        },
        baseTimeNanoseconds=1767189312000000000,
        traceName="traces/t.json",
        with_stack=1,
        record_shapes=0,
    )
    metadata = trace.metadata
    assert metadata.devices == (DeviceProperties(1, "NVIDIA B200", 191503138816, 148, 10, 0),)
    assert (metadata.rank, metadata.world_size, metadata.backend) == (0, 8, "nccl")
    assert metadata.groups == (GroupConfig("3", "undefined", 2, (0, 1)),)
    assert (metadata.base_time_ns, metadata.trace_name) == (1767189312000000000, "traces/t.json")
    assert metadata.flags == ("with_stack",)


def test_metadata_that_is_missing_or_malformed_is_unknown() -> None:
    trace = trace_of(kernel("k", 1, 2), deviceProperties="none", distributedInfo=[1], baseTimeNanoseconds={})
    assert trace.metadata.devices == ()
    assert (trace.metadata.rank, trace.metadata.world_size, trace.metadata.base_time_ns) == (None, None, None)


def test_the_highest_allocation_a_device_reports() -> None:
    def memory(total: int, device_type: int = 1) -> dict[str, object]:
        args = {"Device Type": device_type, "Device Id": 0, "Total Allocated": total}
        return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": 1, "args": args}

    trace = trace_of(kernel("k", 1, 2), memory(10), memory(99), memory(50), memory(10**9, device_type=0))
    assert trace.memory_high_water_bytes == {0: 99}


def test_one_trace_for_each_device_of_a_process(tmp_path: Path) -> None:
    path = tmp_path / "two.json"
    events = (kernel("a", 1, 2, device=0), kernel("b", 2, 2, device=3), op("aten::mm", 0, 1))
    path.write_text(json.dumps(document(*events)))
    first, second = read_traces([path])
    assert (first.device_index, second.device_index) == (0, 3)
    assert [first.name(row) for row in range(2)] == ["aten::mm", "a"]
    assert [second.name(row) for row in range(2)] == ["aten::mm", "b"]


def test_ids_of_none() -> None:
    trace = trace_of(kernel("k", 1, 2, **external(0)), kernel("l", 4, 2))
    assert trace.external_id.tolist() == [ABSENT, ABSENT]
    assert trace.correlation.tolist() == [ABSENT, ABSENT]


def test_what_joins_a_trace_with_its_execution_trace() -> None:
    ops = [op("aten::mm", 1, 2, **{"Record function id": number}) for number in (7, 0)]
    trace = trace_of(*ops, op("aten::add", 5, 1), kernel("k", 9, 1))
    assert trace.record_ids is not None
    assert trace.record_ids.tolist() == [7, ABSENT, ABSENT, ABSENT]
    assert trace.metadata.process_id == 100
    assert trace_of(ops[1]).record_ids is None


def test_rows_of_several_processes_are_of_no_one_process() -> None:
    other = {**op("aten::mm", 1, 2), "pid": 101}
    assert trace_of(op("aten::mm", 1, 2), other).metadata.process_id is None


def test_the_direction_of_a_copy_where_only_its_arguments_state_it() -> None:
    trace = trace_of(memcpy(1, 2, kind="HtoD"), memcpy(4, 2), {**kernel("k", 7, 1, kind="Dispatch Kernel")})
    assert trace.copy_kinds == {0: "HtoD"}


def test_the_size_of_a_copy_that_only_its_launch_states() -> None:
    trace = trace_of({**launch(3, 1, bytes=64), "name": "hipMemcpyAsync"}, memcpy(4, 2, correlation=3, kind="DtoD"))
    assert trace.size_bytes.tolist() == [64, ABSENT]


def test_work_that_the_profiler_stated() -> None:
    trace = trace_of(op("aten::mm", 1, 2, flops=4096), op("aten::mm", 4, 2), op("aten::mm", 7, 2, flops="many"))
    assert trace.stated_flop == {0: 4096}


def test_threads_and_names_are_numbered_by_what_they_are_not_by_the_order_of_the_file() -> None:
    events = (op("b", 5, 1, thread=9), op("a", 1, 1, thread=4), op("b", 9, 1, thread=4))
    for ordered in (events, events[::-1]):
        trace = trace_of(*ordered)
        assert (trace.names, trace.name_id.tolist()) == (("a", "b"), [0, 1, 1])
        assert trace.thread.tolist() == [0, 1, 0]
