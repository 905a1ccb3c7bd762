"""Chunk: the unit that is embedded, retrieved and cited; a section of a note, or a part of a long one."""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from knowledge_base.note import Note
from knowledge_base.rule import rule_of, to_text
from knowledge_base.staleness import outdated
from projector.catalog import chip

# all-MiniLM-L6-v2 reads 256 tokens and ignores the rest; formulas take a token for every two or three characters
MAX_CHUNK_CHARACTERS = 640


@dataclass(frozen=True)
class Chunk:
    """One passage with the front matter of its note.

    chunk_id changes when the passage does: note id, section slug, and the start of the content hash.
    order is the place of the passage within its note. rule: the note's inequality with its notation (`rule.to_text`).
    chips: catalogue ids of the chips whose figures the worked number uses. outdated: why the note is stale whatever the
    day. valid_until: an ISO date, or empty. superseded: another note supersedes it.
    """

    note_id: str
    title: str
    section: str
    slug: str
    order: int
    text: str
    levers: tuple[str, ...]
    causes: tuple[str, ...]
    phases: tuple[str, ...]
    hardware: tuple[str, ...]
    sources: tuple[str, ...]
    rule: str = ""
    aliases: tuple[str, ...] = ()
    chips: tuple[str, ...] = ()
    outdated: str = ""
    valid_until: str = ""
    superseded: bool = False

    @property
    def embedded_text(self) -> str:
        """What is embedded: the title gives a short passage its subject."""
        return f"{self.title}. {self.section}. {self.text}"

    @cached_property
    def content_hash(self) -> str:
        """sha256 of what is embedded: the same hash never needs a new vector."""
        return hashlib.sha256(self.embedded_text.encode()).hexdigest()

    @cached_property
    def record_hash(self) -> str:
        """sha256 of everything stored beside the vector: a changed lever or source updates it without embedding."""
        lists = [self.levers, self.causes, self.phases, self.hardware, self.sources]
        dated = [self.outdated, self.valid_until, self.superseded]
        stored = [self.content_hash, self.order, *lists, self.rule, self.aliases, self.chips, *dated]
        return hashlib.sha256(json.dumps(stored).encode()).hexdigest()

    @property
    def chunk_id(self) -> str:
        """Identifier a citation carries, for example `pipeline-bubble.claim.1f2e3d4c5b6a`."""
        return f"{self.note_id}.{self.slug}.{self.content_hash[:12]}"


def chunk_note(note: Note) -> tuple[Chunk, ...]:
    """The passages of a note in reading order: one a section, more where a section is long."""
    rule = to_text(rule_of(note))
    passages = [(section, text) for section in note.sections for text in _split(section.text)]
    return tuple(
        Chunk(
            note_id=note.id,
            title=note.title,
            section=section.heading,
            slug=section.slug,
            order=order,
            text=text,
            levers=note.levers,
            causes=note.causes,
            phases=note.phases,
            hardware=note.hardware,
            sources=tuple(source.text for source in note.sources),
            rule=rule,
            aliases=note.aliases,
            chips=tuple(chip(name).id for name in note.chips),
            outdated=outdated(note),
            valid_until=note.valid_until.isoformat() if note.valid_until else "",
            superseded=note.superseded_by is not None,
        )
        for order, (section, text) in enumerate(passages)
    )


def chunk_notes(notes: Iterable[Note]) -> dict[str, Chunk]:
    """The passages of all notes by chunk id. A passage a note repeats word for word in one section is kept once."""
    chunks: dict[str, Chunk] = {}
    for note in notes:
        for chunk in chunk_note(note):
            chunks.setdefault(chunk.chunk_id, chunk)
    return chunks


def _split(text: str) -> list[str]:
    """Parts of at most MAX_CHUNK_CHARACTERS: whole paragraphs where they fit, else sentences, words, or a cut."""
    return _pack(text, [r"\n\s*\n", r"(?<=[.;:])\s+", r"\s+"])


def _pack(text: str, separators: list[str]) -> list[str]:
    text = text.strip()
    if len(text) <= MAX_CHUNK_CHARACTERS:
        return [text] if text else []
    if not separators:
        return [text[start : start + MAX_CHUNK_CHARACTERS] for start in range(0, len(text), MAX_CHUNK_CHARACTERS)]
    joiner = "\n\n" if separators[0].startswith(r"\n") else " "
    packed: list[str] = []
    for piece in re.split(separators[0], text):
        for part in _pack(piece, separators[1:]):
            if packed and len(packed[-1]) + len(joiner) + len(part) <= MAX_CHUNK_CHARACTERS:
                packed[-1] += joiner + part
            else:
                packed.append(part)
    return packed
