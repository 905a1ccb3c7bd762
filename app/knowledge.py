"""What users ask of the knowledge base: search over one phase or both, and adding a note."""

from collections.abc import Sequence
from typing import Any, cast

from app.schemas_knowledge import FoundNote, IndexReport, KnowledgeAnswer, NoteAdded, NoteLinks
from app.wiring import KnowledgeOwner
from knowledge_base.note import HardwareKind, parse_note
from knowledge_base.retrieve import KnowledgeBase
from projector.errors import StoreBusy
from projector.specs.bottleneck import Cause
from projector.specs.plan import Phase

DEFAULT_K = 5


def search(
    knowledge: KnowledgeBase,
    query: str,
    *,
    phase: str | None = None,
    causes: Sequence[str] = (),
    levers: Sequence[str] = (),
    hardware_kind: str | None = None,
    k: int = DEFAULT_K,
) -> KnowledgeAnswer:
    """The k best notes for the query; without a phase those of training and serving together.

    InvalidDescription, UnknownName and KnowledgeUnavailable as `KnowledgeBase.search`.
    """
    # names come from outside: the knowledge base itself refuses those that nobody knows
    filters: dict[str, Any] = {"phase": phase, "causes": causes, "levers": levers, "hardware_kind": hardware_kind}
    found = knowledge.search(query, k=k, **filters)
    return KnowledgeAnswer(
        query=query,
        phase=cast(Phase | None, phase),
        causes=cast(tuple[Cause, ...], tuple(causes)),
        levers=tuple(levers),
        hardware_kind=cast(HardwareKind | None, hardware_kind),
        notes=tuple(FoundNote.of(note) for note in found),
    )


def add_note(owner: KnowledgeOwner, text: str, *, store_may_be_busy: bool = False) -> NoteAdded:
    """Check, store and index a note. Where indexing fails nothing is kept.

    store_may_be_busy: keep the note without indexing it where another process owns the store.
    Errors as `parse_note`, `NoteShelf.adding` and `KnowledgeOwner.sync`.
    """
    note = parse_note(text, origin="sent")
    # opened before the note is there, so that the report of the sync is about the note
    owned = _owns_store(owner, or_raise=not store_may_be_busy)
    with owner.shelf.adding(note, text) as created:
        index = IndexReport.of(owner.sync(), len(owner.outcomes.history().cases)) if owned else None
    return NoteAdded(id=note.id, created=created, links=NoteLinks.of(note.id), index=index)


def _owns_store(owner: KnowledgeOwner, *, or_raise: bool) -> bool:
    try:
        owner.get()
    except StoreBusy:
        if or_raise:
            raise
        return False
    return True
