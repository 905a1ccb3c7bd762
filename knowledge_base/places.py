"""The rankings of the notes that pass a filter: by meaning, by words, and by what they are filed under."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from knowledge_base.chunk import Chunk
from knowledge_base.fuse import ranks
from knowledge_base.keyword import Subject, bm25
from projector.specs.bottleneck import CAUSES, Cause

Ranking = Literal["hybrid", "embedding", "keyword"]
# a word anywhere in a note, and the order of its causes, say less of its subject than its title (chosen on the tuning
# part and the regression questions: more gains nothing)
MINOR_WEIGHT = 0.3
_NUMBERS = "worked-number"


@dataclass(frozen=True)
class Filed:
    """A note that passes the filter: its first passage, which has all its front matter, and its words."""

    chunk: Chunk
    subject: Subject
    body: Subject


@dataclass(frozen=True)
class Places:
    """The rankings of one search, note id -> place; and the BM25 score with what a note is about."""

    embedding: Mapping[str, int]
    keyword: Mapping[str, int]
    body: Mapping[str, int]
    filing: Mapping[str, int]
    keyword_score: Mapping[str, float]

    def weighted(self, ranking: Ranking) -> tuple[tuple[float, Mapping[str, int]], ...]:
        """The rankings that count, with their weights."""
        if ranking == "embedding":
            return ((1.0, self.embedding),)
        if ranking == "keyword":
            return ((1.0, self.keyword),)
        minor = ((MINOR_WEIGHT, self.body), (MINOR_WEIGHT, self.filing))
        return (1.0, self.embedding), (1.0, self.keyword), *minor


def filed_notes(passages: Iterable[Chunk]) -> dict[str, Filed]:
    """Notes by id from all their passages, which come note by note in reading order."""
    found: dict[str, list[Chunk]] = {}
    for chunk in passages:
        found.setdefault(chunk.note_id, []).append(chunk)
    return {note: Filed(parts[0], _subject(parts), _body(parts)) for note, parts in found.items()}


def placed(query: str, filed: Mapping[str, Filed], likeness: Mapping[str, float], causes: Sequence[Cause]) -> Places:
    """Every ranking. likeness: similarity of the nearest passage, for the notes the embedding reaches."""
    by_subject = bm25(query, {note: one.subject for note, one in filed.items()})
    return Places(
        embedding=ranks(likeness),
        keyword=ranks(by_subject),
        body=ranks(bm25(query, {note: one.body for note, one in filed.items()})),
        filing=_filing(filed, causes),
        keyword_score=by_subject,
    )


def _subject(passages: Sequence[Chunk]) -> Subject:
    first = passages[0]
    claim = " ".join(chunk.text for chunk in passages if chunk.slug == first.slug)
    return Subject(first.title, first.aliases, (*first.levers, *first.causes), claim)


def _body(passages: Sequence[Chunk]) -> Subject:
    """All the note says but its worked number."""
    return Subject(passages[0].title, (), (), " ".join(chunk.text for chunk in passages if chunk.slug != _NUMBERS))


def _filing(filed: Mapping[str, Filed], causes: Sequence[Cause]) -> Mapping[str, int]:
    """By how early a note lists one of the causes: authors put what it is about first. None asked for: no ranking."""
    if not causes:
        return {}
    listed = {note: [one.chunk.causes.index(c) for c in causes if c in one.chunk.causes] for note, one in filed.items()}
    return ranks({note: -float(min(places, default=len(CAUSES))) for note, places in listed.items()})
