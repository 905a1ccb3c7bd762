"""Times that cannot be right: dropped, cut or kept, always told, and never what decides."""

import pytest

from tests.unit.traces.trace_examples import Event, annotation, kernel, launch, trace_of
from traces.summary import summarise
from traces.summary_types import TraceSummary

ABSOLUTE = 1_712_195_495_505_582
LAUNCHED = 300


def summary_of(*events: Event) -> TraceSummary:
    return summarise([trace_of(*events)])


def decode(count: int = 100, *, stream: int = 7) -> list[Event]:
    """Kernels of 2 us every 5 us, each launched by a call of its own."""
    return [
        event
        for number in range(count)
        for event in (
            launch(number + 1, 5 * number),
            kernel("nvjet", LAUNCHED + 5 * number, 2, stream=stream, correlation=number + 1),
        )
    ]


def test_kernels_at_zero_of_no_length_beside_absolute_times_are_dropped() -> None:
    summary = summary_of(kernel("nvjet", ABSOLUTE, 5), kernel("lost", 0, 0), kernel("nvjet", ABSOLUTE + 5, 5))
    assert (summary.window_ns, summary.ranks[0].kernel_count) == (10_000, 2)
    assert summary.warnings[0] == (
        "1 events started more than a day away from the others and were dropped (1 of them on the device)"
    )


@pytest.mark.parametrize("duration", [-1, -5, -0.001])
def test_an_event_that_never_ended_takes_no_time_from_others(duration: float) -> None:
    summary = summary_of(kernel("nvjet", 0, 10), kernel("unfinished", 10, duration), kernel("nvjet", 20, 10))
    assert (summary.compute_ns, summary.idle_ns) == (20_000, 10_000)
    assert "1 events had a negative duration (unfinished when the profile ended)" in summary.warnings[0]


def test_one_malformed_event_is_not_99_percent_of_the_time() -> None:
    """Five seconds in a trace of half a millisecond: cut to what its stream leaves it, and told."""
    bad = [launch(999, 0), kernel("Cijk_Ailk_Bljk_BBS", LAUNCHED - 10, 5_000_000, correlation=999)]
    summary = summary_of(*decode(), *bad)
    assert (summary.window_ns, summary.compute_ns) == (507_000, 210_000)
    assert summary.idle_ns == 297_000
    told = [warning for warning in summary.warnings if "Cijk" in warning]
    assert told == [
        "'Cijk_Ailk_Bljk_BBS' lasts 5,000,000,000 ns on stream 7, past 100 later events of that stream, which cannot "
        "be: counted as 10,000 ns, until the next begins"
    ]


def test_a_duration_that_overruns_the_next_slice_leaves_the_next_its_time() -> None:
    events = decode()
    events[1]["dur"] = 400  # of the first kernel, over the next eighty
    summary = summary_of(*events)
    assert (summary.compute_ns, summary.window_ns) == (99 * 2_000 + 5_000, 497_000)
    assert "past 79 later events of that stream, which cannot be: counted as 5,000 ns" in summary.warnings[-1]
    assert {one.total_ns for one in summary.kernel_classes} == {99 * 2_000 + 5_000}


def test_several_malformed_events_are_told_in_few_words() -> None:
    bad = [
        event
        for number in range(40)
        for event in (
            launch(1_000 + number, 0),
            kernel("bad", LAUNCHED - 400 + 10 * number, 9_000_000, correlation=1_000 + number),
        )
    ]
    summary = summary_of(*decode(), *bad)
    assert summary.window_ns == 897_000
    assert summary.compute_ns == 40 * 10_000 + 100 * 2_000
    assert sum("events of that stream" in warning for warning in summary.warnings) == 4
    assert "36 more events last past many later ones of their stream" in summary.warnings


def test_an_event_that_nothing_contradicts_is_kept_and_told() -> None:
    summary = summary_of(*decode(), kernel("stuck", 900, 5_000_000))
    assert summary.compute_ns == 200_000 + 5_000_000_000
    assert summary.warnings[-1] == (
        "'stuck' alone is 100.00% of the device's time (5,000,000,000 ns): a hang, or a wrong duration, decides every "
        "share"
    )


def test_kernels_of_one_graph_may_run_side_by_side() -> None:
    """Branches of a graph share the number of the stream it was launched on: a long one beside short ones is fine."""
    graph = [launch(1, 0), kernel("nvjet", 10, 100, correlation=1)]
    short = [kernel("vectorized_elementwise_kernel", 10 + 5 * number, 2, correlation=1) for number in range(20)]
    summary = summary_of(*graph, *short)
    assert (summary.window_ns, summary.compute_ns) == (100_000, 100_000)
    assert not [warning for warning in summary.warnings if "stream" in warning]


def test_a_collective_that_waits_beside_compute_keeps_its_time_and_is_told() -> None:
    """A hardware queue may serve several streams: what waits on it is no malformed event."""
    waiting = [launch(999, 0), kernel("ncclDevKernel_Generic", LAUNCHED - 10, 600, correlation=999)]
    summary = summary_of(*decode(), *waiting)
    assert summary.communication_ns == 600_000
    assert "past 100 later events of that stream; its duration is doubtful" in summary.warnings[-1]


def test_starts_and_ends_that_tie_or_touch_count_once() -> None:
    """On ROCm the end of one kernel is at times the very start of the next, or after it."""
    summary = summary_of(
        kernel("a_gemm", 0, 10),
        kernel("b_gemm", 10, 10),
        kernel("c_gemm", 19.5, 0.5),
        kernel("d_gemm", 20, 10),
        kernel("e", 30, 0),
    )
    assert (summary.window_ns, summary.compute_ns, summary.idle_ns) == (30_000, 30_000, 0)


def test_slices_that_overlap_without_nesting_are_both_kept() -> None:
    """A viewer drops such an event; here both count, and their overlap once."""
    summary = summary_of(kernel("a_gemm", 0, 10), kernel("b_gemm", 5, 10), kernel("c_gemm", 8, 30, stream=9))
    assert summary.ranks[0].kernel_count == 3
    assert summary.compute_ns == 38_000
    assert sum(one.total_ns for one in summary.kernel_classes) == 50_000


def test_kernels_before_the_first_step_are_in_the_file_and_in_no_step() -> None:
    warm_up = [launch(90, 0), kernel("nvjet", 10, 50, correlation=90)]
    steps = [
        event
        for number in range(3)
        for event in (
            annotation(f"ProfilerStep#{number}", 100 + 100 * number, 100),
            launch(number + 1, 110 + 100 * number),
            kernel("nvjet", 120 + 100 * number, 60, correlation=number + 1),
        )
    ]
    (rank,) = summary_of(*warm_up, *steps).ranks
    assert (rank.window.start_ns, rank.compute_ns) == (10_000, 230_000)
    assert [(step.name, step.compute_ns) for step in rank.steps] == [
        (f"ProfilerStep#{one}", 60_000) for one in range(3)
    ]


def test_a_gap_between_kernels_of_one_graph_is_not_the_hosts() -> None:
    """Iterations of a while node may be missing from the file: the gap is idle, and the host is not blamed for it."""
    summary = summary_of(
        {**launch(1, 0), "name": "cudaGraphLaunch"},
        kernel("nvjet", 5, 10, correlation=1),
        kernel("nvjet", 500, 10, correlation=1),
    )
    assert summary.idle is not None
    assert (summary.idle_ns, summary.idle.host_bound_ns, summary.idle.dependency_ns) == (485_000, 0, 485_000)
