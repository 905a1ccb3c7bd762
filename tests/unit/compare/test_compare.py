"""Two runs of a job of marked steps: what moved, and whether a promise was kept."""

import pytest

from tests.unit.traces.trace_examples import annotation, device_annotation, kernel, launch, memcpy, op, trace_of
from traces.compare.compare import compare
from traces.compare.types import Comparison
from traces.measure_types import ServingPhase
from traces.stored.redact import redact
from traces.summary import summarise
from traces.summary_types import TraceSummary


def run(
    *, gemm_us: float, all_reduce_us: float, steps: int = 5, jitter_us: float = 0.0, marks: bool = True
) -> TraceSummary:
    """Steps of one product and one exposed all-reduce, back to back."""
    events, now = [], 1000.0
    for number in range(steps):
        length = gemm_us + all_reduce_us + (jitter_us if number % 2 else 0.0)
        first, second = 10 * number + 1, 10 * number + 2
        if marks:
            events.append(annotation(f"ProfilerStep#{number}", now - 5, length))
            events.append(device_annotation(f"ProfilerStep#{number}", now, length))
        events += [
            op("aten::mm", now - 4, 2),
            launch(first, now - 3),
            kernel("sm90_gemm", now, gemm_us, correlation=first),
            launch(second, now - 2),
            kernel("ncclDevKernel_AllReduce_Sum_bf16", now + gemm_us, length - gemm_us, correlation=second, stream=9),
        ]
        now += length
    return summarise([trace_of(*events)])


def term(comparison: Comparison, name: str) -> float:
    return next(one.change_ns for one in comparison.terms if one.term == name)


def test_a_step_that_lost_half_of_its_communication() -> None:
    found = compare(run(gemm_us=60, all_reduce_us=40), run(gemm_us=60, all_reduce_us=20))
    assert found.basis == "step"
    assert (found.before.time_ns, found.after.time_ns) == (100_000, 80_000)
    assert found.change_frac == pytest.approx(-0.2)
    assert term(found, "exposed_communication") == -20_000
    assert term(found, "compute") == 0
    assert found.significant is True


def test_the_terms_sum_to_the_change() -> None:
    found = compare(run(gemm_us=60, all_reduce_us=40), run(gemm_us=75, all_reduce_us=10, jitter_us=6))
    assert sum(one.change_ns for one in found.terms) == pytest.approx(found.change_ns)


def test_a_change_within_the_spread_of_the_steps_is_no_change() -> None:
    found = compare(run(gemm_us=60, all_reduce_us=40, jitter_us=30), run(gemm_us=59, all_reduce_us=40, jitter_us=30))
    assert found.significant is False


def test_two_steps_do_not_show_their_spread() -> None:
    found = compare(run(gemm_us=60, all_reduce_us=40, steps=2), run(gemm_us=60, all_reduce_us=20, steps=2))
    assert (found.before.error_ns, found.significant) == (None, None)


@pytest.mark.parametrize(
    ("after_us", "predicted", "verdict"),
    [
        (20, -0.2, "arrived"),
        (20, -0.1, "exceeded"),
        (30, -0.2, "partly"),
        (39, -0.2, "not_at_all"),
        (50, -0.2, "worse"),
        (20, 0.0, "inconclusive"),
    ],
)
def test_what_became_of_a_promise(after_us: float, predicted: float, verdict: str) -> None:
    before, after = run(gemm_us=60, all_reduce_us=40), run(gemm_us=60, all_reduce_us=after_us)
    found = compare(before, after, predicted_change_frac=predicted)
    assert found.prediction is not None
    assert found.prediction.verdict == verdict


def test_without_steps_the_windows_are_compared_and_nothing_is_concluded() -> None:
    before, after = run(gemm_us=60, all_reduce_us=40, marks=False), run(gemm_us=60, all_reduce_us=20, marks=False)
    found = compare(before, after, predicted_change_frac=-0.2)
    assert found.basis == "window"
    assert found.significant is None
    assert found.prediction is not None
    assert found.prediction.verdict == "inconclusive"
    assert any("whole windows" in caution for caution in found.cautions)


def test_a_summary_against_itself_changes_nothing_and_says_so() -> None:
    same = run(gemm_us=60, all_reduce_us=40)
    found = compare(same, same)
    assert found.change_ns == 0
    assert all(one.change_ns == 0 for one in (*found.terms, *found.kinds))
    assert "both are the same summary" in found.cautions


def test_pseudonyms_of_two_summaries_are_not_compared() -> None:
    before, after = run(gemm_us=60, all_reduce_us=40), run(gemm_us=20, all_reduce_us=40)
    assert before.top_kernels[0].name != after.top_kernels[0].name, "x1 is another kernel in each of them"
    found = compare(redact(before), redact(after))
    assert found.kernels == ()
    assert any("redacted" in caution for caution in found.cautions)


def test_names_of_our_words_are_compared_in_redacted_summaries_too() -> None:
    def with_copy(copy_us: float) -> TraceSummary:
        return summarise([trace_of(kernel("acme_gemm", 1, 60), memcpy(70, copy_us))])

    found = compare(redact(with_copy(10)), with_copy(20))
    assert [kernel.name for kernel in found.kernels] == ["Memcpy DtoD (Device -> Device)"]


def test_what_reading_a_side_warned_of_is_told() -> None:
    many = run(gemm_us=60, all_reduce_us=40).model_copy(update={"warnings": tuple(map("warning {}".format, range(10)))})
    cautions = compare(run(gemm_us=60, all_reduce_us=40), many).cautions
    assert "after: warning 7" in cautions
    assert "after: warning 8" not in cautions
    assert "after: 2 more warnings of reading are in its summary" in cautions


def test_another_mix_of_serving_phases_is_told() -> None:
    def serving(prefill: int, decode: int) -> TraceSummary:
        phases = (
            ServingPhase(phase="prefill", steps=prefill, total_ns=prefill, median_ns=1),
            ServingPhase(phase="decode", steps=decode, total_ns=decode, median_ns=1),
        )
        return run(gemm_us=60, all_reduce_us=40).model_copy(update={"serving_phases": phases})

    assert not any("mix" in caution for caution in compare(serving(10, 90), serving(12, 88)).cautions)
    assert any(
        caution.startswith("the mix of serving phases differs: decode is 90% of the iterations before, 60% after")
        for caution in compare(serving(10, 90), serving(40, 60)).cautions
    )
