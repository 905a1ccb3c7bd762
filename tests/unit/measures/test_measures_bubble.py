"""Pipeline bubble: transfers no compute hides, and idle time the host is not to blame for, inside measured steps."""

from typing import Any

import pytest

from tests.unit.measures.measure_examples import Event, annotation, call, kernel, launched, trace_of
from traces.measure_types import PipelineBubble
from traces.measures.bubble import bubble_s_of_step, ideal_frac
from traces.summary import measured_breakdown, summarise
from traces.summary_types import TraceSummary

PIPELINE = {
    "Collective name": "recv",
    "Process Group Name": "5",
    "Process Group Description": "PIPELINE_MODEL_PARALLEL_GROUP",
    "Group size": 4,
}


def transfer(correlation: int, called: float, start: float, duration: float, **changed: Any) -> list[Event]:
    args = {**PIPELINE, **changed}
    return [
        call("cudaLaunchKernel", correlation, called, 1),
        kernel("ncclDevKernel_SendRecv(x)", start, duration, stream=20, correlation=correlation, **args),
    ]


def step(number: int, begin: float, **changed: Any) -> list[Event]:
    """One step of 400 us: recv for 50 us, compute, a wait of 60 us, compute, a late launch, compute."""
    at = 10 * number
    return [
        annotation(f"ProfilerStep#{number}", begin, 200),
        *transfer(at + 1, begin + 1, begin + 10, 50, **changed),
        *launched(at + 2, begin + 2, 1, begin + 60, 100),  # recv ends as it begins
        *launched(at + 3, begin + 3, 1, begin + 220, 80),  # queued long before: 60 us of dependency
        *launched(at + 4, begin + 160, 180, begin + 345, 55),  # drained at 300, the call returns at 340
    ]


def three_steps(**changed: Any) -> list[Event]:
    return [event for number in range(3) for event in step(number, 400 * number, **changed)]


def bubble_of(*events: Event, **outer: Any) -> PipelineBubble | None:
    return summarise([trace_of(*events, **outer)]).ranks[0].bubble


def test_waiting_in_transfers_and_idle_but_not_for_the_host() -> None:
    found = bubble_of(*three_steps())
    assert found == PipelineBubble(
        bubble_ns=3 * (50_000 + 60_000),
        idle_ns=3 * 60_000,
        window_ns=1_190_000,
        stages=4,
        micro_batches=None,
        ideal_frac=None,
        basis="exposed transfers between stages, and idle time with the next work queued, over 3 measured steps",
    )


def test_a_transfer_under_compute_is_no_bubble() -> None:
    hidden = [event for number in range(3) for event in transfer(100 + number, 400 * number + 5, 400 * number + 70, 40)]
    bubble = bubble_of(*three_steps(), *hidden)
    assert bubble is not None
    assert bubble.bubble_ns == 3 * (50_000 + 60_000)


def test_a_group_of_another_axis_is_no_pipeline() -> None:
    assert bubble_of(*three_steps(**{"Process Group Description": "CONTEXT_PARALLEL_GROUP"})) is None


def test_without_a_step_the_bubble_is_unknown_and_that_is_told() -> None:
    events = [event for event in three_steps() if not event["name"].startswith("ProfilerStep")]
    summary = summarise([trace_of(*events)])
    assert summary.ranks[0].bubble is None
    assert "the job has pipeline stages, and the trace marks no whole step: the pipeline bubble is not known" in (
        summary.warnings
    )
    assert measured_breakdown(summary).bubble_s is None


def test_where_the_cause_of_idle_time_is_unknown_so_is_the_bubble() -> None:
    without_calls = [event for event in three_steps() if event["cat"] != "cuda_runtime"]
    summary = summarise([trace_of(*without_calls)])
    assert summary.ranks[0].bubble is None
    assert (
        "the job has pipeline stages, and the trace does not show what the device waits for: the pipeline bubble is "
        "not known"
    ) in summary.warnings


def test_a_collective_of_all_stages_is_no_transfer_between_two() -> None:
    found = bubble_of(*three_steps(**{"Collective name": "allreduce"}))
    assert found is not None
    assert found.bubble_ns == found.idle_ns == 3 * 60_000
    assert found.basis.startswith("idle time with the next work queued; no transfer between stages is in the trace")


def test_micro_batches_as_schedules_mark_them() -> None:
    """torch.distributed.pipelining: "Forward 0" to "Forward 7", or "PP:0F0" with the stage; DualPipe pairs: "1F1B"."""
    forward = [annotation(f"Forward {index}", 400 * number + index, 1) for number in range(3) for index in range(8)]
    found = bubble_of(*three_steps(), *forward)
    assert found is not None
    assert (found.micro_batches, found.ideal_frac) == (8, pytest.approx(3 / 11))
    staged = [annotation(f"PP:{stage}F{index}", 3 + index, 1) for stage in (0, 4) for index in range(6)]
    found = bubble_of(*three_steps(), *staged)
    assert found is not None
    assert found.micro_batches == 6
    pairs = [annotation("1F1B", 20 * index, 10) for index in range(12)]
    found = bubble_of(*three_steps(), *pairs)
    assert found is not None
    assert found.micro_batches == 4
    uneven = bubble_of(*three_steps(), *pairs[:-1])
    assert uneven is not None
    assert uneven.micro_batches is None


def test_ideal_of_1f1b() -> None:
    assert ideal_frac(4, 8) == pytest.approx(3 / 11)
    assert ideal_frac(1, 8) == 0
    assert ideal_frac(None, 8) is ideal_frac(4, None) is None


def of_ranks(count: int, *, silent: bool = False) -> TraceSummary:
    traces = [
        trace_of(*three_steps(), distributedInfo={"rank": rank, "world_size": count + silent}) for rank in range(count)
    ]
    if silent:
        without = [event for event in three_steps() if "ncclDev" not in event["name"]]
        traces.append(trace_of(*without, distributedInfo={"rank": count, "world_size": count + 1}))
    return summarise(traces)


def test_the_breakdown_of_a_step_has_the_idle_part() -> None:
    summary = of_ranks(2)
    breakdown = measured_breakdown(summary)
    assert breakdown.bubble_s == pytest.approx(60e-6)
    assert breakdown.bubble_s is not None
    assert breakdown.bubble_s <= breakdown.idle_s
    assert bubble_s_of_step(summary.ranks) == breakdown.bubble_s


def test_one_rank_that_does_not_say_leaves_it_unknown() -> None:
    assert measured_breakdown(of_ranks(1, silent=True)).bubble_s is None
