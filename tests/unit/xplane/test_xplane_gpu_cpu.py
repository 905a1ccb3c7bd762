"""GPU streams, the host that launches them, and the CPU backend."""

import pytest
from xplane_builder import PlaneBuilder, space

from projector.errors import EmptyTrace
from traces.content import Content, Limits
from traces.rank import rank_parts
from traces.summary import summarise
from traces.trace import Category, Trace
from traces.xplane.convert import traces_of
from traces.xplane.decode import decode_space

NS = 1_000


def traces(*planes: PlaneBuilder) -> tuple[Trace, ...]:
    return traces_of(decode_space(Content("a.xplane.pb", space(*planes)), Limits()))


def gpu(index: int = 0) -> PlaneBuilder:
    stats = {"device_vendor": "AMD", "core_count": 304, "memory_size": 206141652992, "memory_bandwidth": 2662400000000}
    return PlaneBuilder(f"/device:GPU:{index}", stats={**stats, "compute_cap_major": 9, "compute_cap_minor": 4})


def test_streams_are_rows_and_derived_lines_are_not() -> None:
    plane = gpu()
    kernel, copy = plane.kind("loop_add_fusion"), plane.kind("MemcpyD2D")
    plane.line("Stream #3(Kernel)").event(kernel, 0, 40 * NS, correlation_id=7)
    plane.line("Stream #4(MemcpyD2D)").event(copy, 40 * NS, 10 * NS, memcpy_details="kind:D2D size:4096 dest:0 async:1")
    plane.line("XLA Modules").event(kernel, 0, 50 * NS)
    (trace,) = traces(plane)
    assert trace.stream.tolist() == [3, 4]
    assert [Category(value).name for value in trace.category] == ["KERNEL", "MEMCPY"]
    assert trace.size_bytes.tolist() == [-1, 4096]
    found = summarise([trace])
    assert (found.window_ns, found.compute_ns, found.copy_ns, found.idle_ns) == (50, 40, 10, 0)
    assert found.event_counts == {"GPU XLA Modules": 1, "GPU stream": 2}


def test_a_collective_is_known_by_its_hlo_operator_where_the_kernel_name_says_nothing() -> None:
    plane = gpu()
    line, kernel = plane.line("Stream #1(Kernel)"), plane.kind("ncclDevKernel_Generic_1")
    line.event(kernel, 0, 30 * NS, hlo_op="all-gather-start.2")
    line.event(kernel, 30 * NS, 20 * NS, hlo_op="reduce-scatter.1")
    found = summarise(traces(plane))
    assert {(one.collective, one.total_ns) for one in found.collectives} == {("all_gather", 30), ("reduce_scatter", 20)}
    assert found.kpis is not None
    assert found.kpis.communication_frac == 1.0


def test_the_plane_s_memory_bandwidth_is_not_taken_for_a_peak() -> None:
    plane = gpu()
    plane.line("Stream #1(Kernel)").event(plane.kind("loop_add_fusion"), 0, 30 * NS)
    found = summarise(traces(plane))
    assert [(row.bound, row.roofline_efficiency_frac) for row in found.op_table] == [("unknown", None)]
    assert found.implied.chip_name is not None
    assert found.implied.chip_name.value == "AMD Instinct MI300X"


def test_launches_and_steps_of_the_host_are_joined() -> None:
    plane, host = gpu(), PlaneBuilder("/host:CPU")
    stream, kernel = plane.line("Stream #1(Kernel)"), plane.kind("loop_add_fusion")
    launches, launch = host.line("Host Threads/5"), host.kind("hipModuleLaunchKernel")
    python, train = host.line("python"), host.kind("train")
    for step in range(2):
        at = step * 100
        python.event(train, at * NS, 90 * NS, step_num=step)
        launches.event(launch, (at + 10) * NS, 5 * NS, correlation_id=step + 1)
        stream.event(kernel, (at + 30) * NS, 20 * NS, correlation_id=step + 1)
    launches.event(launch, 500 * NS, 5 * NS, correlation_id=99)
    (trace,) = traces(plane, host)
    assert len(trace.rows(Category.RUNTIME)) == 2
    found = summarise([trace])
    assert [(step.name, step.start_ns, step.end_ns) for step in found.ranks[0].steps] == [
        ("JAX step train 0", 30, 130),
        ("JAX step train 1", 130, 150),
    ]
    assert found.launch_bound_frac == 1.0


def test_command_buffers_traced_as_wholes_are_unclassified_computation() -> None:
    plane = gpu()
    stream = plane.line("Stream #1(Kernel)")
    stream.event(plane.kind("CudaGraphExec:12"), 0, 70 * NS, hlo_op="all-reduce.4")
    stream.event(plane.kind("loop_add_fusion"), 80 * NS, 20 * NS)
    (trace,) = traces(plane)
    found = rank_parts(trace).summary
    assert (found.compute_ns, found.unclassified_ns, found.communication_ns) == (90, 70, 0)
    assert any("1 CUDA graph launches (70 ns) were traced as wholes" in told for told in trace.warnings)
    assert trace.profile is not None
    assert trace.profile.unattributed_ps == 70 * NS


def test_planes_without_an_event_are_told() -> None:
    plane = gpu()
    plane.line("Stream #1(Kernel)").event(plane.kind("loop_add_fusion"), 0, 30 * NS)
    (trace,) = traces(plane, gpu(1), gpu(2))
    assert "2 device planes hold no event: /device:GPU:1, /device:GPU:2" in trace.warnings


def test_virtual_cpu_devices_are_ranks() -> None:
    host = PlaneBuilder("/host:CPU")
    line, dot, reduce = host.line("tf_XLAPjRtCpuClient/1"), host.kind("dot.3"), host.kind("all-reduce.4")
    for device in range(2):
        at = device * 100
        line.event(dot, at * NS, 30 * NS, hlo_op="dot.3", device_ordinal=device)
        line.event(reduce, (at + 30) * NS, 20 * NS, hlo_op="all-reduce.4", device_ordinal=device)
    line.event(host.kind("ThunkExecutor::Execute"), 0, 200 * NS)
    found = summarise(traces(host))
    assert not found.window.device
    assert [(rank.rank, rank.compute_ns, rank.communication_ns) for rank in found.ranks] == [(0, 30, 20), (1, 30, 20)]
    assert found.kpis is None
    assert found.op_table == ()


def test_a_host_that_ran_no_operator_is_empty() -> None:
    host = PlaneBuilder("/host:CPU")
    host.line("python").event(host.kind("$main.py:1 main"), 0, 100 * NS)
    with pytest.raises(EmptyTrace, match="no operator of a device and none of the CPU backend"):
        traces(host)
