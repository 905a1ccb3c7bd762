"""Passages that proposals may cite: about the diagnosed cause, and about each lever some candidate pulls."""

from collections.abc import Sequence

from agents.advisors.protocol import LeverView, Note
from agents.causes import CAUSE_PHRASE
from agents.findings import Citation, Diagnosis
from agents.planning.job import Job
from agents.planning.state import HardwareKind, Knowledge
from projector.levers import levers_for
from projector.specs.bottleneck import Cause
from projector.specs.hardware import HardwareProfile

NOTES_ON_CAUSE = 4
NOTES_ON_A_LEVER = 2
MOST_LEVERS = 6


def notes_for(job: Job, diagnosis: Diagnosis, pulled: Sequence[LeverView], knowledge: Knowledge) -> tuple[Note, ...]:
    """Retrieved notes, nearest first, each passage once. `pulled`: levers in the order of expected impact."""
    if not pulled:
        return ()
    limit = f"{job.phase} limited by {CAUSE_PHRASE[diagnosis.cause]}"
    causes: tuple[Cause, ...] = () if diagnosis.cause == "unknown" else (diagnosis.cause,)
    relieving = tuple(lever.name for lever in levers_for(diagnosis.cause, job.phase))
    found: dict[str, Note] = {}
    if causes:
        _search(f"{limit}: {diagnosis.bottleneck} bottleneck", relieving, causes, NOTES_ON_CAUSE, job, knowledge, found)
    ordered = sorted(pulled, key=lambda lever: lever.name not in relieving)
    for lever in ordered[:MOST_LEVERS]:
        query = f"{lever.name.replace('_', ' ')}: {lever.summary} {limit}"
        _search(query, (lever.name,), (), NOTES_ON_A_LEVER, job, knowledge, found)
    return tuple(sorted(found.values(), key=lambda note: (-note.citation.similarity, note.citation.chunk_id)))


def _noted_kind(hardware: HardwareProfile | None) -> HardwareKind | None:
    """The kind of the chip where notes are filed under it; None searches notes of every kind."""
    if hardware is None or hardware.kind not in ("gpu", "tpu"):
        return None
    return "gpu" if hardware.kind == "gpu" else "tpu"


def _search(
    query: str,
    levers: tuple[str, ...],
    causes: tuple[Cause, ...],
    k: int,
    job: Job,
    knowledge: Knowledge,
    found: dict[str, Note],
) -> None:
    kind = _noted_kind(job.hardware)
    for note in knowledge.search(query, phase=job.phase, causes=causes, levers=levers, hardware_kind=kind, k=k):
        known = found.get(note.chunk_id)
        if known is None or known.citation.similarity < note.similarity:
            citation = Citation(
                note_id=note.note_id,
                chunk_id=note.chunk_id,
                title=note.title,
                quote=note.quote,
                sources=note.sources,
                similarity=note.similarity,
            )
            found[note.chunk_id] = Note.model_validate(
                {"citation": citation, "levers": note.levers, "causes": note.causes}
            )
