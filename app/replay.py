"""Replaying a run from the audit log: the same planning with the recorded replies, notes and history."""

from collections.abc import Sequence
from uuid import UUID

from pydantic import Field

from agents.advisors.llm import LlmAdvisor
from agents.advisors.protocol import Advisor
from agents.advisors.recording import MODEL_CALL, NOTES, PAST, ReplayedKnowledge, ReplayedModel
from agents.advisors.rules import RulesAdvisor
from agents.planning.audit_notes import of_result
from agents.request import PlanRequest
from app.audit import AuditLog, AuditRecord, Json
from app.errors import NotFound
from projector.specs.record import Record
from traces.summary_types import TraceSummary


class VersionChange(Record):
    """A version that is not what it was when the run was recorded; '' where one side has none."""

    name: str
    recorded: str
    now: str


class ReplayAnswer(Record):
    """Whether a run gives the same answer again, byte for byte, and where not, what differs."""

    id: UUID
    identical: bool
    recorded_sha256: str
    replayed_sha256: str
    differing_parts: tuple[str, ...] = Field((), description="keys of the answer that differ")
    changed_versions: tuple[VersionChange, ...] = ()
    model_calls: int = Field(description="recorded questions to a language model")
    changed_questions: int = Field(description="questions, to the model or the notes, that are not the recorded ones")


def replay(log: AuditLog, run_id: UUID) -> ReplayAnswer:
    """Run a recorded plan again without a model, a network or a knowledge store.

    NotFound: no such run, or it never came to an answer. Errors of planning as in `run_plan`.
    """
    from agents.planning.graph import run_plan

    records = _last_attempt(log.records(run_id))
    asked, recorded = _data(records, "request"), _data(records, "result")
    if not asked or not recorded:
        raise NotFound(f"plan {run_id} was recorded without an answer, so there is nothing to compare with")
    calls = _data(records, MODEL_CALL)
    request, digest = PlanRequest.model_validate(asked[0]["request"]), asked[0]["summary_sha256"]
    summary = TraceSummary.model_validate_json(log.summary(digest)) if digest is not None else None
    model = ReplayedModel(asked[0]["llm_model"] or "none", calls)
    advisor: Advisor = RulesAdvisor()
    if asked[0]["llm_model"] is not None:
        advisor = LlmAdvisor(asked[0]["llm_model"]).through(lambda _: model)
    knowledge = ReplayedKnowledge(_data(records, NOTES), _data(records, PAST))
    result = run_plan(request, summary, knowledge=knowledge, advisor=advisor, redact=asked[0]["redact"])
    again, before = of_result(result), recorded[0]
    names = sorted(before["parts"].keys() | again["parts"].keys())
    return ReplayAnswer(
        id=run_id,
        identical=again["sha256"] == before["sha256"],
        recorded_sha256=before["sha256"],
        replayed_sha256=again["sha256"],
        differing_parts=tuple(name for name in names if before["parts"].get(name) != again["parts"].get(name)),
        changed_versions=_changed(before["versions"], again["versions"]),
        model_calls=len(calls),
        changed_questions=model.changed + knowledge.changed,
    )


def _last_attempt(records: Sequence[AuditRecord]) -> Sequence[AuditRecord]:
    """A job that was cut off is run again under its id: the lines from its last start."""
    starts = [place for place, record in enumerate(records) if record.kind == "request"]
    return records[starts[-1] :] if starts else records


def _data(records: Sequence[AuditRecord], kind: str) -> list[Json]:
    return [record.data for record in records if record.kind == kind]


def _changed(before: dict[str, str], now: dict[str, str]) -> tuple[VersionChange, ...]:
    names = sorted(before.keys() | now.keys())
    return tuple(
        VersionChange(name=name, recorded=before.get(name, ""), now=now.get(name, ""))
        for name in names
        if before.get(name) != now.get(name)
    )
