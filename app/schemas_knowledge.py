"""Answers of /v1/knowledge and `shardwise knowledge`. Titles, quotes and sections are their authors' text: data."""

from typing import Literal

from pydantic import Field

from knowledge_base.index import SyncReport
from knowledge_base.note import Note
from knowledge_base.retrieve import RetrievedNote
from projector.specs.bottleneck import Cause
from projector.specs.plan import Phase
from projector.specs.record import Record


class NoteLinks(Record):
    """Where a note is found: as JSON, and as a page."""

    self: str
    page: str

    @classmethod
    def of(cls, note_id: str) -> "NoteLinks":
        """The links of this note."""
        return cls(self=f"/v1/knowledge/{note_id}", page=f"/knowledge/{note_id}")


class FoundNote(Record):
    """A note with the passage of it that is nearest to the query."""

    note_id: str
    chunk_id: str
    title: str
    quote: str = Field(description="the passage")
    sources: tuple[str, ...]
    similarity: float
    levers: tuple[str, ...]
    causes: tuple[str, ...]
    keyword_score: float = Field(description="BM25 with what the note is about; 0: no word is shared")
    embedding_rank: int | None = Field(description="place by similarity among all that qualify; None: beyond 30")
    keyword_rank: int | None = Field(description="place by keyword score; None: no word is shared")
    body_rank: int | None = Field(description="place by words shared with all it says; None: none is")
    filing_rank: int | None = Field(description="place by how early it lists a cause asked for; None: none was")
    chips: tuple[str, ...] = Field(description="whose figures its worked number uses")
    stale: str = Field(description="why the note is out of date; empty: it is not")
    links: NoteLinks

    @classmethod
    def of(cls, found: RetrievedNote) -> "FoundNote":
        """What retrieval found."""
        fields = {name: getattr(found, name) for name in cls.model_fields if name != "links"}
        return cls(**fields, links=NoteLinks.of(found.note_id))


class KnowledgeAnswer(Record):
    """Answer of GET /v1/knowledge: notes, nearest first; none where no note passes the filters."""

    query: str
    phase: Phase | None = Field(description="None: both phases were searched")
    causes: tuple[Cause, ...]
    levers: tuple[str, ...]
    hardware_kind: Literal["gpu", "tpu"] | None
    notes: tuple[FoundNote, ...]


class IndexReport(Record):
    """What bringing the store in line with the notes did, in passages."""

    notes: int
    chunks: int
    embedded: int
    updated: int
    deleted: int
    unchanged: int
    rebuilt_because: str | None = Field(description="why the store was emptied first; None where it was not")
    past_cases: int = Field(description="past optimisations that stand beside the notes, recorded ones included")

    @classmethod
    def of(cls, report: SyncReport, past_cases: int) -> "IndexReport":
        """The report of a sync or a rebuild."""
        synced = {name: getattr(report, name) for name in cls.model_fields if name != "past_cases"}
        return cls(**synced, past_cases=past_cases)


class NoteAnswer(Record):
    """Answer of GET /v1/knowledge/{note_id}."""

    note: Note
    origin: Literal["bundled", "user"]
    links: NoteLinks


class NoteAdded(Record):
    """Answer of POST /v1/knowledge: the note is stored; where `index` is there it can be retrieved from now on."""

    id: str
    created: bool = Field(description="false: it replaced a user note of the same id")
    links: NoteLinks
    index: IndexReport | None = Field(description="None: another process owns the store and has not read the note yet")
