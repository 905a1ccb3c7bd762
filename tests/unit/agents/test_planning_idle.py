"""What an idle device waits for: the cause, the sentences it rests on, and what the steps leave open."""

import pytest
from planning_examples import MILLISECOND_NS, scaled, summary_of, sure

from agents.planning.analyzer import diagnose
from agents.planning.idle_causes import IdleCauses, cause_of_waiting, idle_causes
from traces.measure_types import IdleSplit, PipelineBubble, StepStatistics
from traces.summary_types import Implied, StepShares, TraceSummary


def waiting(*, host=0, launch=0, dependency=0, unknown=0, loading=0, pausing=0, **fields) -> TraceSummary:
    """A second of which the device computes what the given milliseconds of idle time leave over."""
    idle = host + launch + dependency + unknown
    summary = summary_of(compute_ms=1000 - idle, kinds={"gemm": 1000 - idle}, **fields)
    split = IdleSplit(
        host_bound_ns=host * MILLISECOND_NS,
        launch_gap_ns=launch * MILLISECOND_NS,
        dependency_ns=dependency * MILLISECOND_NS,
        unknown_ns=unknown * MILLISECOND_NS,
        input_ns=loading * MILLISECOND_NS,
        pause_ns=pausing * MILLISECOND_NS,
    )
    return summary.model_copy(update={"idle": split})


@pytest.mark.parametrize(
    ("summary", "cause"),
    [
        (waiting(host=800, launch=20), "launch_bound"),
        (waiting(host=20, launch=800), "launch_bound"),
        (waiting(host=800, pausing=300), "launch_bound"),
        (waiting(host=800, pausing=700), "host_idle"),
        (waiting(host=800, loading=500), "host_idle"),
        (waiting(host=100, dependency=700), "unknown"),
        (waiting(host=100, dependency=700, implied=Implied(pp=sure(4))), "pipeline_bubble"),
        (waiting(unknown=800), "unknown"),
        (waiting(host=350, dependency=50, unknown=400), "unknown"),
        (waiting(host=350, dependency=100, unknown=350), "launch_bound"),
    ],
)
def test_the_cause_of_most_idle_time_names_what_the_device_waits_for(summary, cause):
    assert diagnose(summary).cause == cause


def test_the_split_comes_before_the_share_of_late_launches():
    """A late launch that then waited for 600 ms is no launch-bound device."""
    assert diagnose(waiting(host=100, dependency=700, launch_bound_frac=1.0)).cause == "unknown"
    assert diagnose(summary_of(compute_ms=200, kinds={"gemm": 200}, launch_bound_frac=1.0)).cause == "launch_bound"


def test_each_cause_has_its_evidence_with_time_share_and_source():
    diagnosis = diagnose(waiting(host=600, launch=50, dependency=100, unknown=4, loading=500, pausing=550))
    evidence = {entry.id: entry for entry in diagnosis.evidence if entry.id.startswith("ev-idle-")}
    assert list(evidence) == ["ev-idle-host", "ev-idle-input", "ev-idle-pause", "ev-idle-launch", "ev-idle-dependency"]
    host = evidence["ev-idle-host"]
    assert host.claim == (
        "Idle time in which the host had not issued the next work takes 600.0 ms, 60.0 % of the window."
    )
    assert (host.value, host.unit, host.ref) == (0.6, "fraction", "summary.idle.host_bound_ns")
    assert evidence["ev-idle-input"].ref == "summary.idle.input_ns"


def test_the_summary_says_what_the_host_did():
    assert "it loaded input for 62.5 % of the idle time" in diagnose(waiting(host=800, loading=500)).summary
    assert "no launch came for more than a millisecond" in diagnose(waiting(host=800, pausing=700)).summary
    assert "one launch after another" in diagnose(waiting(host=800)).summary
    assert "many short kernels, not a late host" in diagnose(waiting(host=20, launch=800)).summary


def test_no_idle_time_has_no_causes():
    assert idle_causes(summary_of(compute_ms=500), of_steps=False) is None
    assert idle_causes(waiting(), of_steps=False) is None
    assert cause_of_waiting(IdleCauses(0, 0, 1, 0), stages=2) == "pipeline_bubble"


def test_twice_the_time_is_the_same_diagnosis():
    once, twice = diagnose(waiting(host=800, loading=500)), diagnose(scaled(waiting(host=800, loading=500), 2))
    assert (once.cause, once.summary, once.limits) == (twice.cause, twice.summary, twice.limits)


def step(role: str, length_ms: int, busy_ms: int) -> StepShares:
    return StepShares(
        name="ProfilerStep#1",
        start_ns=0,
        end_ns=length_ms * MILLISECOND_NS,
        role=role,
        window_ns=length_ms * MILLISECOND_NS,
        compute_ns=busy_ms * MILLISECOND_NS,
        communication_ns=0,
        exposed_communication_ns=0,
        copy_ns=0,
        exposed_copy_ns=0,
        idle_ns=(length_ms - busy_ms) * MILLISECOND_NS,
        unclassified_ns=0,
    )


def with_rank(summary: TraceSummary, **fields) -> TraceSummary:
    return summary.model_copy(update={"ranks": (summary.ranks[0].model_copy(update=fields),)})


def test_warm_up_and_cut_steps_are_left_out_and_that_is_said():
    """A first step of 500 ms, mostly idle, four busy ones of 100 ms, and a cut one: only the four are diagnosed."""
    steps = (step("warm_up", 500, 50), *[step("measured", 100, 90)] * 4, step("incomplete", 20, 10))
    summary = summary_of(compute_ms=450, kinds={"gemm": 450}, implied=Implied(phase=sure("training")))
    diagnosis = diagnose(with_rank(summary, steps=steps))
    assert diagnosis.window == "the marked steps"
    assert diagnosis.shares.compute == pytest.approx(0.9)
    assert "1 warm-up step and 1 cut step left out of the shares" in diagnosis.limits


def test_idle_time_of_left_out_steps_explains_nothing():
    """The warm-up paused for a second; in the steps that count the device waited for queued work."""
    ms = MILLISECOND_NS
    paused = IdleSplit(host_bound_ns=900 * ms, launch_gap_ns=0, dependency_ns=0, unknown_ns=0, pause_ns=900 * ms)
    queued = IdleSplit(host_bound_ns=0, launch_gap_ns=0, dependency_ns=240 * ms, unknown_ns=0)
    steps = (step("warm_up", 600, 0), *[step("measured", 100, 40)] * 4)
    summary = summary_of(compute_ms=160, kinds={"gemm": 160}, implied=Implied(pp=sure(4)))
    summary = summary.model_copy(update={"idle": paused})
    diagnosis = diagnose(with_rank(summary, steps=steps, idle=paused, step_idle=queued))
    assert diagnosis.cause == "pipeline_bubble"
    (told,) = (entry for entry in diagnosis.evidence if entry.id.startswith("ev-idle-"))
    assert told.claim == (
        "Idle time in which the next work was queued and waited takes 240.0 ms, 60.0 % of the marked steps."
    )
    assert told.ref == "summary.ranks[].step_idle.dependency_ns"


def test_steps_that_do_not_show_the_job_are_a_limit():
    statistics = StepStatistics(
        marks="profiler steps",
        measured=2,
        mean_ns=1e8,
        median_ns=1e8,
        shortest_ns=1,
        longest_ns=2,
        conclusive=False,
        why="the window is too short to conclude: 2 measured steps, at least 3 show a spread",
    )
    summary = summary_of(compute_ms=900, kinds={"gemm": 900})
    limits = diagnose(with_rank(summary, steps=(step("measured", 500, 450),) * 2, step_statistics=statistics)).limits
    assert f"profiler steps: {statistics.why}" in limits
    assert "the trace marks no steps: warm-up and pauses count like any time" in diagnose(summary).limits


def test_a_pipeline_bubble_of_the_trace_decides_what_an_idle_device_waits_for():
    bubble = PipelineBubble(
        bubble_ns=500 * MILLISECOND_NS,
        idle_ns=400 * MILLISECOND_NS,
        window_ns=1000 * MILLISECOND_NS,
        stages=4,
        micro_batches=8,
        ideal_frac=3 / 11,
        basis="test",
    )
    diagnosis = diagnose(with_rank(waiting(host=100, dependency=500), bubble=bubble))
    assert diagnosis.cause == "pipeline_bubble"
    (told,) = (entry for entry in diagnosis.evidence if entry.id == "ev-bubble")
    assert told.claim == (
        "Pipeline stages wait for one another 50.0 % of the measured steps, between their first and their last work in "
        "each; 1F1B leaves 27.3 % of a whole step at best."
    )
