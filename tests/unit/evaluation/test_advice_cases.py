"""Before/after cases: what a request may hold, how spellings are mapped, and the figures of invented cases."""

import json
from pathlib import Path

import pytest

from agents.evaluation.case_figures import observed_of
from agents.evaluation.case_report import case_report
from agents.evaluation.case_request import chip_of, model_of, request_of
from agents.evaluation.case_rows import Case, are_cases, read_cases
from agents.evaluation.rows import Unreadable
from agents.request import PlanRequest

INVENTED = Path(__file__).parents[2] / "data" / "advice_cases.jsonl"
PUBLISHED = Path(__file__).parents[4] / "shared" / "groundtruth" / "advice_cases.jsonl"


def _rows() -> list[dict]:
    return [json.loads(line) for line in INVENTED.read_text("utf-8").splitlines()]


def _case(**changed: object) -> Case:
    (case,) = read_cases(json.dumps({**_rows()[0], **changed}), "")
    assert isinstance(case, Case)
    return case


def test_the_outcome_reaches_no_request() -> None:
    row = _rows()[0]
    told = request_of(_case().given)
    other = {
        "title": "SECRET",
        "after": {"config": {"SECRET": 1}, "figures": {}},
        "effect": {"text": "SECRET", "metric": "SECRET", "improvement_ratio": 9.0, "outcome": "worse"},
        "bottleneck": {"cls": "memory", "cause": "SECRET"},
        "levers": ["SECRET"],
        "good_advice": "SECRET",
        "naive_advice": "SECRET",
        "request_fields": ["SECRET"],
    }
    assert request_of(_case(**{**row, **other}).given) == told


def test_what_has_no_field_stays_in_the_words() -> None:
    request = request_of(_case().given).request
    assert "enforce eager true" in request.symptom
    assert request.observed is not None
    assert request.observed.tokens_per_s == 80
    assert request.observed.duty_cycle_frac == pytest.approx(0.35)
    assert request.hardware == ("l4",)


def test_spellings_of_figures() -> None:
    observed, used = observed_of({"step_ms": 250, "mfu": 41.0, "peak_gib": 70, "outcome": "OOM in step 2", "odd": 1})
    assert observed.step_time_s == 0.25
    assert observed.mfu_frac == pytest.approx(0.41)
    assert observed.peak_memory_gb == pytest.approx(75.16, abs=0.01)
    assert observed.out_of_memory
    assert used == {"step_ms", "mfu", "peak_gib"}


@pytest.mark.parametrize(
    ("chip", "found"),
    [("TPU v6e", "tpu-v6e"), ("H100", "h100-sxm"), ("MI300X", "mi300x"), ("not stated (GPU)", None), ("GB10", None)],
)
def test_spellings_of_chips(chip: str, found: str | None) -> None:
    given = _case(hardware={"chip": chip, "count": 8, "nodes": 1, "link": ""}).given
    profile = chip_of(given)
    assert (profile.id if profile else None) == found


def test_a_model_by_its_size_is_assumed_aloud() -> None:
    known, nothing = model_of(_case(model={"name": "Llama-3-8B", "numbers": {}}).given)
    near, said = model_of(_case(model={"name": "house model", "numbers": {"params_b": 8.0}}).given)
    none, _ = model_of(_case(model={"name": "house model", "numbers": {"params_b": 5000}}).given)
    assert known is not None
    assert (known.name, nothing) == ("llama-3-8b", "")
    assert near is not None
    assert "stands in for 'house model'" in said
    assert none is None


def test_the_invented_cases_are_read_and_scored() -> None:
    report = case_report(list(read_cases(INVENTED.read_text("utf-8"), "invented")), with_cases=True)
    figures = {one.name: one.by_case.rate for one in report.figures}
    assert (report.n, report.n_sources) == (6, 3)
    assert figures["class"] == 1.0
    assert figures["change, all"] == 1.0
    assert all(isinstance(score.advice, tuple) and len(score.advice) <= 3 for score in report.cases)


def test_a_wrong_answer_is_a_miss_with_its_reason() -> None:
    wrong = _case(bottleneck={"cls": "memory", "cause": ""}, levers=["cp"])
    (miss,) = case_report([wrong]).misses
    assert {"class", "change"} <= set(miss.missed)
    assert "the case: memory" in miss.reason


def test_rows_that_are_no_cases_are_listed() -> None:
    broken = {name: value for name, value in _rows()[0].items() if name != "symptom"}
    found = list(read_cases(f"{json.dumps(broken)}\nnot json\n", "f"))
    assert all(isinstance(entry, Unreadable) for entry in found)
    assert [entry.n for entry in case_report(found).unreadable] == [1, 1]


def test_files_are_told_apart_by_their_first_row() -> None:
    assert are_cases(INVENTED.read_text("utf-8"))
    assert not are_cases('{"workload_id": "x"}')
    assert not are_cases("no json")


def test_a_request_of_a_case_is_valid_json() -> None:
    for row in read_cases(INVENTED.read_text("utf-8"), ""):
        assert isinstance(row, Case)
        request = request_of(row.given).request
        assert PlanRequest.model_validate_json(request.model_dump_json(exclude_unset=True)) == request


@pytest.mark.shared
def test_the_published_cases() -> None:
    report = case_report(list(read_cases(PUBLISHED.read_text("utf-8"), "published")))
    figures = {one.name: one.by_case for one in report.figures}
    assert report.unreadable == ()
    assert figures["class"].rate is not None
    assert figures["class"].rate >= 0.80
    assert (figures["change, or one the projector shows as good"].rate or 0) >= 0.70
    assert (figures["direction"].rate or 0) >= 0.80
    assert (figures["direction and size"].rate or 0) >= 0.60
