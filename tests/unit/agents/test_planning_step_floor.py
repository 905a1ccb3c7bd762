"""The floor of a decoding step: weights read once. It decides only where the operators leave the step open."""

import pytest
from planning_examples import summary_of, sure

from agents.findings import Diagnosis
from agents.planning.analyzer import diagnose
from agents.planning.resolve import resolve
from agents.planning.step_floor import with_step_floor
from agents.request import PlanRequest
from traces.summary_types import Implied, TraceSummary

# 8.03B parameters, of which 7.50B are multiplied: 15.0 GB in bf16 at 3.35 TB/s take 4.5 ms
REQUEST = PlanRequest.model_validate(
    {
        "workload": {"model": "llama-3.1-8b", "phase": "serving", "precision": "bf16"},
        "cluster": {"chip": "h100-sxm", "chips": 1},
        "current_plan": {"phase": "serving"},
    }
)
SERVING = Implied(phase=sure("serving"), is_transformer_lm=sure(True))


def judged(summary: TraceSummary) -> tuple[Diagnosis, list[str]]:
    diagnosis, assumptions = with_step_floor(diagnose(summary), resolve(REQUEST, summary))
    return diagnosis, [assumption.field for assumption in assumptions]


def step(window_ms: int, **kinds: int) -> TraceSummary:
    """A step of so many milliseconds, all busy, of which only `kinds` are told apart."""
    named = sum(kinds.values())
    return summary_of(
        window_ms=window_ms,
        compute_ms=window_ms,
        unclassified_ms=window_ms - named,
        kinds={"other": window_ms - named, **kinds},
        implied=SERVING,
    )


def scores(diagnosis: Diagnosis) -> dict[str, float]:
    return dict.fromkeys(diagnosis.scores, 0.0)


@pytest.mark.parametrize(("window_ms", "share"), [(5, 0.9), (8, 0.56)])
def test_a_step_that_its_weights_explain_is_limited_by_hbm(window_ms: int, share: float) -> None:
    summary = step(window_ms)
    open_ = diagnose(summary).model_copy(update={"scores": scores(diagnose(summary))})
    found, _ = with_step_floor(open_, resolve(REQUEST, summary))
    assert (found.bottleneck, found.cause) == ("memory", "hbm_bandwidth")
    assert found.scores["memory"] == pytest.approx(share, abs=0.02)
    assert "class memory" in found.summary


def test_a_long_step_is_not_explained_by_them() -> None:
    summary = step(50)
    open_ = diagnose(summary).model_copy(update={"scores": scores(diagnose(summary))})
    assert with_step_floor(open_, resolve(REQUEST, summary)) == (open_, ())


def test_a_step_shorter_than_its_weights_in_bf16_has_narrower_ones() -> None:
    summary = step(3)
    open_ = diagnose(summary).model_copy(update={"scores": scores(diagnose(summary))})
    found, assumptions = with_step_floor(open_, resolve(REQUEST, summary))
    assert found.bottleneck == "memory"
    assert "in fp8" in found.evidence[-1].claim
    assert [one.value for one in assumptions] == ["fp8"]


def test_where_operators_decide_the_floor_says_nothing() -> None:
    summary = step(8, gemm=7)
    before = diagnose(summary)
    assert judged(summary) == (before, [])
