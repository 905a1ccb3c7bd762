"""What users ask of the history: list it, search it, count it, record an outcome and take one back."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from uuid import UUID

from pydantic import ValidationError

from agents.findings import PlanResult
from agents.planning.history import numbers_of
from agents.request import PlanRequest
from app.answers import answer_of
from app.errors import NotFound
from app.outcomes import OutcomeShelf
from app.recording import case_of
from app.schemas_history import (
    CaseAnswer,
    CaseLinks,
    HistoryAnswer,
    HistoryCount,
    HistoryFilter,
    HistorySummary,
    OutcomeAdded,
    RecordedOutcome,
)
from app.storage.jobs import Job
from app.validation import InvalidRequest, field_problems, parse
from knowledge_base.history_match import History
from knowledge_base.history_parts import PastArchitecture
from knowledge_base.past import PastCase, PastQuestion
from projector import catalog
from projector.errors import InvalidDescription, ShardwiseError
from projector.names import normalise

DEFAULT_LIMIT, MOST_LISTED = 20, 500
NOT_STATED = "not stated"


def listed(history: History, wanted: HistoryFilter, limit: int = DEFAULT_LIMIT) -> HistoryAnswer:
    """The cases that pass the filters, users' first, then by id."""
    found = [case for case in history.cases if _passes(case, wanted)]
    ordered = sorted(found, key=lambda case: (case.origin != "user", case.id))
    return HistoryAnswer(total=len(found), cases=tuple(CaseAnswer.of(case) for case in ordered[:limit]))


def filter_of(values: Mapping[str, object]) -> HistoryFilter:
    """The filters of a request. InvalidRequest: names nobody knows."""
    try:
        return HistoryFilter.model_validate(values)
    except ValidationError as error:
        raise InvalidRequest(tuple(field_problems(error, HistoryFilter))) from error


def question_of(values: Mapping[str, object]) -> PastQuestion:
    """A question of the command line. InvalidRequest as `filter_of`."""
    stated = {name: value for name, value in values.items() if value is not None}
    try:
        return with_numbers(PastQuestion.model_validate(stated))
    except ValidationError as error:
        raise InvalidRequest(tuple(field_problems(error, PastQuestion))) from error


def with_numbers(question: PastQuestion) -> PastQuestion:
    """The question with the catalogue's numbers of its model, where they are not stated and the catalogue has it."""
    if question.model is None or question.architecture != PastArchitecture():
        return question
    try:
        known = catalog.architecture(question.model)
    except ShardwiseError:
        return question
    return question.model_copy(update={"model": known.name, "architecture": numbers_of(known)})


def summary_of(history: History) -> HistorySummary:
    """How many cases there are, by what."""
    cases = history.cases
    changes = [case for case in cases if case.kind == "change"]
    return HistorySummary(
        total=len(cases),
        sources=len({case.source.text for case in cases}),
        by_origin=_counts(case.origin for case in cases),
        by_kind=_counts(case.kind for case in cases),
        by_task=_counts(case.task for case in cases),
        by_chip=_counts(case.chip or case.chip_stated or None for case in cases),
        by_framework=_counts(case.framework for case in cases),
        by_outcome=_counts(case.effect.outcome for case in changes),
    )


def record(
    shelf: OutcomeShelf, outcome: RecordedOutcome, now: datetime, stored: tuple[PlanRequest, PlanResult] | None
) -> OutcomeAdded:
    """Check and store an outcome; the next plan sees it. Errors as `case_of` and `OutcomeShelf.add`."""
    return keep(shelf, *case_of(outcome, now, stored))


def keep(shelf: OutcomeShelf, case: PastCase, note: str) -> OutcomeAdded:
    """Store a case that was checked. Errors as `OutcomeShelf.add`."""
    created = shelf.add(case)
    notes = ("" if created else f"replaced the outcome {case.id}", note)
    return OutcomeAdded(
        id=case.id, created=created, note="; ".join(filter(None, notes)), case=case, links=CaseLinks.of(case.id)
    )


def plan_behind(job: Job | None, plan_id: UUID) -> tuple[PlanRequest, PlanResult]:
    """Request and result of a stored plan. NotFound: there is none. InvalidDescription: it is not done."""
    if job is None:
        raise NotFound(f"no plan {plan_id}", hint="state the outcome without plan_id")
    if job.state != "done":
        raise InvalidDescription(f"the plan {plan_id} is {job.state}, so it has no proposals")
    return parse(PlanRequest, job.request), answer_of(job)


def _passes(case: PastCase, wanted: HistoryFilter) -> bool:
    if wanted.model is not None:
        named = {normalise(name) for name in (case.model, case.family) if name}
        if normalise(wanted.model) not in named:
            return False
    if wanted.lever is not None and wanted.lever not in case.levers:
        return False
    if wanted.outcome is not None and wanted.outcome != case.effect.outcome:
        return False
    alike = ("kind", "origin", "phase", "chip", "cause")
    return all(getattr(wanted, name) in (None, getattr(case, name)) for name in alike)


def _counts(values: Iterable[str | None]) -> tuple[HistoryCount, ...]:
    """The most frequent first."""
    counted = Counter(value or NOT_STATED for value in values)
    ordered = sorted(counted.items(), key=lambda entry: (-entry[1], entry[0]))
    return tuple(HistoryCount(value=value, cases=cases) for value, cases in ordered)
