"""KnowledgeBase: the notes that bear on a diagnosis, best first, each with its nearest passage and its sources.

The front matter is filtered first. What passes is ranked by the cosine of query and passage; by the words shared with
what the note says it is about, and with all it says (BM25); and by how early it lists a cause asked for. The rankings
are fused by reciprocal rank.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knowledge_base.chunk import Chunk
from knowledge_base.embed import Embedder
from knowledge_base.fuse import reciprocal_rank
from knowledge_base.history_files import bundled_history
from knowledge_base.history_match import History
from knowledge_base.history_words import ChangeWords
from knowledge_base.keyword import expanded
from knowledge_base.note import HARDWARE_KINDS, PHASES, HardwareKind
from knowledge_base.past import PastMatch, PastQuestion
from knowledge_base.places import Filed, Places, Ranking, filed_notes, placed
from knowledge_base.rule import NoteRule, from_text
from knowledge_base.staleness import stale_on
from knowledge_base.store import Match, NoteStore
from projector.errors import InvalidDescription, UnknownName
from projector.levers import LEVERS
from projector.specs.bottleneck import CAUSES, Cause
from projector.specs.plan import Phase

MAX_QUERY_CHARACTERS = 2_000
MAX_RESULTS = 50
# notes the ranking by embedding reaches down to; one further away is not found by what it means (30 and 50 are alike)
_DEPTH = 30
_PASSAGES_PER_NOTE = 4
# filters whose notes are remembered; planning uses some tens
_MOST_FILTERS = 256


@dataclass(frozen=True)
class RetrievedNote:
    """A note with its nearest passage. `quote` and `title` are the author's text: data, never instructions or markup.

    similarity: cosine of query and passage, in [-1, 1]. rule: the note's inequality with its notation; None where the
    store holds none. keyword_score: BM25 with what the note is about, 0 where no word is shared. embedding_rank,
    keyword_rank, body_rank, filing_rank: its place in each ranking, 1 the best; None where it has none. chips: whose
    figures its worked number uses; () for none in particular. stale: why the note is out of date; empty: it is not.
    """

    note_id: str
    chunk_id: str
    title: str
    quote: str
    sources: tuple[str, ...]
    similarity: float
    levers: tuple[str, ...]
    causes: tuple[str, ...]
    rule: NoteRule | None = None
    keyword_score: float = 0.0
    embedding_rank: int | None = None
    keyword_rank: int | None = None
    body_rank: int | None = None
    filing_rank: int | None = None
    chips: tuple[str, ...] = ()
    stale: str = ""


class KnowledgeBase:
    """Retrieval over a store that has been synced (`index.open_knowledge_base`). Safe across threads."""

    def __init__(
        self,
        store: NoteStore,
        embedder: Embedder,
        history: Callable[[], History] = bundled_history,
        words: ChangeWords | None = None,
        *,
        today: Callable[[], date] | None = None,
    ) -> None:
        """`history`: the past optimisations as they are now, asked for again at each call of `past`; `words`: the
        collection of what they changed, in words; None: only figures are compared.

        today: the day notes may be out of date on; None: no note is stale by the day alone.
        """
        self._store = store
        self._embedder = embedder
        self._history = history
        self._words = words
        self._today = today
        self._known: dict[str, dict[str, Filed]] = {}
        self._known_at: int | None = None

    def __enter__(self) -> "KnowledgeBase":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the store back; an embedded one can then be opened by another process."""
        self._store.close()
        if self._words is not None:
            self._words.close()

    @property
    def store(self) -> NoteStore:
        """The store, for `index.sync` and `index.rebuild`."""
        return self._store

    def search(
        self,
        query: str,
        *,
        phase: Phase | None,
        causes: Sequence[Cause] = (),
        levers: Sequence[str] = (),
        hardware_kind: HardwareKind | None = None,
        k: int = 3,
        ranking: Ranking = "hybrid",
    ) -> tuple[RetrievedNote, ...]:
        """The k best notes for `query` among those of the phase, the hardware kind, and any of the causes or levers.

        phase None: of any. Without causes and levers all notes of the phase qualify; a cause no note names ("unknown")
        qualifies none by itself. One result a note, with its nearest passage. ranking: "embedding" and "keyword" rank
        by one alone, for comparison. Superseded notes come last. Equal places: by similarity, then by id. Empty where
        nothing qualifies.
        InvalidDescription: empty or long query, k out of range. UnknownName: a phase, cause, lever or kind nobody
        knows. KnowledgeUnavailable: store or embedding model cannot be used.
        """
        _check(query, phase, causes, levers, hardware_kind, k)
        conditions = _conditions(phase, causes, levers, hardware_kind)
        filed = self._filed(_joined("$and", conditions))
        if not filed:
            return ()
        words = expanded(query)
        vector = self._embedder.embed([words])[0]
        nearest = self._nearest(vector, conditions, max(k, _DEPTH))
        likeness = {note: match.similarity for note, match in nearest.items()}
        places = placed(words, filed, likeness, causes)
        score = reciprocal_rank(places.weighted(ranking))

        def order(note: str) -> tuple[bool, float, float, str]:
            # a note that was added while this search ran may have a passage and not be filed yet
            superseded = note in filed and filed[note].chunk.superseded
            return superseded, -score[note], -likeness.get(note, -1.0), note

        chosen = sorted(score, key=order)[:k]
        far = [note for note in chosen if note not in nearest]
        nearest |= self._nearest(vector, [*conditions, {"note_id": {"$in": far}}], len(far)) if far else {}
        today = self._today() if self._today is not None else None
        found = (note for note in chosen if note in nearest)
        return tuple(_retrieved(nearest[note], places, today) for note in found)

    def _filed(self, condition: dict[str, Any]) -> dict[str, Filed]:
        """The notes that pass; remembered while the store stays as it is, where this process alone changes it."""
        revision = self._store.revision
        if revision is None:
            return filed_notes(self._store.select(condition))
        if self._known_at != revision or len(self._known) >= _MOST_FILTERS:
            self._known, self._known_at = {}, revision
        known, key = self._known, json.dumps(condition)
        if key not in known:
            known[key] = filed_notes(self._store.select(condition))
        return known[key]

    def _nearest(self, vector: NDArray[np.float32], conditions: list[dict[str, Any]], notes: int) -> dict[str, Match]:
        """The nearest passage of each of the nearest notes, by note id."""
        limit = notes * _PASSAGES_PER_NOTE
        best: dict[str, Match] = {}
        while len(best) < notes:
            # a long note may fill a whole answer with its passages: ask again without the notes already found
            others = [{"note_id": {"$nin": list(best)}}] if best else []
            matches = self._store.query(vector, where=_joined("$and", conditions + others), limit=limit)
            for match in matches:
                best.setdefault(match.chunk.note_id, match)
            if len(matches) < limit:
                break
        return dict(list(best.items())[:notes])

    def past(self, question: PastQuestion, *, k: int = 5) -> tuple[PastMatch, ...]:
        """The k past optimisations nearest to a job, exact matches first; see `History.past`.

        KnowledgeUnavailable: a recorded outcome cannot be read any more.
        """
        history, words = self._history(), question.words.strip()
        near = self._words.nearness(words, history) if words and self._words is not None else {}
        return history.past(question, k=k, near=near)

    def get_chunk(self, chunk_id: str) -> Chunk:
        """The passage a citation names. UnknownName: no passage has this id (any more)."""
        found = self._store.get_chunk(chunk_id)
        if found is None:
            raise UnknownName("chunk", chunk_id, self._store.record_hashes())
        return found

    def get_note(self, note_id: str) -> tuple[Chunk, ...]:
        """The passages of a note in reading order. UnknownName: no note has this id."""
        found = self._store.get_note(note_id)
        if not found:
            raise UnknownName("note", note_id, {chunk_id.split(".")[0] for chunk_id in self._store.record_hashes()})
        return found


def _check(
    query: str, phase: str | None, causes: Sequence[str], levers: Sequence[str], hardware_kind: str | None, k: int
) -> None:
    if not query.strip():
        raise InvalidDescription("the query is empty", hint="say what is slow, for example 'exposed all-reduce'")
    if len(query) > MAX_QUERY_CHARACTERS:
        raise InvalidDescription(f"query of {len(query)} characters > {MAX_QUERY_CHARACTERS}")
    if any("\ud800" <= character <= "\udfff" for character in query):
        raise InvalidDescription("the query holds half a character (a lone surrogate)")
    if not 1 <= k <= MAX_RESULTS:
        raise InvalidDescription(f"k {k} is not within 1 to {MAX_RESULTS}")
    named: tuple[tuple[str, Sequence[str], Sequence[str]], ...] = (
        ("phase", [phase] if phase is not None else [], PHASES),
        ("cause", causes, CAUSES),
        ("lever", levers, [lever.name for lever in LEVERS]),
        ("hardware kind", [hardware_kind] if hardware_kind is not None else [], HARDWARE_KINDS),
    )
    for kind, given, known in named:
        for name in given:
            if name not in known:
                raise UnknownName(kind, name, known)


def _conditions(
    phase: str | None, causes: Sequence[str], levers: Sequence[str], hardware_kind: str | None
) -> list[dict[str, Any]]:
    """The front-matter filter as Chroma conditions that must all hold: phase, kind, and any cause or lever."""
    # every passage has a place; Chroma refuses an empty filter
    conditions: list[dict[str, Any]] = [{"order": {"$gte": 0}} if phase is None else {"phases": {"$contains": phase}}]
    if hardware_kind is not None:
        conditions.append({"hardware": {"$contains": hardware_kind}})
    either = [{"causes": {"$contains": name}} for name in causes]
    either += [{"levers": {"$contains": name}} for name in levers]
    if either:
        conditions.append(_joined("$or", either))
    return conditions


def _joined(operator: str, conditions: list[dict[str, Any]]) -> dict[str, Any]:
    """Chroma refuses $and and $or of a single condition."""
    return conditions[0] if len(conditions) == 1 else {operator: conditions}


def _retrieved(match: Match, places: Places, today: date | None) -> RetrievedNote:
    chunk = match.chunk
    return RetrievedNote(
        note_id=chunk.note_id,
        chunk_id=chunk.chunk_id,
        title=chunk.title,
        quote=chunk.text,
        sources=chunk.sources,
        similarity=match.similarity,
        levers=chunk.levers,
        causes=chunk.causes,
        rule=from_text(chunk.rule) if chunk.rule else None,
        keyword_score=places.keyword_score.get(chunk.note_id, 0.0),
        embedding_rank=places.embedding.get(chunk.note_id),
        keyword_rank=places.keyword.get(chunk.note_id),
        body_rank=places.body.get(chunk.note_id),
        filing_rank=places.filing.get(chunk.note_id),
        chips=chunk.chips,
        stale=stale_on(today, outdated=chunk.outdated, valid_until=chunk.valid_until),
    )
