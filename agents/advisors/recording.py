"""Questions to a model and to the knowledge base, written down as they are asked, and answered again from the record.

A recording stands around the real thing and changes nothing. A replay stands in its place: it gives the recorded
answers in their order, to whatever is asked, and counts questions that are not the recorded ones.
"""

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import TypeAdapter

from agents.advisors.llm_client import ModelCalls, Reply
from agents.advisors.protocol import AdvisorFailed
from agents.findings import LlmUsage
from agents.planning.state import Json, Knowledge
from knowledge_base.past import PastMatch, PastQuestion
from knowledge_base.retrieve import RetrievedNote

MODEL_CALL = "model_call"
NOTES, PAST = "retrieval", "history"
_notes = TypeAdapter(tuple[RetrievedNote, ...])
_matches = TypeAdapter(tuple[PastMatch, ...])

Record = Callable[[str, Json], None]


class RecordingModel:
    """A model whose questions and replies are written down, failures included."""

    def __init__(self, inner: ModelCalls, record: Record) -> None:
        self.model = inner.model
        self._inner = inner
        self._record = record

    def ask(self, system: str, user: str, schema: dict[str, Any], *, timeout_s: float | None = None) -> Reply:
        """The inner model's reply."""
        call: Json = {"model": self.model, "system": system, "user": user, "schema": schema}
        try:
            reply = self._inner.ask(system, user, schema, timeout_s=timeout_s)
        except AdvisorFailed as error:
            usage = error.usage.model_dump(mode="json") if error.usage is not None else None
            self._record(MODEL_CALL, {**call, "error": error.message, "usage": usage})
            raise
        answer = {"reply": reply.text, "truncated": reply.truncated, "usage": reply.usage.model_dump(mode="json")}
        self._record(MODEL_CALL, {**call, **answer})
        return reply

    def close(self) -> None:
        """The inner model's."""
        self._inner.close()


class ReplayedModel:
    """Recorded replies in their order. changed: questions that differ from the recorded ones, or have no record."""

    def __init__(self, model: str, calls: Sequence[Json]) -> None:
        self.model = model
        self.changed = 0
        self._calls = list(calls)

    def ask(self, system: str, user: str, schema: dict[str, Any], *, timeout_s: float | None = None) -> Reply:
        """The next recorded reply, or the recorded failure; AdvisorFailed where the record ends."""
        del timeout_s
        if not self._calls:
            self.changed += 1
            raise AdvisorFailed("the record holds no further reply")
        call = self._calls.pop(0)
        if (call["system"], call["user"], call["schema"]) != (system, user, schema):
            self.changed += 1
        usage = LlmUsage.model_validate(call["usage"]) if call["usage"] is not None else None
        if "error" in call:
            raise AdvisorFailed(call["error"], usage=usage)
        assert usage is not None
        return Reply(call["reply"], call["truncated"], usage)

    def close(self) -> None:
        """Nothing is open."""


class RecordingKnowledge:
    """A knowledge base whose questions and findings are written down, with ids and scores."""

    def __init__(self, inner: Knowledge, record: Record) -> None:
        self._inner = inner
        self._record = record

    def search(self, query: str, **filters: Any) -> tuple[RetrievedNote, ...]:
        """The inner base's notes."""
        found = self._inner.search(query, **filters)
        asked = {name: list(value) if isinstance(value, tuple) else value for name, value in filters.items()}
        scores = [{"chunk": note.chunk_id, "similarity": note.similarity} for note in found]
        whole = _notes.dump_python(found, mode="json")
        self._record(NOTES, {"query": query, "filters": asked, "found": scores, "notes": whole})
        return found

    def past(self, question: PastQuestion, *, k: int = 5) -> tuple[PastMatch, ...]:
        """The inner base's matches."""
        found = self._inner.past(question, k=k)
        scores = [{"case": match.case.id, "match": match.match, "similarity": match.similarity} for match in found]
        whole = [match.model_dump(mode="json", round_trip=True) for match in found]
        self._record(PAST, {"question": _plain(question), "k": k, "found": scores, "matches": whole})
        return found


class ReplayedKnowledge:
    """Recorded findings in their order; nothing where the record ends. changed: as of `ReplayedModel`."""

    def __init__(self, searches: Sequence[Json], pasts: Sequence[Json]) -> None:
        self.changed = 0
        self._searches = list(searches)
        self._pasts = list(pasts)

    def search(self, query: str, **filters: Any) -> tuple[RetrievedNote, ...]:
        """The next recorded notes."""
        del filters
        if not self._searches:
            self.changed += 1
            return ()
        asked = self._searches.pop(0)
        self.changed += asked["query"] != query
        return _notes.validate_python(asked["notes"])

    def past(self, question: PastQuestion, *, k: int = 5) -> tuple[PastMatch, ...]:
        """The next recorded matches."""
        del k
        if not self._pasts:
            self.changed += 1
            return ()
        asked = self._pasts.pop(0)
        self.changed += asked["question"] != _plain(question)
        return _matches.validate_python(asked["matches"])


def _plain(question: PastQuestion) -> Json:
    document: Json = TypeAdapter(PastQuestion).dump_python(question, mode="json")
    return {name: sorted(value) if isinstance(value, list) else value for name, value in document.items()}
