"""Which steps count as measured, and when these are too few or too uneven to conclude."""

import pytest

from tests.unit.measures.measure_examples import Event, annotation, launched, trace_of
from traces.measures.step_statistics import step_roles, step_statistics, steps_left_out
from traces.steps import SERVING_ITERATIONS, StepWindow
from traces.summary import measured_breakdown, summarise
from traces.summary_types import StepShares

MS = 1_000_000


def windows(*durations_ms: int, name: str = "ProfilerStep#{}") -> list[StepWindow]:
    starts = [sum(durations_ms[:place]) for place in range(len(durations_ms))]
    return [
        StepWindow(name.format(place), start * MS, (start + duration) * MS)
        for place, (start, duration) in enumerate(zip(starts, durations_ms, strict=True))
    ]


def shares(marks: str, steps: list[StepWindow]) -> list[StepShares]:
    zero = dict.fromkeys(("compute", "communication", "exposed_communication", "copy", "exposed_copy"), 0)
    return [
        StepShares(
            name=step.name,
            start_ns=step.start_ns,
            end_ns=step.end_ns,
            role=role,
            window_ns=step.end_ns - step.start_ns,
            idle_ns=step.end_ns - step.start_ns,
            unclassified_ns=0,
            **{f"{name}_ns": value for name, value in zero.items()},
        )
        for step, role in zip(steps, step_roles(marks, steps), strict=True)
    ]


def test_first_steps_much_longer_than_the_later_ones_are_warm_up() -> None:
    assert step_roles("profiler steps", windows(500, 300, 100, 104, 98)) == (
        "warm_up",
        "warm_up",
        "measured",
        "measured",
        "measured",
    )


@pytest.mark.parametrize(
    ("durations", "why"),
    [
        ((140, 100, 100, 100), "not longer by half"),
        ((300, 100), "one later step shows nothing"),
        ((300, 100, 100, 400), "a longer step comes later: the job is uneven"),
        ((100, 100, 300, 100), "not a first step"),
    ],
)
def test_what_is_no_warm_up(durations: tuple[int, ...], why: str) -> None:
    assert set(step_roles("profiler steps", windows(*durations))) == {"measured"}, why


def test_a_step_that_calls_itself_warm_up_is() -> None:
    steps = windows(100, 100, name="warmup_step {}") + windows(100, 100, name="step {}")
    assert step_roles("annotations 'step'", steps) == ("warm_up", "warm_up", "measured", "measured")


def test_only_the_profile_cuts_steps_off() -> None:
    roles = step_roles("profiler steps", windows(30, 100, 40, 100, 100, 40))
    assert roles == ("incomplete", "measured", "measured", "measured", "measured", "incomplete")


def test_serving_iterations_are_compared_within_their_phase() -> None:
    """Prefill before decode is no warm-up, and short decode steps are not cut off; a first slow decode step is one."""
    prefill = windows(500, name="step[EXTEND bs=1 toks=900]")
    decode = windows(90, 30, 30, 30, name="step[DECODE bs=8]")
    assert step_roles(SERVING_ITERATIONS, [*prefill, *decode]) == (
        "measured",
        "warm_up",
        "measured",
        "measured",
        "measured",
    )


def test_decode_that_gets_faster_as_requests_finish_had_no_warm_up() -> None:
    many, few = windows(40, 39, 40, name="step[DECODE bs=256]"), windows(12, 11, 12, 12, 12, name="step[DECODE bs=8]")
    assert set(step_roles(SERVING_ITERATIONS, [*many, *few])) == {"measured"}


def test_even_steps_are_conclusive() -> None:
    statistics = step_statistics("profiler steps", shares("profiler steps", windows(500, 100, 104, 96, 20)))
    assert statistics is not None
    assert (statistics.measured, statistics.warm_up, statistics.incomplete) == (3, 1, 1)
    assert (statistics.mean_ns, statistics.median_ns, statistics.deviation_ns) == (100 * MS, 100 * MS, 4 * MS)
    assert (statistics.shortest_ns, statistics.longest_ns) == (96 * MS, 104 * MS)
    assert statistics.window == "ProfilerStep#1 to #3 (3 steps)"
    assert statistics.conclusive
    assert statistics.why == ""


@pytest.mark.parametrize(
    ("durations", "why"),
    [
        ((100,), "the window is too short to conclude: 1 measured step, at least 3 show a spread"),
        ((100, 104), "the window is too short to conclude: 2 measured steps, at least 3 show a spread"),
        (
            (3, 3, 3),
            "the window is too short to conclude: the measured steps last 9 ms together, less than 10 ms",
        ),
        (
            (100, 150, 60, 110),
            "the steps are too uneven to conclude: they spread by 35% (deviation over mean), more than 20%",
        ),
    ],
)
def test_inconclusive_steps_say_why(durations: tuple[int, ...], why: str) -> None:
    statistics = step_statistics("profiler steps", shares("profiler steps", windows(*durations)))
    assert statistics is not None
    assert not statistics.conclusive
    assert statistics.why == why


def test_prefill_and_decode_may_differ() -> None:
    steps = windows(500, 30, 31, 30, name="{}")
    names = ("step[EXTEND bs=1 toks=900]", *["step[DECODE bs=8]"] * 3)
    steps = [step._replace(name=name) for step, name in zip(steps, names, strict=True)]
    decode_leads = step_statistics(SERVING_ITERATIONS, shares(SERVING_ITERATIONS, steps * 20))
    assert decode_leads is not None
    assert decode_leads.conclusive


def test_no_step_that_counts_gives_no_statistics() -> None:
    assert step_statistics("", []) is None


def test_what_was_left_out_is_told_and_no_part_of_a_step() -> None:
    """Warm-up of 300 us, three steps of 100 us, one of 5 us that the profile cut off."""
    events: list[Event] = []
    begin = 0
    for number, length in enumerate((300, 100, 100, 100, 8)):
        events.append(annotation(f"ProfilerStep#{number}", begin, length))
        events += launched(number + 1, begin + 1, 1, begin + 3, length - 3)
        begin += length
    summary = summarise([trace_of(*events)])
    assert [step.role for step in summary.ranks[0].steps] == [
        "warm_up",
        "measured",
        "measured",
        "measured",
        "incomplete",
    ]
    assert summary.warnings == (
        "ProfilerStep#0 lasts 300,000 ns against 100,000 ns of a measured step: warm-up, left out of step times",
        "ProfilerStep#4 lasts 5,000 ns against 100,000 ns of a measured step: cut off by the start or the end of the "
        "profile, left out of step times",
    )
    breakdown = measured_breakdown(summary)
    assert (breakdown.total_s, breakdown.compute_s) == (pytest.approx(100e-6), pytest.approx(97e-6))
    assert summary.window_ns == 605_000  # the window is the whole file as ever


def test_warnings_name_foreign_steps_by_their_beginning() -> None:
    (step, *_) = shares("profiler steps", windows(100))
    left_out = step.model_copy(update={"name": "warmup" + "x" * 500, "role": "warm_up"})
    (told,) = steps_left_out([left_out])
    assert len(steps_left_out([left_out] * 50)) == 7
    assert steps_left_out([left_out] * 50)[-1] == "44 more steps are left out likewise"
    assert (
        told
        == f"{'warmup' + 'x' * 74}... lasts 100,000,000 ns against no measured step: warm-up, left out of step times"
    )
