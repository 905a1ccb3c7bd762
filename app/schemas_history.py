"""Requests and answers of /v1/history and `shardwise history`. Texts of a case are their authors': data."""

from uuid import UUID

from pydantic import Field

from knowledge_base.history_parts import (
    ChipId,
    Kind,
    Origin,
    Outcome,
    PastArchitecture,
    PastLayout,
    PastLever,
    PastMove,
    PastSource,
    Task,
    Words,
)
from knowledge_base.past import PastCase, PastMatch
from projector.specs.bottleneck import Bottleneck, Cause
from projector.specs.plan import ComputeDtype, Phase
from projector.specs.record import MOST_DEVICES, MOST_SEQUENCES, MOST_TOKENS, Record


class MeasuredEffect(Record):
    """What was measured: one figure after, and before where a change is recorded.

    ratio and outcome may be left out where both figures stand and `metric` is the name of an objective, which says
    whether more is better.
    """

    metric: Words = Field(min_length=1, max_length=80, description="name of an objective, or what was measured")
    unit: Words = Field("", max_length=40, description="left out: the objective's")
    before: float | None = Field(None, ge=0)
    after: float | None = Field(None, ge=0)
    ratio: float | None = Field(None, gt=0, description="above 1 is better, also where lower is better")
    outcome: Outcome | None = None


class RecordedOutcome(Record):
    """An outcome to record: what ran or was changed, and what it measured.

    With plan_id and rank it is the outcome of that proposal: model, machine, sizes, both layouts and what moved are
    taken from the stored plan where they are not stated. Without, state at least phase, chip, chips and effect.
    """

    id: str | None = Field(
        None, pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=80, description="None: made from the content"
    )
    plan_id: UUID | None = Field(None, description="a plan of this service")
    rank: int | None = Field(None, ge=1, le=10, description="which of its proposals was adopted")
    phase: Phase | None = None
    task: Task | None = None
    model: Words | None = Field(None, min_length=1, max_length=120)
    architecture: PastArchitecture | None = Field(None, description="None: the catalogue's, where it has the model")
    chip: ChipId | None = None
    chips: int | None = Field(None, ge=1, le=MOST_DEVICES)
    framework: Words | None = Field(None, min_length=1, max_length=80)
    release: Words | None = Field(None, max_length=80)
    precision: ComputeDtype | None = None
    seq_len: int | None = Field(None, ge=1, le=MOST_TOKENS)
    global_batch: int | None = Field(None, ge=1, le=MOST_SEQUENCES)
    input_len: int | None = Field(None, ge=1, le=MOST_TOKENS)
    output_len: int | None = Field(None, ge=1, le=MOST_TOKENS)
    concurrency: int | None = Field(None, ge=1, le=MOST_SEQUENCES)
    bottleneck: Bottleneck | None = None
    cause: Cause | None = None
    layout: PastLayout | None = Field(None, description="what ran, or the arm after the change")
    baseline: PastLayout | None = Field(None, description="the arm before the change")
    levers: tuple[PastLever, ...] = Field((), max_length=12)
    moves: tuple[PastMove, ...] = Field((), max_length=12)
    effect: MeasuredEffect
    source: PastSource | None = Field(None, description="None: recorded here")
    supersedes: str | None = Field(None, max_length=100, description="id of the case this one replaces")


class CaseLinks(Record):
    """Where a case is found."""

    self: str

    @classmethod
    def of(cls, case_id: str) -> "CaseLinks":
        """The links of this case."""
        return cls(self=f"/v1/history/{case_id}")


class CaseAnswer(Record):
    """Answer of GET /v1/history/{id}: the case, and in one line."""

    case: PastCase
    text: str
    links: CaseLinks

    @classmethod
    def of(cls, case: PastCase) -> "CaseAnswer":
        """The answer of a case."""
        return cls(case=case, text=case.text, links=CaseLinks.of(case.id))


class HistoryAnswer(Record):
    """Answer of GET /v1/history: the cases that pass the filters, users' first, at most `limit` of them."""

    total: int = Field(description="cases that pass the filters")
    cases: tuple[CaseAnswer, ...]


class HistoryMatches(Record):
    """Answer of POST /v1/history/search: the nearest cases, exact matches first."""

    matches: tuple[PastMatch, ...]


class OutcomeAdded(Record):
    """Answer of POST /v1/history: the outcome is stored, and the next plan sees it."""

    id: str
    created: bool = Field(description="false: it replaced an outcome of the same id")
    note: str = Field("", description="what was replaced, and what was taken from the stored plan")
    case: PastCase
    links: CaseLinks


class OutcomesAdded(Record):
    """Answer of `shardwise history add --json`: one entry an outcome, in the order they were given."""

    added: tuple[OutcomeAdded, ...]


class OutcomeRemoved(Record):
    """Answer of DELETE /v1/history/{id}."""

    id: str
    removed: bool = True


class HistoryCount(Record):
    """How many cases share one value."""

    value: str
    cases: int


class HistorySummary(Record):
    """Answer of `shardwise history list --summary`: what is bundled and what users recorded."""

    total: int
    sources: int = Field(description="documents the cases were read from")
    by_origin: tuple[HistoryCount, ...]
    by_kind: tuple[HistoryCount, ...]
    by_task: tuple[HistoryCount, ...]
    by_chip: tuple[HistoryCount, ...]
    by_framework: tuple[HistoryCount, ...]
    by_outcome: tuple[HistoryCount, ...] = Field(description="of changes")


class HistoryFilter(Record):
    """Which cases are listed; None: any."""

    kind: Kind | None = None
    origin: Origin | None = None
    phase: Phase | None = None
    model: Words | None = Field(None, max_length=120, description="name or family, in any spelling")
    chip: ChipId | None = None
    lever: PastLever | None = None
    cause: Cause | None = None
    outcome: Outcome | None = None
