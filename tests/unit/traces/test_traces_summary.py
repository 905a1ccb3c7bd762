"""Window identity, collectives, steps, several ranks, files without a device."""

import json
from pathlib import Path

import pytest
from trace_examples import Event, annotation, document, external, kernel, launch, memcpy, op, trace_of

from projector.errors import EmptyTrace, InvalidDescription
from traces.summary import measured_breakdown, read_summary, summarise
from traces.summary_types import TraceSummary

RANK_0 = {"rank": 0, "world_size": 2}
COLLECTIVE = {
    "Collective name": "_allgather_base",
    "In msg nelems": 10,
    "Out msg nelems": 80,
    "Group size": 8,
    "dtype": "BFloat16",
    "Process Group Name": "3",
}


def summary_of(*events: Event, **outer: object) -> TraceSummary:
    return summarise([trace_of(*events, **outer)])


def test_the_terms_of_the_window() -> None:
    #      0    10   20   30   40   50   60
    # comp [---------)         [----)
    # comm      [---------)
    # copy                [---------)
    summary = summary_of(
        kernel("nvjet", 0, 20),
        kernel("ncclKernel_x", 10, 20, stream=9),
        memcpy(30, 20, stream=11),
        kernel("nvjet", 40, 10),
        kernel("mystery", 60, 5),
    )
    assert summary.window_ns == 65_000
    assert summary.compute_ns == 35_000
    assert (summary.communication_ns, summary.exposed_communication_ns) == (20_000, 10_000)
    assert (summary.copy_ns, summary.exposed_copy_ns) == (20_000, 10_000)
    assert summary.idle_ns == 10_000
    assert summary.unclassified_ns == 5_000
    assert summary.window.model_dump() == {"name": "whole file", "start_ns": 0, "end_ns": 65_000, "device": True}


def test_overlapping_kernels_of_one_stream_count_once_in_the_union() -> None:
    summary = summary_of(kernel("nvjet", 0, 10), kernel("nvjet", 5, 10))
    assert summary.compute_ns == 15_000
    assert summary.kernel_classes[0].total_ns == 20_000


def test_collectives_with_group_bytes_and_exposure() -> None:
    summary = summary_of(
        kernel("nvjet", 0, 10),
        kernel("ncclDevKernel_Generic", 5, 10, stream=9, **COLLECTIVE),
        kernel("ncclDevKernel_Generic", 20, 10, stream=9, **COLLECTIVE),
    )
    (line,) = summary.collectives
    assert line.model_dump() == {
        "collective": "all_gather",
        "group": "3",
        "group_size": 8,
        "axis": "unknown",
        "count": 2,
        "total_ns": 20_000,
        "exposed_ns": 15_000,
        "message_bytes": 2 * 80 * 2,
        "on_compute_stream_ns": 0,
        "bus_bytes_per_s": pytest.approx(80 * 2 * 7 / 8 / 10e-6),
    }


def test_a_collective_takes_what_its_kernel_lacks_from_the_operator() -> None:
    summary = summary_of(
        op(
            "symm_mem::multimem_all_reduce_",
            0,
            4,
            **external(1),
            **{"Input Dims": [[100]], "Input type": ["c10::BFloat16"]},
        ),
        launch(1, 1, **external(1)),
        kernel(
            "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(int)",
            5,
            9,
            correlation=1,
            **external(1),
        ),
    )
    (line,) = summary.collectives
    assert (line.collective, line.message_bytes, line.group_size) == ("all_reduce", 200, None)


def test_send_and_receive_kernels_of_an_all_to_all() -> None:
    summary = summary_of(
        annotation("nccl:all_to_all", 0, 9),
        op("record_param_comms", 1, 7),
        launch(1, 3),
        kernel("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", 10, 5, correlation=1),
    )
    assert [line.collective for line in summary.collectives] == ["all_to_all"]


def test_bytes_are_unknown_where_one_call_does_not_state_them() -> None:
    summary = summary_of(
        kernel("ncclDevKernel_AllGather", 5, 10, **COLLECTIVE),
        kernel("ncclDevKernel_AllGather", 20, 10, **{**COLLECTIVE, "dtype": "Unheard"}),
    )
    assert summary.collectives[0].message_bytes is None


def test_how_each_microsecond_was_classified() -> None:
    summary = summary_of(
        kernel("nvjet", 0, 20), kernel("mystery", 30, 1), memcpy(40, 2), kernel("x", 50, 4, **COLLECTIVE)
    )
    assert [(one.event_class, one.by, one.count, one.total_ns) for one in summary.classification] == [
        ("communication", "collective_args", 1, 4_000),
        ("compute", "name_rule", 1, 20_000),
        ("compute", "unclassified", 1, 1_000),
        ("copy", "category", 1, 2_000),
    ]
    assert sum(one.total_ns for one in summary.classification) == 27_000
    assert summary.warnings == ("4% of device time is in kernels no rule names; it counts as compute",)


def test_steps_and_the_breakdown_of_one() -> None:
    summary = summary_of(
        annotation("ProfilerStep#1", 0, 100),
        annotation("ProfilerStep#2", 100, 100),
        launch(1, 10),
        launch(2, 110),
        launch(3, 120),
        kernel("nvjet", 20, 60, correlation=1),
        kernel("nvjet", 120, 40, correlation=2),
        kernel("ncclKernel_AllReduce_x", 160, 20, correlation=3),
    )
    first, second = summary.ranks[0].steps
    assert (first.name, first.window_ns, first.compute_ns, first.idle_ns) == ("ProfilerStep#1", 100_000, 60_000, 40_000)
    assert (second.window_ns, second.exposed_communication_ns) == (60_000, 20_000)
    breakdown = measured_breakdown(summary)
    assert breakdown.source == "measured"
    assert breakdown.total_s == pytest.approx(80e-6)
    assert breakdown.compute_s == pytest.approx(50e-6)
    assert breakdown.exposed_communication_s == pytest.approx(10e-6)
    assert breakdown.overlapped_communication_s == 0
    assert breakdown.idle_s == pytest.approx(20e-6)
    assert breakdown.bubble_s is None
    assert [(one.kind, one.time_s) for one in breakdown.by_kind] == [("gemm", pytest.approx(50e-6))]
    assert [(one.axis, one.total_s) for one in breakdown.by_axis] == [("unknown", pytest.approx(10e-6))]


def test_a_step_cut_off_by_the_profile_is_told_and_left_out_of_the_mean() -> None:
    marks = [annotation(f"ProfilerStep#{number}", 100 * number, 100) for number in range(3)]
    summary = summary_of(
        *marks,
        *(launch(number, 100 * number + 1) for number in range(1, 3)),
        launch(9, 3),
        kernel("nvjet", 10, 90, correlation=9),
        kernel("nvjet", 110, 90, correlation=1),
        kernel("nvjet", 210, 5, correlation=2),
    )
    (told,) = summary.warnings
    assert told.startswith("ProfilerStep#2 lasts 5,000 ns against 100,000 ns of a measured step: cut off")
    assert measured_breakdown(summary).compute_s == pytest.approx(90e-6)


def test_without_steps_the_breakdown_is_the_window_once_for_each_rank() -> None:
    ranks = [
        trace_of(kernel("nvjet", 0, 10 * (rank + 1)), distributedInfo={"rank": rank, "world_size": 2})
        for rank in range(2)
    ]
    breakdown = measured_breakdown(summarise(ranks))
    assert breakdown.total_s == pytest.approx(15e-6)
    assert [one.time_s for one in breakdown.by_kind] == [pytest.approx(15e-6)]


def test_several_ranks_are_summed_and_kept() -> None:
    ranks = [
        trace_of(
            kernel("nvjet", 5 * rank, 10),
            kernel("ncclKernel_AllReduce_x", 5 * rank + 10, 4),
            distributedInfo={"rank": rank, "world_size": 2},
        )
        for rank in range(2)
    ]
    summary = summarise(ranks)
    assert [rank.rank for rank in summary.ranks] == [0, 1]
    assert (summary.window_ns, summary.compute_ns, summary.communication_ns) == (28_000, 20_000, 8_000)
    assert summary.window.name == "whole file, sums over 2 ranks"
    assert (summary.window.start_ns, summary.window.end_ns) == (0, 19_000)
    assert (summary.collectives[0].count, summary.collectives[0].total_ns) == (2, 8_000)
    why = "1 in the same order on all ranks are too few to tell"
    assert summary.warnings == (f"collectives that name no group cannot be matched between ranks: {why}",)


def test_a_rank_that_comes_twice_is_counted_once() -> None:
    trace = trace_of(kernel("nvjet", 0, 10), distributedInfo=RANK_0)
    summary = summarise([trace, trace])
    told = "rank 0 comes twice at the same time: example.json is counted, example.json (no more events) is not"
    assert summary.warnings == (told,)
    assert summary.window_ns == 10_000


def test_two_devices_of_one_rank_are_no_repetition(tmp_path: Path) -> None:
    path = tmp_path / "two.json"
    events = (kernel("nvjet", 1, 2, device=0), kernel("nvjet", 2, 2, device=1))
    path.write_text(json.dumps(document(*events, distributedInfo=RANK_0)))
    summary = read_summary([path])
    assert [rank.device for rank in summary.ranks] == [0, 1]
    assert summary.files == ("two.json",)
    assert summary.event_counts == {"kernel": 2}
    assert summary.warnings == ()


def test_a_file_without_a_device_speaks_of_the_host() -> None:
    summary = summary_of(
        op("aten::linear", 0, 20),
        op("aten::addmm", 2, 15),
        op("RedistributeBackward", 30, 30),
        op("_c10d_functional::wait_tensor", 35, 20),
        annotation("gloo:all_reduce", 15, 40, thread=2),
        annotation("ProfilerStep#1", 0, 100),
    )
    assert not summary.window.device
    assert summary.window_ns == 60_000
    assert summary.compute_ns == 30_000
    assert (summary.communication_ns, summary.exposed_communication_ns) == (40_000, 30_000)
    assert summary.unclassified_ns == 10_000
    assert summary.launch_bound_frac is None
    assert summary.ranks[0].kernel_count == 0
    assert [(line.collective, line.count) for line in summary.collectives] == [("all_reduce", 1)]
    assert {one.kind: one.total_ns for one in summary.kernel_classes} == {"gemm": 20_000, "other": 10_000}
    assert summary.warnings == ("no device events were recorded: all times are of host operators",)
    identity = summary.compute_ns + summary.exposed_communication_ns + summary.exposed_copy_ns + summary.idle_ns
    assert identity == summary.window_ns


def test_a_host_without_device_events_may_have_devices() -> None:
    summary = summary_of(op("aten::mm", 0, 5), deviceProperties=[{"id": 0, "name": "A100"}] * 8)
    assert summary.warnings[0].endswith("although the host has 8 devices")


def test_idle_time_the_host_is_to_blame_for() -> None:
    summary = summary_of(
        launch(1, 0),
        launch(2, 25),
        launch(3, 30),
        kernel("nvjet", 1, 9, correlation=1),
        kernel("nvjet", 30, 10, correlation=2),  # 20 idle, launched after the device had drained
        kernel("nvjet", 45, 10, correlation=3),  # 5 idle, launched in time
    )
    assert summary.launch_bound_frac == pytest.approx(0.8)
    assert summary_of(kernel("nvjet", 1, 9), kernel("nvjet", 30, 10)).launch_bound_frac is None


def test_the_launch_bound_share_of_a_job_is_of_the_idle_time_whose_cause_is_known() -> None:
    late = trace_of(
        launch(1, 0),
        launch(2, 25),
        kernel("nvjet", 1, 9, correlation=1),
        kernel("nvjet", 30, 10, correlation=2),  # 20 idle, launched after the device had drained
        distributedInfo={"rank": 0, "world_size": 2},
    )
    in_time = trace_of(
        launch(1, 0),
        launch(2, 2),
        kernel("nvjet", 1, 9, correlation=1),
        kernel("nvjet", 20, 10, correlation=2),  # 10 idle, launched in time
        kernel("nvjet", 40, 10),  # 10 idle of unknown cause
        distributedInfo={"rank": 1, "world_size": 2},
    )
    assert summarise([late, in_time]).launch_bound_frac == pytest.approx(20 / 30)


def test_a_duration_that_overruns_its_stream_is_told() -> None:
    late = [kernel("nvjet", 10 + 5 * place, 2) for place in range(9)]
    summary = summary_of(kernel("bad\x1b[31m", 0, 1_000), *late)
    assert summary.warnings[-1] == (
        "'bad\\x1b[31m' lasts 1,000,000 ns on stream 7, past 9 later events of that stream; its duration is doubtful"
    )


def test_warnings_of_reading_come_through_with_their_file(tmp_path: Path) -> None:
    paths = []
    for rank in range(2):
        path = tmp_path / f"rank{rank}.json"
        unfinished = kernel("nvjet", 9, -1)
        path.write_text(json.dumps(document(kernel("nvjet", 1, 2), unfinished, distributedInfo={"rank": rank})))
        paths.append(path)
    assert read_summary(paths).warnings[0].startswith("rank0.json: 1 events had a negative duration")


def test_events_that_take_no_time_are_nothing_to_summarise() -> None:
    with pytest.raises(EmptyTrace, match="takes any time"):
        summarise([trace_of(kernel("a", 5, 0), kernel("b", 5, 0))])


def test_nothing_to_summarise() -> None:
    with pytest.raises(InvalidDescription):
        summarise([])
    with pytest.raises(EmptyTrace, match="neither device events nor host operators"):
        summary_of(launch(1, 0))
