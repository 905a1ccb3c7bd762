"""Passages that proposals may cite: about the diagnosed cause, and about each lever some candidate pulls."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agents.advisors.protocol import Candidate, LeverView, Note
from agents.causes import CAUSE_PHRASE
from agents.findings import Citation, Diagnosis
from agents.planning.job import Job
from agents.planning.state import HardwareKind, Knowledge
from knowledge_base.rule import NoteRule
from projector.levers import levers_for
from projector.specs.bottleneck import Cause
from projector.specs.hardware import HardwareProfile

NOTES_ON_CAUSE = 6
NOTES_ON_A_LEVER = 4
MOST_LEVERS = 6
MOST_SHOWN = 16
FABRIC_WORDS: dict[HardwareKind | None, str] = {"tpu": " on a TPU torus", "gpu": " on GPUs", None: ""}


@dataclass(frozen=True)
class Retrieved:
    """Passages, the nearest first, each once; and the inequality of each note, by note id, where it has one."""

    notes: tuple[Note, ...] = ()
    rules: Mapping[str, NoteRule] = field(default_factory=dict)


def notes_for(job: Job, diagnosis: Diagnosis, pulled: Sequence[LeverView], knowledge: Knowledge) -> Retrieved:
    """What the knowledge base holds on the cause and on the levers. `pulled`: in the order of expected impact."""
    if not pulled:
        return Retrieved()
    # the chip's name finds notes about this chip
    fabric = FABRIC_WORDS[_noted_kind(job.hardware)] + (f" ({job.hardware.id})" if job.hardware else "")
    limit = f"{job.phase} limited by {CAUSE_PHRASE[diagnosis.cause]}{fabric}"
    causes: tuple[Cause, ...] = () if diagnosis.cause == "unknown" else (diagnosis.cause,)
    relieving = tuple(lever.name for lever in levers_for(diagnosis.cause, job.phase))
    found: dict[str, Note] = {}
    rules: dict[str, NoteRule] = {}
    if causes:
        _search(
            f"{limit}: {diagnosis.bottleneck} bottleneck",
            relieving,
            causes,
            job.notes_per_search or NOTES_ON_CAUSE,
            job,
            knowledge,
            found,
            rules,
        )
    ordered = sorted(pulled, key=lambda lever: lever.name not in relieving)
    for lever in ordered[:MOST_LEVERS]:
        query = f"{lever.name.replace('_', ' ')}: {lever.summary} {limit}"
        _search(query, (lever.name,), (), job.notes_per_search or NOTES_ON_A_LEVER, job, knowledge, found, rules)
    notes = sorted(found.values(), key=lambda note: (-note.citation.similarity, note.citation.chunk_id))
    return Retrieved(tuple(notes), rules)


def shown_notes(retrieved: Retrieved, candidates: Iterable[Candidate]) -> tuple[Note, ...]:
    """What an advisor may cite, nearest first: passages that take a stand on a candidate, then the nearest others."""
    standing = {one.chunk_id for candidate in candidates for one in candidate.standings}
    ordered = sorted(retrieved.notes, key=lambda note: note.citation.chunk_id not in standing)
    shown = {note.citation.chunk_id for note in ordered[: max(MOST_SHOWN, len(standing))]}
    return tuple(note for note in retrieved.notes if note.citation.chunk_id in shown)


def _noted_kind(hardware: HardwareProfile | None) -> HardwareKind | None:
    """The kind of the chip where notes are filed under it; None searches notes of every kind."""
    if hardware is None or hardware.kind not in ("gpu", "tpu"):
        return None
    return "gpu" if hardware.kind == "gpu" else "tpu"


def _other_hardware(chips: Sequence[str], hardware: HardwareProfile | None) -> str:
    """Whose figures a worked number uses, where the job runs on another chip; empty where nothing is to be said."""
    if not chips or hardware is None or hardware.id in chips:
        return ""
    return f"worked with figures of {', '.join(chips)}, not of {hardware.id}"


def _search(
    query: str,
    levers: tuple[str, ...],
    causes: tuple[Cause, ...],
    k: int,
    job: Job,
    knowledge: Knowledge,
    found: dict[str, Note],
    rules: dict[str, NoteRule],
) -> None:
    kind = _noted_kind(job.hardware)
    for note in knowledge.search(query, phase=job.phase, causes=causes, levers=levers, hardware_kind=kind, k=k):
        if note.rule is not None:
            rules[note.note_id] = note.rule
        known = found.get(note.chunk_id)
        if known is None or known.citation.similarity < note.similarity:
            citation = Citation(
                note_id=note.note_id,
                chunk_id=note.chunk_id,
                title=note.title,
                quote=note.quote,
                sources=note.sources,
                similarity=note.similarity,
                stale=note.stale,
                other_hardware=_other_hardware(note.chips, job.hardware),
            )
            found[note.chunk_id] = Note.model_validate(
                {"citation": citation, "levers": note.levers, "causes": note.causes}
            )
