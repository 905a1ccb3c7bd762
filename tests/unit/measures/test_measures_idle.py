"""Why a device was idle: one rule at a time on timelines of two kernels, and the sums."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.measures.measure_examples import Event, annotation, call, causes_of, kernel, launched, op, trace_of
from traces.launches import LONGEST_LATENCY_NS, GapCauses, gap_causes, launch_bound_frac
from traces.linking import link
from traces.measure_types import IdleSplit
from traces.measures.idle import idle_split, idle_times, merged_idle, one_long_gap
from traces.naming import classify
from traces.shares import device_cover
from traces.summary import summarise

FIRST = launched(1, 0, 2, 3, 7)  # runs from 3 to 10


def split(*events: Event) -> tuple[int, int, int, int]:
    """(host bound, launch gap, dependency, unknown) of the only gap, in microseconds."""
    causes = causes_of(*events)
    assert len(causes.gaps) == 1
    return _us(causes)


def _us(causes: GapCauses) -> tuple[int, int, int, int]:
    columns = (causes.host_bound_ns, causes.launch_gap_ns, causes.dependency_ns, causes.unknown_ns)
    host, launch, dependency, unknown = (int(column.sum()) // 1000 for column in columns)
    return host, launch, dependency, unknown


def test_a_launch_after_the_device_drained_is_the_hosts_doing_until_it_returns() -> None:
    # drained at 10, launched from 50 to 54, runs from 57
    assert split(*FIRST, *launched(2, 50, 4, 57, 5)) == (44, 3, 0, 0)


def test_a_kernel_may_begin_before_its_launch_returns() -> None:
    assert split(*FIRST, *launched(2, 50, 9, 54, 5)) == (44, 0, 0, 0)


def test_a_launch_in_time_and_a_short_gap_is_latency() -> None:
    assert split(*FIRST, *launched(2, 4, 2, 14, 5)) == (0, 4, 0, 0)
    assert split(*FIRST, *launched(2, 4, 2, 10 + LONGEST_LATENCY_NS // 1000, 5)) == (0, 30, 0, 0)


def test_a_launch_in_time_and_a_long_gap_is_a_wait() -> None:
    assert split(*FIRST, *launched(2, 4, 2, 90, 5)) == (0, 0, 80, 0)


def test_a_late_launch_that_then_waits_has_two_causes() -> None:
    """As where a profiler's start holds up the first kernel: 463 ms after its launch."""
    assert split(*FIRST, *launched(2, 48, 5, 463_304, 5)) == (43, 0, 463_251, 0)


def test_a_call_under_way_when_the_device_drains_is_a_host_just_behind() -> None:
    assert split(*FIRST, *launched(2, 8, 6, 17, 5)) == (0, 7, 0, 0)


def test_a_call_that_goes_on_long_after_the_device_drained_holds_it_up() -> None:
    """A copy from pageable memory that the host stages: the call began before the drain and returns after the start."""
    events = (call("cudaMemcpyAsync", 2, 9, 500), kernel("nvjet", 400, 5, correlation=2))
    assert split(*FIRST, *events) == (390, 0, 0, 0)


def test_an_event_nobody_is_seen_to_launch_has_no_cause() -> None:
    assert split(*FIRST, kernel("nvjet", 90, 5)) == (0, 0, 0, 80)


def test_a_call_after_its_event_means_that_the_clocks_disagree() -> None:
    assert split(*FIRST, *launched(2, 95, 2, 90, 5)) == (0, 0, 0, 80)


def test_a_file_of_the_device_alone_shows_no_cause() -> None:
    causes = causes_of(kernel("nvjet", 0, 5), kernel("nvjet", 50, 5), kernel("nvjet", 90, 5))
    assert _us(causes) == (0, 0, 0, 80)
    assert launch_bound_frac(causes) is None


def test_kernels_of_one_graph_were_all_launched_with_the_first() -> None:
    """Only the gap before the graph can be the host's; the launching call may still be under way inside it."""
    causes = causes_of(
        *FIRST,
        call("cudaGraphLaunch", 2, 60, 300),
        kernel("a", 100, 10, correlation=2),
        kernel("b", 115, 10, correlation=2),  # 5 after a
        kernel("c", 215, 10, correlation=2),  # 90 after b
    )
    assert [int(ns) // 1000 for ns in causes.host_bound_ns] == [90, 0, 0]
    assert [int(ns) // 1000 for ns in causes.launch_gap_ns] == [0, 5, 0]
    assert [int(ns) // 1000 for ns in causes.dependency_ns] == [0, 0, 90]


def test_idle_time_is_the_devices_not_a_streams() -> None:
    """A stream that waits under another stream's kernel leaves no idle time."""
    causes = causes_of(*FIRST, kernel("long", 5, 100, stream=9), *launched(2, 80, 2, 105, 5))
    assert len(causes.gaps) == 0
    assert launch_bound_frac(causes) is None


def test_a_trace_that_lacks_most_kernels_shows_no_cause() -> None:
    lost = [call("cudaLaunchKernel", 100 + number, 20 + number, 1) for number in range(60)]
    assert split(*FIRST, *launched(2, 90, 2, 95, 5), *lost) == (0, 0, 0, 85)


def test_launches_that_would_run_after_the_end_of_the_profile_lack_nothing() -> None:
    queued = [call("cudaLaunchKernel", 100 + number, 96 + number, 1) for number in range(200)]
    assert split(*FIRST, *launched(2, 90, 2, 95, 5), *queued) == (82, 3, 0, 0)


def test_a_thinned_trace_shows_no_cause() -> None:
    """Of the numbers its calls have, fewer than one in a hundred is there, and each of these launched something."""
    kept = [event for number in range(600) for event in launched(1000 * number, 100 * number, 2, 100 * number + 5, 5)]
    assert summarise([trace_of(*kept)]).warnings == (
        "most events were removed from the file, as the numbers of its calls show: idle time is overstated, and its "
        "cause is not known",
    )
    host, *_, unknown = _us(causes_of(*kept))
    assert (host, unknown) == (0, 599 * 95)
    waits = call("cudaDeviceSynchronize", 500, 1, 1)  # launches nothing: nobody picked the calls
    host, *_, unknown = _us(causes_of(*kept, waits))
    assert (host, unknown) == (599 * 92, 0)


def test_share_of_idle_time_before_late_launches() -> None:
    causes = causes_of(
        *FIRST,
        *launched(2, 25, 1, 30, 10),  # 20 idle: the launch came after the drain
        *launched(3, 31, 1, 45, 10),  # 5 idle: launched in time
        kernel("nvjet", 70, 5),  # 15 idle of unknown cause
    )
    assert launch_bound_frac(causes) == pytest.approx(20 / 25)


def test_waiting_behind_a_late_launch_is_not_launching() -> None:
    causes = causes_of(*FIRST, *launched(2, 48, 5, 463_304, 5))
    assert launch_bound_frac(causes) == pytest.approx(43 / 463_294)


def test_input_and_pauses_are_parts_of_what_the_host_is_to_blame_for() -> None:
    events = (
        *FIRST,
        annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 12, 5_000),
        annotation("load_batch", 5_900, 10, thread=7),  # no thread that launches: it prefetches
        op("aten::to", 5_100, 50),
        *launched(2, 6_000, 10, 6_015, 5),
        *launched(3, 6_400, 10, 6_415, 5),
    )
    trace = trace_of(*events)
    assert idle_split(idle_times(trace, link(trace), causes_of(*events))) == IdleSplit(
        host_bound_ns=6_000_000 + 390_000,
        launch_gap_ns=5_000 + 5_000,
        dependency_ns=0,
        unknown_ns=0,
        input_ns=5_000_000,
        pause_ns=6_000_000,
    )


def test_one_gap_that_is_most_of_the_window_is_told() -> None:
    long_gap = (*FIRST, *launched(2, 4, 2, 463_304, 5))
    (told,) = summarise([trace_of(*long_gap)]).warnings
    assert told.startswith("one idle gap of 463,294,000 ns is 100% of the window")
    causes = causes_of(*long_gap)
    assert one_long_gap(causes, 2 * 463_294_001) == ()
    assert one_long_gap(causes_of(*FIRST, *launched(2, 4, 2, 904, 5)), 906_000) == ()


def test_the_measured_steps_have_a_split_of_their_own() -> None:
    """A first step that compiles for a second is warm-up: what its idle time waited for says nothing of the job."""
    events: list[Event] = []
    lengths = (1_000_000, 1_000, 1_000, 1_000)
    for number, length in enumerate(lengths):
        begin = sum(lengths[:number])
        events.append(annotation(f"ProfilerStep#{number}", begin, length))
        events += launched(2 * number, begin + 1, 2, begin + 4, 6)
        events += launched(2 * number + 1, begin + 5, 2, begin + length - 400, 390)  # queued early, runs late
        events += launched(90 + number, begin + length - 500, 5, begin + length - 490, 10)
    (rank,) = summarise([trace_of(*events)]).ranks
    assert [step.role for step in rank.steps] == ["warm_up", "measured", "measured", "measured"]
    measured = [step for step in rank.steps if step.role == "measured"]
    split = rank.step_idle
    assert split is not None
    parts = (split.host_bound_ns, split.launch_gap_ns, split.dependency_ns, split.unknown_ns)
    assert sum(parts) == sum(step.idle_ns for step in measured)
    assert split.pause_ns == 0
    assert rank.idle is not None
    assert rank.idle.pause_ns == 999_495_000  # from the end of its first kernel to the return of the second launch
    host_alone = summarise([trace_of(op("aten::mm", 0, 5), annotation("ProfilerStep#1", 0, 9))]).ranks[0]
    assert host_alone.step_idle is None


def test_the_ranks_of_a_job_add_up() -> None:
    device = [*FIRST, *launched(2, 50, 4, 57, 5)]
    ranks = [trace_of(*device, distributedInfo={"rank": rank, "world_size": 3}) for rank in range(2)]
    host_alone = trace_of(op("aten::mm", 0, 5), op("aten::mm", 30, 5), distributedInfo={"rank": 2, "world_size": 3})
    summary = summarise([*ranks, host_alone])
    assert summary.idle == IdleSplit(host_bound_ns=88_000, launch_gap_ns=6_000, dependency_ns=0, unknown_ns=25_000)
    assert summary.idle_ns == 88_000 + 6_000 + 25_000
    assert merged_idle(summarise([host_alone]).ranks) is None


@st.composite
def timelines(draw: st.DrawFn) -> list[dict[str, int]]:
    """Launches and kernels anywhere in time, some kernels without a launch, some launched by an earlier call."""
    found = []
    for number in range(draw(st.integers(2, 8))):
        start = draw(st.integers(0, 400))
        found.append(
            {
                "number": draw(st.sampled_from((number, 0))),
                "start": start,
                "duration": draw(st.integers(0, 60)),
                "called": draw(st.integers(0, 450)),
                "took": draw(st.integers(0, 80)),
                "stream": draw(st.sampled_from((7, 9))),
                "seen": draw(st.sampled_from((True, True, False))),
            }
        )
    found[0]["duration"] += 1  # a trace in which nothing takes time is refused
    return found


def _events(timeline: list[dict[str, int]], factor: int = 1) -> list[Event]:
    events: list[Event] = []
    for one in timeline:
        seen = {"correlation": one["number"] + 1} if one["seen"] else {}
        events.append(kernel("nvjet", one["start"] * factor, one["duration"] * factor, stream=one["stream"], **seen))
        if one["seen"]:
            events.append(call("cudaLaunchKernel", one["number"] + 1, one["called"] * factor, one["took"] * factor))
    return events


def _causes(timeline: list[dict[str, int]], factor: int) -> GapCauses:
    trace = trace_of(*_events(timeline, factor))
    links = link(trace)
    idle = device_cover(trace, classify(trace)).idle
    return gap_causes(trace, links, idle, latency_ns=LONGEST_LATENCY_NS * factor)


@given(timelines())
def test_the_four_terms_are_the_idle_time(timeline: list[dict[str, int]]) -> None:
    (rank,) = summarise([trace_of(*_events(timeline))]).ranks
    split = rank.idle
    assert split is not None
    parts = (split.host_bound_ns, split.launch_gap_ns, split.dependency_ns, split.unknown_ns)
    assert min(parts) >= 0
    assert sum(parts) == rank.idle_ns
    assert max(split.input_ns, split.pause_ns) <= split.host_bound_ns


@given(timelines(), st.lists(st.integers(0, 450), min_size=2, max_size=5, unique=True))
def test_the_terms_of_measured_steps_are_their_idle_time(timeline: list[dict[str, int]], marks: list[int]) -> None:
    marks.sort()
    steps = [annotation(f"ProfilerStep#{begin}", begin, end - begin) for begin, end in itertools.pairwise(marks)]
    (rank,) = summarise([trace_of(*_events(timeline), *steps)]).ranks
    measured = [step for step in rank.steps if step.role == "measured"]
    if rank.step_idle is not None:
        split = rank.step_idle
        parts = (split.host_bound_ns, split.launch_gap_ns, split.dependency_ns, split.unknown_ns)
        assert min(parts) >= 0
        assert sum(parts) == sum(step.idle_ns for step in measured)
    assert (rank.step_idle is None) == (not measured)


@given(timelines(), st.integers(2, 5))
def test_all_times_and_the_threshold_scaled_scale_every_term(timeline: list[dict[str, int]], factor: int) -> None:
    once, scaled = _causes(timeline, 1), _causes(timeline, factor)
    for name in ("host_bound_ns", "launch_gap_ns", "dependency_ns", "unknown_ns"):
        assert (getattr(scaled, name) == factor * getattr(once, name)).all()


def test_no_cause_depends_on_the_order_of_events() -> None:
    events = [*FIRST, *launched(2, 50, 4, 57, 5), *launched(3, 55, 4, 90, 5)]
    assert _us(causes_of(*events)) == _us(causes_of(*events[::-1]))
