"""What the host did, as an Nsight export has it: calls that launch, PyTorch's operators, ranges and their domains."""

from pathlib import Path

import pytest
from nsys_builder import DOMAIN, MARK, NVTX, RUNTIME, START_END, Export, names, process

from traces.linking import NONE, link
from traces.naming import KINDS, classify
from traces.nsys.ranges import inputs_of, is_operator, nccl_call, told
from traces.rank import rank_parts
from traces.trace import ABSENT, Category, OpInputs, Trace


def of(trace: Trace, category: Category) -> list[str]:
    return [trace.name(row) for row in trace.rows(category)]


def test_a_kernel_is_joined_with_its_launch_and_the_operator_around_it(tmp_path: Path) -> None:
    export = Export()
    export.span("aten::linear, seq = 3, op_id = 12", 0, 40)
    export.span("aten::addmm, seq = 3, op_id = 13", 5, 35)
    export.launched("mystery_kernel", 100, 150, 71, at=10)
    trace = export.trace(tmp_path)
    links = link(trace)
    assert trace.name(int(links.launch[0])) == "cudaLaunchKernel"
    assert trace.name(int(links.operator[0])) == "aten::addmm"
    assert [KINDS[kind] for kind in classify(trace).kind] == ["gemm"]


def test_ids_that_join_hold_within_a_process(tmp_path: Path) -> None:
    export = Export()
    for pid, device in ((1, 0), (2, 1)):
        export.launched(f"gemm_of_{pid}", 100, 150, 71, at=10 * pid, pid=pid, deviceId=device)
    first, second = export.read(tmp_path)
    assert (names(first), names(second)) == (
        ["cudaLaunchKernel", "gemm_of_1"],
        ["cudaLaunchKernel", "gemm_of_2"],
    )
    assert [int(link(trace).launch[0]) for trace in (first, second)] == [0, 0]
    assert first.start_ns[0] == 10


def test_a_launch_on_another_thread_stands_in_no_range_of_this_one(tmp_path: Path) -> None:
    export = Export()
    export.span("aten::mm, op_id = 1", 0, 100, tid=1)
    export.launched("mystery", 200, 210, 5, at=50, tid=2)
    assert link(export.trace(tmp_path)).operator.tolist() == [NONE]


@pytest.mark.parametrize(
    ("text", "name", "category", "sizes"),
    [
        ("aten::view, op_id = 314290", "aten::view", Category.CPU_OP, ""),
        ("aten::mm, seq = 12, op_id = 3, sizes = [[2, 4], [4, 8]]", "aten::mm", Category.CPU_OP, "[[2, 4], [4, 8]]"),
        ("aten::mm, sizes = [[2, 4], []], input_op_ids = [(1,0), (2,0)]", "aten::mm", Category.CPU_OP, "[[2, 4], []]"),
        ("AllToAll4D, seq = 46286, op_id = 993812", "AllToAll4D", Category.CPU_OP, ""),
        (
            "autograd::engine::evaluate_function: MmBackward0, op_id = 4",
            "autograd::engine::evaluate_function: MmBackward0",
            Category.CPU_OP,
            "",
        ),
        ("nccl:all_to_all, op_id = 993824", "nccl:all_to_all", Category.ANNOTATION, ""),
        ("FSDP::pre_forward (layer.0), op_id = 3", "FSDP::pre_forward (layer.0)", Category.ANNOTATION, ""),
        ("FSDP::inputs_to_device, op_id = 3", "FSDP::inputs_to_device", Category.ANNOTATION, ""),
        ("ProfilerStep#3, op_id = 7", "ProfilerStep#3", Category.ANNOTATION, ""),
        ("iteration 4", "iteration 4", Category.ANNOTATION, ""),
        ("step, seq = none", "step, seq = none", Category.ANNOTATION, ""),
        (", op_id = 4", ", op_id = 4", Category.ANNOTATION, ""),
        ("ncclAllReduce", "NCCL:ncclAllReduce", Category.ANNOTATION, ""),
    ],
)
def test_facts_behind_the_name_of_an_operator_are_taken_off(
    text: str, name: str, category: Category, sizes: str
) -> None:
    found = told(text, "")
    assert (found.name, found.category, found.sizes) == (name, category, sizes)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a" + ", sizes = [" * 5_000, "a" + ", sizes = [" * 5_000),
        ("a, op_id = 1" + ", input_op_ids = [(" * 3_000, "a, op_id = 1" + ", input_op_ids = [(" * 3_000),
        ("a" + ", " * 30_000 + "op_id = x", "a" + ", " * 30_000 + "op_id = x"),
        ("a, sizes = " + "[" * 60_000, "a"),
    ],
)
def test_hostile_texts_end(text: str, name: str) -> None:
    found = told(text, "")
    assert found.name == name
    assert inputs_of(found.sizes) is None


@pytest.mark.parametrize(
    ("name", "expected"), [("aten::mm", True), ("x" * 5000, False), ("FSDP::x", False), ("a b", False), ("", False)]
)
def test_operators_by_name(name: str, expected: bool) -> None:
    assert is_operator(name) is expected


def test_shapes_of_operators_are_kept(tmp_path: Path) -> None:
    export = Export()
    export.span("aten::mm, op_id = 1, sizes = [[2, 4], [4, 8], []]", 0, 10)
    export.span("aten::add, op_id = 2, sizes = [[], []]", 20, 30)
    export.span("aten::mul, op_id = 3, sizes = [[1]", 40, 50)
    export.kernel("gemm", 100, 110)
    trace = export.trace(tmp_path)
    assert trace.inputs == {0: OpInputs(((2, 4), (4, 8), ()), ("", "", ""), ("", "", ""))}


def test_texts_may_be_registered(tmp_path: Path) -> None:
    export = Export()
    export.span(None, 0, 10, textId=export.string("forward"))
    export.span(None, 20, 30, textId=9999)
    export.kernel("gemm", 100, 110)
    trace = export.trace(tmp_path)
    assert of(trace, Category.ANNOTATION) == ["forward", "(no name)"]
    assert trace.warnings == ("1 NVTX ranges have no name in the file",)


def test_a_domain_stands_before_the_name_even_where_it_is_named_last(tmp_path: Path) -> None:
    export = Export()
    export.span("step 3", 0, 10, domain=2)
    export.span("ncclSend", 20, 30, domain=1)
    export.span("step 3", 40, 50, domain=0)
    export.span("step 3", 60, 70, domain=3)
    export.domain("Trainer", 2)
    export.kernel("gemm", 100, 110)
    trace = export.trace(tmp_path)
    assert of(trace, Category.ANNOTATION) == ["Trainer:step 3", "NCCL:ncclSend", "step 3", "step 3"]


def test_domains_are_those_of_a_process(tmp_path: Path) -> None:
    export = Export()
    for pid, name in ((1, "One"), (2, "Two")):
        export.span("work", 0, 10, domain=5, pid=pid)
        export.domain(name, 5, pid=pid)
        export.kernel("gemm", 100, 110, pid=pid)
    assert [of(trace, Category.ANNOTATION) for trace in export.read(tmp_path)] == [["One:work"], ["Two:work"]]


def test_ranges_without_an_end_are_left_out_aloud_and_marks_are_counted(tmp_path: Path) -> None:
    export = Export()
    export.span("epoch", 0, None)
    export.span("saved", 5, None, eventType=MARK)
    export.span("other", 5, 6, eventType=39)
    export.kernel("gemm", 100, 110)
    trace = export.trace(tmp_path)
    assert names(trace) == ["gemm"]
    assert trace.event_counts == {"kernel": 1, "nvtx_mark": 1}
    assert trace.warnings == ("1 NVTX ranges have no end (the profile ended before) and were left out",)


def test_ranges_that_may_overlap_do_not_enclose_what_a_thread_calls(tmp_path: Path) -> None:
    export = Export()
    export.span("aten::mm, op_id = 1", 0, 100)
    export.span("request 17", 10, 300, eventType=START_END)
    export.launched("mystery", 200, 210, 5, at=50)
    trace = export.trace(tmp_path)
    assert trace.name(int(link(trace).operator[0])) == "aten::mm"
    assert of(trace, Category.ANNOTATION) == ["request 17"]


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
        ("cudaLaunchKernelExC_v11060", "cudaLaunchKernelExC"),
        ("cudaMemcpyAsync_ptsz_v7000", "cudaMemcpyAsync"),
        ("cuLaunchKernelEx", "cuLaunchKernelEx"),
        ("cudaStreamGetCaptureInfo_v2_v11030", "cudaStreamGetCaptureInfo_v2"),
    ],
)
def test_calls_lose_the_version_of_their_api(tmp_path: Path, name: str, plain: str) -> None:
    export = Export()
    export.call(name, 0, 5, correlation=1)
    export.kernel("gemm", 100, 110, correlationId=1)
    assert of(export.trace(tmp_path), Category.RUNTIME) == [plain]


def test_without_ranges_and_calls_there_are_kernels(tmp_path: Path) -> None:
    export = Export()
    export.kernel("gemm", 100, 110)
    trace = export.trace(tmp_path)
    assert (len(trace), trace.thread.tolist()) == (1, [ABSENT])


def test_a_file_without_device_events_is_one_of_its_operators(tmp_path: Path) -> None:
    export = Export()
    export.span("aten::mm, op_id = 1", 0, 40)
    export.call("cudaMalloc_v3020", 5, 10)
    trace = export.trace(tmp_path)
    summary = rank_parts(trace).summary
    assert (trace.device_index, summary.window.device, summary.compute_ns) == (None, False, 40)


def test_host_rows_go_with_each_device_of_their_process(tmp_path: Path) -> None:
    export = Export()
    export.span("forward", 0, 40)
    for device in (0, 1):
        export.launched("gemm", 100, 110, 5 + device, at=10 + device, deviceId=device)
    first, second = export.read(tmp_path)
    assert (first.device_index, second.device_index) == (0, 1)
    assert of(first, Category.ANNOTATION) == of(second, Category.ANNOTATION) == ["forward"]
    assert (len(first.device_rows), len(second.device_rows)) == (1, 1)


def test_host_rows_of_processes_without_device_events_are_left_out_aloud(tmp_path: Path) -> None:
    export = Export()
    export.kernel("gemm", 100, 110)
    export.span("launcher", 0, 500, pid=7)
    trace = export.trace(tmp_path)
    assert names(trace) == ["gemm"]
    assert trace.warnings == ("1 API calls and ranges of 1 process without device events were left out",)


def test_device_events_that_do_not_state_their_process(tmp_path: Path) -> None:
    export = Export()
    export.launched("gemm", 100, 110, 5, at=10, globalPid=None)
    assert names(export.trace(tmp_path)) == ["cudaLaunchKernel", "gemm"]
    export.call("cudaFree_v3020", 50, 60, pid=8)
    folder = tmp_path / "two"
    folder.mkdir()
    trace = export.trace(folder)
    assert names(trace) == ["gemm"]
    assert (
        "1 device events do not state their process, and the host rows are of 2: they are not joined" in trace.warnings
    )


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("NCCL:ncclAllReduce", "AllReduce"),
        ("NCCL:pncclSend", "Send"),
        ("Other:ncclAllReduce", ""),
        ("NCCL:something", ""),
        ("ncclAllReduce", ""),
    ],
)
def test_nccl_calls_by_name(name: str, call: str) -> None:
    assert nccl_call(name) == call


def test_threads_are_numbered_within_a_process(tmp_path: Path) -> None:
    export = Export()
    export.span("one", 0, 1, tid=50_000)
    export.span("two", 2, 3, tid=7)
    export.span("three", 4, 5, tid=50_000)
    export.add(NVTX, start=6, end=7, eventType=59, text="nowhere")
    export.add(NVTX, start=6, end=7, eventType=DOMAIN, text="Unused", domainId=4, globalTid=process())
    export.kernel("gemm", 100, 110)
    trace = export.trace(tmp_path)
    assert names(trace) == ["one", "two", "three", "gemm"]
    assert trace.thread[0] == trace.thread[2] != trace.thread[1]


def test_calls_without_a_thread_are_still_counted(tmp_path: Path) -> None:
    export = Export()
    export.call("cudaFree_v3020", 0, 5)
    export.without(RUNTIME, "globalTid")
    export.kernel("gemm", 100, 110)
    trace = export.trace(tmp_path)
    assert trace.event_counts == {"cuda_runtime": 1, "kernel": 1}
    assert any("left out" in told for told in trace.warnings)
