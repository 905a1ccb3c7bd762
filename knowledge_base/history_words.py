"""What was changed, in words: the second collection of the store, asked only where a job tells its symptom in words.

Published layouts are figures and are compared as figures. A change has words too (levers, cause, settings that moved),
and a symptom told by a person finds it by them.
"""

import threading
from collections.abc import Callable

from knowledge_base.chunk import Chunk
from knowledge_base.embed import Embedder
from knowledge_base.history_match import History
from knowledge_base.index_chunks import sync_chunks
from knowledge_base.past import PastCase
from knowledge_base.store import NoteStore

HISTORY_COLLECTION = "shardwise-history"


class ChangeWords:
    """The changes of a history as vectors. Opened, and brought in line with the history, when it is first asked.

    Safe across threads. StoreBusy, KnowledgeUnavailable as the store's.
    """

    def __init__(self, embedder: Embedder, open_store: Callable[[], NoteStore]) -> None:
        self._embedder = embedder
        self._open_store = open_store
        self._lock = threading.Lock()
        self._store: NoteStore | None = None
        self._synced: History | None = None

    def nearness(self, words: str, history: History) -> dict[str, float]:
        """Cosine of the words and each change, in [-1, 1], by id of the case."""
        with self._lock:
            store = self._store = self._store or self._open_store()
            chunks = {chunk.chunk_id: chunk for chunk in map(chunk_of, history.cases) if chunk is not None}
            if history is not self._synced:
                sync_chunks(store, self._embedder, chunks)
                self._synced = history
            if not chunks:
                return {}
            vector = self._embedder.embed([words])[0]
            found = store.query(vector, where={"section": "change"}, limit=len(chunks))
        return {match.chunk.note_id: match.similarity for match in found}

    def close(self) -> None:
        """Give the collection back."""
        with self._lock:
            if self._store is not None:
                self._store.close()
            self._store = self._synced = None


def chunk_of(case: PastCase) -> Chunk | None:
    """What is embedded of a change; None for a published layout."""
    if case.kind != "change":
        return None
    against = (case.cause or case.bottleneck or "a cause not stated").replace("_", " ")
    pulled = ", ".join(case.levers).replace("_", " ") or "no lever named"
    return Chunk(
        note_id=case.id,
        title=f"{case.phase} limited by {against}",
        section="change",
        slug="change",
        order=0,
        text=f"{pulled}. {case.change}",
        levers=case.levers,
        causes=(case.cause,) if case.cause is not None else (),
        phases=(case.phase,),
        hardware=(),
        sources=(case.source.text,),
    )
