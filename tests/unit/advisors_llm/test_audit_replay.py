"""A run is replayed from its record to the same bytes: by the rules, by a model, in another process."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from llm_examples import TRACE, LeverNotes, answer, question_of, summary
from scripted_endpoint import Endpoint

from agents.advisors.llm import LlmAdvisor
from agents.planning import graph
from agents.request import PlanRequest
from app.errors import NotFound
from app.replay import replay
from app.settings import Settings
from app.wiring import TracePlanner, advisor_of, audit_of, close_advisor

ROOT = Path(__file__).parents[3]
LIE = "The step gets 41.7 % faster."


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as running:
        yield running


def planned(settings: Settings, wanted: str, plan_id: UUID):
    advisor = advisor_of(settings)
    try:
        planner = TracePlanner(LeverNotes, settings, advisor, audit=audit_of(settings))
        return planner.plan(PlanRequest.model_validate({"advisor": wanted}), [TRACE], None, plan_id).result
    finally:
        close_advisor(advisor)


def in_another_process(data_dir: Path, plan_id: UUID) -> tuple[int, dict]:
    command = [sys.executable, "-m", "app.cli", "audit", "replay", str(plan_id), "--json", "--data-dir", str(data_dir)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    return ran.returncode, json.loads(ran.stdout)


def test_a_plan_by_rules_replays_to_the_same_bytes_also_in_another_process(tmp_path):
    settings, plan_id = Settings(data_dir=tmp_path), uuid4()
    planned(settings, "rules", plan_id)
    log = audit_of(settings)
    assert log is not None
    kinds = [record.kind for record in log.records(plan_id)]
    assert kinds[:2] == ["request", "analysis"]
    assert kinds[-1] == "result"
    assert {"retrieval", "history", "advice"} <= set(kinds)
    assert log.check().unbroken
    code, document = in_another_process(tmp_path, plan_id)
    assert (code, document["identical"], document["changed_questions"]) == (0, True, 0)


def test_a_plan_by_a_model_with_lies_and_a_repair_replays_without_the_model(tmp_path, endpoint):
    question, plan_id = question_of(summary()), uuid4()
    endpoint.script[:] = [answer(question, rationale=LIE), answer(question, rationale=LIE)]
    settings = Settings(
        data_dir=tmp_path, llm_model="openai/scripted", llm_api_base=endpoint.address, llm_api_key="sk-mine"
    )
    result = planned(settings, "auto", plan_id)
    assert len(result.provenance.dropped_sentences) == 1
    log = audit_of(settings)
    assert log is not None
    records = log.records(plan_id)
    calls = [record.data for record in records if record.kind == "model_call"]
    assert [LIE in call["reply"] for call in calls] == [True, True]
    assert "BEGIN PROBLEMS" in calls[1]["user"]
    (advice,) = (record.data for record in records if record.kind == "advice")
    assert advice["dropped_sentences"] == [LIE]
    assert [len(problems) > 0 for problems in advice["problems_of_each_turn"]] == [True, True]
    assert "sk-mine" not in "".join(path.read_text() for path in (tmp_path / "audit").glob("*.jsonl"))
    replayed = replay(log, plan_id)
    assert (replayed.identical, replayed.model_calls, replayed.changed_questions) == (True, 2, 0)
    code, document = in_another_process(tmp_path, plan_id)
    assert (code, document["identical"]) == (0, True)
    assert len(endpoint.bodies) == 2


def test_a_failure_of_the_endpoint_replays_as_the_failure_it_was(tmp_path, endpoint):
    endpoint.script[:] = [401]
    settings, plan_id = Settings(data_dir=tmp_path, llm_model="openai/x", llm_api_base=endpoint.address), uuid4()
    result = planned(settings, "auto", plan_id)
    assert "refused the key" in result.provenance.fallback_reason
    log = audit_of(settings)
    assert log is not None
    assert replay(log, plan_id).identical


def test_a_replay_with_other_versions_says_which(tmp_path, monkeypatch):
    settings, plan_id = Settings(data_dir=tmp_path), uuid4()
    planned(settings, "rules", plan_id)
    log = audit_of(settings)
    assert log is not None
    now = graph._versions()
    monkeypatch.setattr(graph, "_versions", lambda: {**now, "catalogue_sha256": "0" * 64})
    replayed = replay(log, plan_id)
    assert (replayed.identical, replayed.differing_parts) == (False, ("provenance",))
    assert [(change.name, change.now) for change in replayed.changed_versions] == [("catalogue_sha256", "0" * 64)]


def test_a_run_that_failed_is_recorded_and_has_nothing_to_compare_with(tmp_path):
    settings, plan_id = Settings(data_dir=tmp_path), uuid4()
    planner = TracePlanner(LeverNotes, settings, advisor_of(settings), audit=audit_of(settings))
    request = PlanRequest.model_validate({"workload": {"phase": "training", "model": "no-such-model"}})
    with pytest.raises(Exception, match="no-such-model"):
        planner.plan(request, [], None, plan_id)
    log = audit_of(settings)
    assert log is not None
    assert [record.kind for record in log.records(plan_id)] == ["request", "failed"]
    with pytest.raises(NotFound, match="without an answer"):
        replay(log, plan_id)


def test_the_switch_turns_it_off(tmp_path):
    settings = Settings(data_dir=tmp_path, audit=False)
    assert audit_of(settings) is None
    planned(settings, "rules", uuid4())
    assert not (tmp_path / "audit").exists()


def test_a_recording_leaves_the_advisor_as_it_was(endpoint):
    advisor = LlmAdvisor("openai/scripted", api_base=endpoint.address)
    assert advisor.through(lambda model: model) is not advisor
    advisor.close()
