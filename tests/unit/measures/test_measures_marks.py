"""Which marks of a trace are steps, and what their names say."""

import pytest

from tests.unit.measures.measure_examples import (
    Event,
    annotation,
    device_annotation,
    kernel,
    launched,
    op,
    trace_of,
)
from traces.linking import link
from traces.measures.iterations import is_numbered, span_of, stem_of
from traces.steps import Steps, find_steps, serving_windows


def found(*events: Event) -> Steps:
    trace = trace_of(*events)
    return find_steps(trace, link(trace))


def marked(*names: str, length: int = 100) -> list[Event]:
    """Annotations one after another, each with a kernel launched within it."""
    events: list[Event] = []
    for place, name in enumerate(names):
        begin = place * length
        events.append(annotation(name, begin, length - 10))
        events += launched(place + 1, begin + 5, 2, begin + 10, length - 30)
    return events


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("iteration 12", "iteration"),
        ("Iteration#5", "iteration"),
        ("iteration12", "iteration"),
        ("iter_000012", "iter"),
        ("[iteration 12]", "iteration"),
        ("## batch 4 ##", "batch"),
        ("batch 3/100", "batch"),
        ("step 3", "step"),
        ("train_step", "train_step"),
        ("training step 7", "training step"),
        ("train_one_step", "train_one_step"),
        ("warmup_step_1", "warmup_step"),
        ("forward_step", None),
        ("optimizer_step", None),
        ("lr_scheduler.step", None),
        ("micro_batch 3", None),
        ("load_batch", None),
        ("Optimizer.step#SGD.step", None),
        ("step[DECODE bs=3]", None),
        ("layer 3", None),
        ("iteration " + "1" * 200, None),
    ],
)
def test_names_of_iterations(name: str, stem: str | None) -> None:
    assert stem_of(name) == stem


def test_numbered_names() -> None:
    assert is_numbered("iteration 12")
    assert not is_numbered("train_step")
    assert not is_numbered("forward 3")


@pytest.mark.parametrize(
    ("names", "span"),
    [
        (["ProfilerStep#4", "ProfilerStep#5", "ProfilerStep#6"], "ProfilerStep#4 to #6 (3 steps)"),
        (["JAX step train 0", "JAX step train 1"], "JAX step train 0 to 1 (2 steps)"),
        (["iteration 9", "iteration 10"], "iteration 9 to 10 (2 steps)"),
        (["train_step", "train_step"], "train_step (2 steps)"),
        (["XLA step 12"], "XLA step 12 (1 step)"),
        (["step[DECODE bs=32]", "step[DECODE bs=31]"], "step[DECODE bs=32] to step[DECODE bs=31] (2 steps)"),
        (["x" * 500], "x" * 80 + "... (1 step)"),
        (["JAX step \x1b[31m 3"], "JAX step \\x1b[31m 3 (1 step)"),
    ],
)
def test_the_window_by_name(names: list[str], span: str) -> None:
    assert span_of(names) == span


def test_iterations_of_nsight_and_of_users_are_steps() -> None:
    steps = found(*marked("iteration 8", "iteration 9", "iteration 10"))
    assert steps.marks == "annotations 'iteration'"
    assert [(step.name, step.start_ns, step.end_ns) for step in steps.windows] == [
        ("iteration 8", 10_000, 110_000),
        ("iteration 9", 110_000, 210_000),
        ("iteration 10", 210_000, 280_000),
    ]


def test_the_marks_that_take_most_of_the_time_are_the_steps() -> None:
    inner = [annotation("train_step", 20 + 100 * place, 60) for place in range(3)]
    assert found(*marked("batch 1", "batch 2", "batch 3"), *inner).marks == "annotations 'batch'"


def test_a_mark_without_a_number_that_comes_once_is_no_step() -> None:
    assert found(*marked("train_step")).windows == ()
    assert len(found(*marked("train_step", "train_step")).windows) == 2
    assert len(found(*marked("iteration 5")).windows) == 1


def test_marks_that_overlap_or_take_little_are_no_steps() -> None:
    overlapping = [annotation("iteration 1", 0, 200), annotation("iteration 2", 100, 200)]
    assert found(*overlapping, op("aten::mm", 0, 300)).windows == ()
    short = [annotation(f"iteration {number}", 100 * number, 20) for number in range(3)]
    assert found(*short, op("aten::mm", 0, 300)).windows == ()


def test_profiler_steps_come_before_other_marks() -> None:
    both = [*marked("iteration 1", "iteration 2"), annotation("ProfilerStep#7", 0, 200)]
    assert found(*both).marks == "profiler steps"


def test_a_step_lies_between_the_ends_of_two_optimizer_steps() -> None:
    events: list[Event] = []
    for place in range(4):
        events += launched(10 * place + 1, 100 * place, 2, 100 * place + 5, 60)
        events.append(annotation("Optimizer.step#AdamW.step", 100 * place + 70, 10))
        events += launched(10 * place + 2, 100 * place + 72, 2, 100 * place + 80, 10)
    steps = found(*events)
    assert steps.marks == "optimizer steps"
    assert [(step.name, step.start_ns, step.end_ns) for step in steps.windows] == [
        ("Optimizer.step#AdamW.step 2", 90_000, 190_000),
        ("Optimizer.step#AdamW.step 3", 190_000, 290_000),
        ("Optimizer.step#AdamW.step 4", 290_000, 390_000),
    ]


def test_an_optimizer_that_steps_inside_the_backward_pass_marks_no_steps() -> None:
    events: list[Event] = []
    number = 0
    for iteration in range(2):
        for parameter in range(6):
            number += 1
            begin = 1000 * iteration + 500 + 5 * parameter
            events.append(annotation("Optimizer.step#SGD.step", begin, 4))
            events += launched(number, begin + 1, 1, begin + 2, 2)
    assert found(*events).windows == ()


def test_iterations_of_an_engine_beside_profiler_steps_are_still_found() -> None:
    events = [*marked("step[DECODE bs=4]", "step[DECODE bs=4]"), annotation("ProfilerStep#1", 0, 200)]
    trace = trace_of(*events)
    assert find_steps(trace, link(trace)).marks == "profiler steps"
    assert [step.start_ns for step in serving_windows(trace, link(trace))] == [10_000, 110_000]


def test_iterations_of_one_name_are_told_apart_on_the_device_too() -> None:
    steps = found(
        device_annotation("step[DECODE bs=4]", 0, 40, stream=7),
        device_annotation("step[DECODE bs=4]", 5, 30, stream=9),
        device_annotation("step[DECODE bs=4]", 50, 40, stream=7),
        kernel("nvjet", 0, 90),
    )
    assert [(step.start_ns, step.end_ns) for step in steps.windows] == [(0, 40_000), (50_000, 90_000)]


def test_of_two_forms_for_one_iteration_the_one_that_tells_more_counts() -> None:
    detailed = "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)"
    steps = found(*marked(detailed), annotation("step[DECODE bs=32]", 2, 80))
    assert [step.name for step in steps.windows] == [detailed]
