from trace_examples import Event, annotation, device_annotation, kernel, launch, trace_of

from traces.linking import link
from traces.steps import StepWindow, complete, step_windows


def steps(*events: Event) -> list[StepWindow]:
    trace = trace_of(*events)
    return list(step_windows(trace, link(trace)))


def test_marks_on_the_device_are_preferred_and_tile_the_window() -> None:
    assert steps(
        annotation("ProfilerStep#4", 0, 100),
        annotation("ProfilerStep#5", 100, 100),
        device_annotation("ProfilerStep#4", 20, 50),
        device_annotation("ProfilerStep#5", 120, 60),
        kernel("k", 20, 5),
    ) == [StepWindow("ProfilerStep#4", 20_000, 120_000), StepWindow("ProfilerStep#5", 120_000, 180_000)]


def test_marks_of_one_step_on_several_streams_are_one() -> None:
    assert steps(
        device_annotation("ProfilerStep#4", 20, 50, stream=7),
        device_annotation("ProfilerStep#4", 30, 60, stream=9),
        kernel("k", 20, 5),
    ) == [StepWindow("ProfilerStep#4", 20_000, 90_000)]


def test_marks_on_the_host_are_followed_to_what_they_launched() -> None:
    assert steps(
        annotation("ProfilerStep#1", 0, 100),
        annotation("ProfilerStep#2", 100, 100),
        launch(1, 90),
        launch(2, 110),
        kernel("a", 150, 20, correlation=1),
        kernel("b", 180, 30, correlation=2),
    ) == [StepWindow("ProfilerStep#1", 150_000, 180_000), StepWindow("ProfilerStep#2", 180_000, 210_000)]


def test_iterations_of_engines_end_with_their_own_work() -> None:
    assert steps(
        annotation("step[DECODE bs=32]", 0, 40),
        annotation("step[EXTEND bs=2 toks=90]", 50, 40),
        launch(1, 10),
        launch(2, 60),
        kernel("a", 20, 10, correlation=1),
        kernel("b", 70, 15, correlation=2),
    ) == [StepWindow("step[DECODE bs=32]", 20_000, 30_000), StepWindow("step[EXTEND bs=2 toks=90]", 70_000, 85_000)]


def test_iterations_of_one_name_are_kept_apart() -> None:
    found = steps(
        annotation("step[DECODE bs=32]", 0, 40),
        annotation("step[DECODE bs=32]", 50, 40),
        launch(1, 10),
        launch(2, 60),
        kernel("a", 20, 10, correlation=1),
        kernel("b", 70, 15, correlation=2),
    )
    assert [(step.start_ns, step.end_ns) for step in found] == [(20_000, 30_000), (70_000, 85_000)]


def test_no_marks_no_steps() -> None:
    assert steps(kernel("k", 20, 5), annotation("forward", 0, 10)) == []


def test_steps_cut_off_by_the_profile() -> None:
    assert complete([100, 98, 3]) == [True, True, False]
    assert complete([100, 3]) == [True, True]
    assert complete([]) == []
