"""Which axis a collective serves that the profile gives to none: by its kind, its calls a step, and the layout."""

from collections.abc import Sequence

import pytest
from planning_examples import MILLISECOND_NS, summary_of

from agents.planning.collective_axes import with_axes
from projector.specs.plan import ParallelismPlan
from traces.summary import measured_breakdown
from traces.summary_types import CollectiveTime, StepShares, TraceSummary

TWO_AXES = ParallelismPlan(dp=4, tp=4, grad_accum=2)


def profile(calls: Sequence[tuple[str, int, int]], steps: int = 1) -> TraceSummary:
    """(collective, calls, exposed milliseconds) of one rank, no axis known."""
    exposed = sum(ms for _, _, ms in calls)
    summary = summary_of(compute_ms=1000 - exposed, exposed_ms=exposed, communication_ms=exposed)
    times = tuple(
        CollectiveTime(
            collective=name,
            group="",
            group_size=None,
            axis="unknown",
            count=count,
            total_ns=ms * MILLISECOND_NS,
            exposed_ns=ms * MILLISECOND_NS,
        )
        for name, count, ms in calls
    )
    shares = {name: getattr(summary, name) for name in StepShares.model_fields if hasattr(summary, name)}
    marks = tuple(
        StepShares(**shares, name=str(index), start_ns=0, end_ns=summary.window_ns, role="incomplete")
        for index in range(steps)
    )
    rank = summary.ranks[0].model_copy(update={"steps": marks})
    return summary.model_copy(update={"collectives": times, "ranks": (rank,)})


def axes(calls: Sequence[tuple[str, int, int]], plan: ParallelismPlan | None, steps: int = 1) -> dict[str, float]:
    """Exposed share of the step by axis."""
    summary = profile(calls, steps)
    measured, _ = with_axes(measured_breakdown(summary), summary, plan)
    return {time.axis: round(time.exposed_s, 3) for time in measured.by_axis}


@pytest.mark.parametrize(
    ("collective", "plan", "axis"),
    [
        ("all_reduce", ParallelismPlan(tp=8), "tp"),
        ("all_reduce", ParallelismPlan(dp=8), "dp"),
        ("all_gather", ParallelismPlan(dp=8, fsdp=8, zero_stage=3), "fsdp"),
        ("collective_permute", ParallelismPlan(cp=8), "cp"),
        ("p2p", ParallelismPlan(pp=4, grad_accum=8), "pp"),
        ("all_to_all", ParallelismPlan(dp=8, ep=8), "ep"),
    ],
)
def test_a_kind_with_one_axis_to_serve_serves_it(collective: str, plan: ParallelismPlan, axis: str) -> None:
    assert axes([(collective, 10, 100)], plan) == {axis: 0.1}


def test_too_few_calls_for_every_layer_are_gradients() -> None:
    """64 calls in 2 steps may be those of 8 layers; 8 in 2 steps cannot."""
    assert axes([("all_reduce", 64, 100)], TWO_AXES, steps=2) == {"tp": 0.1}
    assert axes([("all_reduce", 8, 100)], TWO_AXES, steps=2) == {"dp": 0.1}


def test_without_steps_nobody_knows_how_often_it_is_called() -> None:
    assert axes([("all_reduce", 64, 100)], TWO_AXES, steps=0) == {"unknown": 0.1}


def test_what_fits_no_axis_stays_unknown_beside_what_does() -> None:
    found = axes([("all_reduce", 64, 100), ("all_to_all", 64, 50)], ParallelismPlan(tp=8))
    assert found == {"tp": 0.1, "unknown": 0.05}


def test_without_a_layout_nothing_is_given_to_an_axis() -> None:
    assert axes([("all_reduce", 64, 100)], None) == {"unknown": 0.1}


def test_what_was_concluded_is_said() -> None:
    summary = profile([("all_reduce", 64, 100)])
    _, (assumption,) = with_axes(measured_breakdown(summary), summary, ParallelismPlan(tp=8))
    assert (assumption.field, assumption.value) == ("measured.by_axis", "all-reduce for tp")
