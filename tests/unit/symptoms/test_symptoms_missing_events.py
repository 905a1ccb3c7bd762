"""Files in which a part of what happened is missing: counted as it is, and said so."""

from typing import Any

import pytest

from tests.unit.traces.trace_examples import Event, annotation, external, kernel, launch, memcpy, op, trace_of
from traces.rank import rank_parts
from traces.summary import summarise
from traces.summary_types import TraceSummary
from traces.trace import Category


def summary_of(*events: Event, **outer: Any) -> TraceSummary:
    return summarise([trace_of(*events, **outer)])


def identity_holds(summary: TraceSummary) -> bool:
    parts = summary.compute_ns + summary.exposed_communication_ns + summary.exposed_copy_ns + summary.idle_ns
    return parts == summary.window_ns


def waits(start: float, duration: float, category: str = "cuda_sync") -> Event:
    return {**kernel("Stream Synchronize", start, duration), "cat": category, "args": {"stream": 7, "device": 0}}


def test_waits_of_the_host_are_no_work_of_the_device() -> None:
    """cuda_sync events have a stream, and are no kernels."""
    summary = summary_of(kernel("nvjet", 0, 10), waits(10, 90), kernel("nvjet", 100, 10))
    assert (summary.compute_ns, summary.idle_ns, summary.ranks[0].kernel_count) == (20_000, 90_000, 2)
    assert summary.event_counts == {"cuda_sync": 1, "kernel": 2}


def test_marks_on_the_device_are_no_kernels() -> None:
    trace = trace_of(kernel("nvjet", 0, 10), {**kernel("nccl:all_reduce", 0, 99), "cat": "gpu_user_annotation"})
    assert trace.rows(Category.KERNEL).tolist() == [1]
    assert summarise([trace]).window_ns == 10_000


def test_kernels_nobody_launched_in_the_file_count_all_the_same() -> None:
    """Without correlation, without External id, without flow: kept, where another tool drops them."""
    summary = summary_of(*[kernel("nvjet", 10 * number, 9.9) for number in range(100)])
    assert (summary.window_ns, summary.compute_ns, summary.idle_ns) == (999_900, 990_000, 9_900)
    assert summary.ranks[0].kernel_count == 100


def test_a_graph_that_keeps_the_device_busy_is_no_idle_time() -> None:
    """Replayed kernels carry no id of graph or operator; a tool that needs one sees a quarter of the time idle."""
    linked = [
        launch(1, 0, **external(1)),
        op("aten::mm", 0, 2, **external(1)),
        kernel("nvjet", 5, 25, correlation=1, **external(1)),
    ]
    replayed = [kernel(f"Cijk_Alik_Bljk_BBS_{number}", 30 + number, 0.99) for number in range(74)]
    summary = summary_of(*linked, *replayed)
    assert summary.window_ns == 98_990
    assert summary.idle_ns == 74 * 10 - 10
    assert identity_holds(summary)


def test_hundreds_of_kernels_on_one_correlation_have_names_and_classes() -> None:
    """A replayed decode step: no operator, no External id; the report is not empty for that."""
    names = (
        "nvjet_tst_64x8",
        "void flash_fwd_splitkv_kernel<Params>(Params)",
        "void rmsnorm_kernel<bf16>()",
        "triton_poi_fused_silu_mul",
    )
    events = [kernel(names[number % 4], 10 + number, 1, correlation=1) for number in range(544)]
    summary = summary_of({**launch(1, 0), "name": "cudaGraphLaunch"}, *events)
    assert {one.kind for one in summary.kernel_classes} == {"gemm", "attention", "norm", "elementwise"}
    assert [one.count for one in summary.top_kernels] == [136] * 4
    assert (summary.compute_ns, summary.unclassified_ns) == (544_000, 0)


@pytest.mark.parametrize("name", ["hipGraphLaunch", "cudaGraphLaunch"])
def test_graph_launches_without_their_kernels_are_told(name: str) -> None:
    """A profiler lost nearly all kernels of replayed graphs: nothing is said of whose fault the idle time is."""
    launches = [{**launch(number, 100 * number), "name": name} for number in range(1, 101)]
    ran = [kernel("Cijk_Alik_Bljk", 100 * number + 10, 5, correlation=number) for number in (50, 100)]
    summary = summary_of(*launches, *ran)
    assert "98 of 100 kernel launches have no kernel in the file" in summary.warnings[0]
    assert summary.launch_bound_frac is None
    assert summary.idle is not None
    assert summary.idle.unknown_ns == summary.idle_ns


@pytest.mark.parametrize(
    "name",
    ["cudaLaunchKernel", "cuLaunchKernelEx", "hipLaunchKernel", "hipExtModuleLaunchKernel", "hipModuleLaunchKernel"],
)
def test_launches_whose_kernels_fell_out_of_range_are_told(name: str) -> None:
    launches = [{**launch(number, 10 * number), "name": name} for number in range(1, 101)]
    ran = [kernel("nvjet", 10 * number + 5, 1, correlation=number) for number in (1, 100)]
    summary = summary_of(*launches, *ran)
    assert "98 of 100 kernel launches have no kernel in the file" in summary.warnings[0]


@pytest.mark.parametrize(
    "name",
    ["cudaLaunchKernel", "cudaLaunchKernelExC", "hipLaunchKernel", "hipModuleLaunchKernel", "hipExtLaunchKernel"],
)
def test_a_late_launch_is_known_by_every_name_of_it(name: str) -> None:
    calls = [{**launch(number, 100 * number, **external(number)), "name": name} for number in range(1, 4)]
    ran = [kernel("gemm_kernel", 100 * number + 10, 20, correlation=number) for number in range(1, 4)]
    summary = summary_of(*calls, *ran)
    assert (summary.launch_bound_frac, summary.idle_ns) == (1.0, 160_000)


def test_a_file_of_the_device_alone_has_its_shares() -> None:
    summary = summary_of(kernel("nvjet", 0, 10), memcpy(20, 10), kernel("ncclDevKernel_AllReduce", 30, 10, stream=20))
    assert (summary.compute_ns, summary.exposed_copy_ns, summary.exposed_communication_ns) == (10_000,) * 3
    assert (summary.idle_ns, summary.launch_bound_frac) == (10_000, None)


def test_old_and_new_flows_between_host_and_device_are_counted_and_not_needed() -> None:
    flows = [
        {"ph": phase, "cat": category, "name": category, "id": 1, "pid": 0, "tid": 7, "ts": 1, "bp": "e"}
        for category in ("async_cpu_to_gpu", "async_gpu", "ac2g", "async")
        for phase in "sf"
    ]
    with_flows = trace_of(launch(1, 0), kernel("nvjet", 5, 5, correlation=1), *flows)
    without = trace_of(launch(1, 0), kernel("nvjet", 5, 5, correlation=1))
    assert with_flows.event_counts == {
        **without.event_counts,
        "async_cpu_to_gpu": 2,
        "async_gpu": 2,
        "ac2g": 2,
        "async": 2,
    }
    assert rank_parts(with_flows).summary == rank_parts(without).summary


def test_counters_for_hardware_are_no_events_of_the_time_line() -> None:
    ranges = {**kernel("range", 0, 1_000), "cat": "cuda_profiler_range"}
    stalls = {**kernel("Activity Buffer Request", 0, 1_000), "cat": "overhead", "pid": -1}
    assert summary_of(kernel("nvjet", 5, 5), ranges, stalls).window_ns == 5_000


def test_steps_of_a_file_with_nothing_but_annotations() -> None:
    trace = trace_of(annotation("ProfilerStep#1", 0, 10), op("aten::mm", 1, 2))
    assert not summarise([trace]).window.device
