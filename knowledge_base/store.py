"""NoteStore: chunks and their vectors in Chroma, embedded with one owner or on a server.

An embedded store has exactly one owner process: a second one is refused through a file lock, because two writers
break the vectors of both without an error. The store is an index over the notes and may be erased at any time:
a store that cannot be read, or was built by another embedding model, is replaced by an empty one and says why.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from knowledge_base import chroma
from knowledge_base.chunk import Chunk
from knowledge_base.embed import Embedder
from knowledge_base.stored import LISTS, chunk_of, chunks_of, metadata_of
from projector.errors import KnowledgeUnavailable, StoreBusy

COLLECTION = "shardwise-notes"
# raise when stored fields or their meaning change: older stores are rebuilt
SCHEMA_VERSION = 2
_BATCH = 500


@dataclass(frozen=True)
class Match:
    """A chunk with its cosine similarity to the query, in [-1, 1]."""

    chunk: Chunk
    similarity: float


class NoteStore:
    """One collection of chunks. Made by `open_embedded` or `open_server`; close it to let another process in.

    reset_reason: why the store is empty although there was one before; None where it was opened as it was left.
    Safe across threads. All methods raise KnowledgeUnavailable when Chroma fails or the store is closed.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        connect: Callable[[], Any],
        erase: Callable[[], None],
        release: Callable[[], None] = lambda: None,
        owned: bool = False,
        collection: str = COLLECTION,
    ) -> None:
        """`connect` gives a Chroma client, `erase` removes the stored collection, `release` lets other owners in.

        owned: nobody else writes to the collection.
        """
        self._embedder_name = embedder.name
        self._dim = embedder.dim
        self._connect = connect
        self._erase = erase
        self._release = release
        self._owned = owned
        self._changes = 0
        self._name = collection
        self._lock = threading.RLock()
        self._client: Any = None
        self._collection: Any = None
        self.reset_reason: str | None = None
        self._open()

    def __enter__(self) -> "NoteStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release Chroma and the lock; closing twice does nothing more."""
        with self._lock:
            client, self._client, self._collection = self._client, None, None
            if client is not None:
                chroma.close(client)
            self._release()

    @property
    def revision(self) -> int | None:
        """Grows with every change; None where other processes may write as well."""
        return self._changes if self._owned else None

    def count(self) -> int:
        """Chunks stored."""
        with self._opened() as collection:
            return int(collection.count())

    def record_hashes(self) -> dict[str, str]:
        """chunk id -> record hash of everything stored."""
        with self._opened() as collection:
            stored = collection.get(include=["metadatas"])
        return {i: metadata["record_hash"] for i, metadata in zip(stored["ids"], stored["metadatas"], strict=True)}

    def put(self, chunks: Sequence[Chunk], vectors: NDArray[np.float32]) -> None:
        """Store chunks with their vectors, shape [len(chunks), dim]; what has the same id is replaced."""
        with self._changing() as collection:
            for part, rows in zip(_batches(chunks), _batches(vectors), strict=True):
                collection.upsert(
                    ids=[chunk.chunk_id for chunk in part],
                    embeddings=np.stack(rows),
                    documents=[chunk.text for chunk in part],
                    metadatas=[metadata_of(chunk) for chunk in part],
                )

    def update(self, chunks: Sequence[Chunk]) -> None:
        """Replace what is stored beside the vectors of chunks that are there already."""
        with self._changing() as collection:
            for part in _batches(chunks):
                # update() merges keys, and a list that became empty is a key that must go
                collection.update(
                    ids=[chunk.chunk_id for chunk in part],
                    metadatas=[dict.fromkeys(LISTS) | metadata_of(chunk) for chunk in part],
                )

    def delete(self, chunk_ids: Sequence[str]) -> None:
        """Remove chunks by id."""
        with self._changing() as collection:
            for part in _batches(chunk_ids):
                collection.delete(ids=part)

    def query(self, vector: NDArray[np.float32], *, where: Mapping[str, Any], limit: int) -> list[Match]:
        """The chunks nearest to a vector of shape [dim] among those that pass `where`, at most `limit`, nearest first.

        `where` is a Chroma metadata filter; it is applied before the search, so it never costs results.
        """
        with self._opened() as collection:
            found = collection.query(
                query_embeddings=vector[None, :],
                n_results=limit,
                where=dict(where),
                include=["documents", "metadatas", "distances"],
            )
        rows = zip(found["documents"][0], found["metadatas"][0], found["distances"][0], strict=True)
        matches = [Match(chunk_of(metadata, text), _similarity(distance)) for text, metadata, distance in rows]
        return sorted(matches, key=lambda match: (-match.similarity, match.chunk.chunk_id))

    def select(self, where: Mapping[str, Any]) -> list[Chunk]:
        """Every chunk that passes `where`, a Chroma metadata filter, in order of note and place."""
        with self._opened() as collection:
            found = collection.get(where=dict(where), include=["documents", "metadatas"])
        return sorted(chunks_of(found), key=lambda chunk: (chunk.note_id, chunk.order))

    def get_chunk(self, chunk_id: str) -> Chunk | None:
        """The chunk with an id, or None."""
        with self._opened() as collection:
            found = collection.get(ids=[chunk_id], include=["documents", "metadatas"])
        chunks = chunks_of(found)
        return chunks[0] if chunks else None

    def get_note(self, note_id: str) -> tuple[Chunk, ...]:
        """The chunks of a note in reading order; empty where there is no such note."""
        with self._opened() as collection:
            found = collection.get(where={"note_id": note_id}, include=["documents", "metadatas"])
        return tuple(sorted(chunks_of(found), key=lambda chunk: chunk.order))

    def reset(self, reason: str) -> None:
        """Replace the store by an empty one; `reason` is kept in reset_reason."""
        with self._lock, chroma.translated():
            self._changes += 1
            if self._client is not None:
                chroma.close(self._client)
                self._client = self._collection = None
            self._erase()
            self._client = self._connect()
            self._collection = self._create()
            self.reset_reason = reason

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        with self._lock:
            if self._collection is None:
                raise KnowledgeUnavailable("the knowledge store is closed", hint="open it again")
            with chroma.translated():
                yield self._collection

    @contextmanager
    def _changing(self) -> Iterator[Any]:
        with self._opened() as collection:
            try:
                yield collection
            finally:
                # a change that failed half-way is a change
                self._changes += 1

    def _open(self) -> None:
        """Attach to what is there, or replace it."""
        try:
            try:
                with chroma.translated():
                    reason = self._attach()
            except chroma.ChromaFailed as error:
                reason = f"it could not be read ({error.__cause__})"
            if reason:
                self.reset(reason)
        except BaseException:
            self.close()
            raise

    def _attach(self) -> str | None:
        """Open the collection, made where there is none. Returns why its vectors cannot be trusted, or None."""
        self._client = self._connect()
        self._collection = chroma.find_collection(self._client, self._name)
        if self._collection is None:
            self._collection = self._create()
            return None
        made = self._collection.metadata or {}
        if made.get("schema") != SCHEMA_VERSION:
            return f"it was written with schema {made.get('schema')}, this version writes {SCHEMA_VERSION}"
        if (made.get("embedder"), made.get("dim")) != (self._embedder_name, self._dim):
            return f"it was embedded by {made.get('embedder')}, now {self._embedder_name} is used"
        return self._damage()

    def _create(self) -> Any:
        identity = {"schema": SCHEMA_VERSION, "embedder": self._embedder_name, "dim": self._dim}
        return chroma.make_collection(self._client, self._name, identity)

    def _damage(self) -> str | None:
        """Read every vector once, and find one by itself: a store two writers shared fails here."""
        total = self._collection.count()
        read = 0
        first = None
        while read < total:
            part = self._collection.get(include=["embeddings"], limit=_BATCH, offset=read)
            vectors = np.asarray(part["embeddings"], dtype=np.float32)
            if vectors.shape != (len(part["ids"]), self._dim) or not len(vectors) or not np.isfinite(vectors).all():
                return f"{total} chunks are listed and not all of them have a vector"
            first = vectors[:1] if first is None else first
            read += len(vectors)
        if first is not None and not self._collection.query(query_embeddings=first, n_results=1)["ids"][0]:
            return "a stored vector does not find itself"
        return None


def open_embedded(path: Path, embedder: Embedder, *, collection: str = COLLECTION) -> NoteStore:
    """The store in a folder, made where there is none; this process owns it until it is closed or ends.

    StoreBusy: another owner. InvalidDescription: the folder holds something else. KnowledgeUnavailable: not writable.
    """
    path = path.resolve()
    # beside the folder, so that erasing the store leaves the lock alone
    lock = FileLock(path.parent / f"{path.name}.lock", thread_local=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise StoreBusy(
            f"another process owns the knowledge store {path}",
            hint="use that process (one API process owns the store), stop it, give this one another path, "
            "or run `chroma run` and let all processes use the server",
        ) from error
    except OSError as error:
        raise KnowledgeUnavailable(f"the knowledge store {path} cannot be written: {error}") from error

    def connect() -> Any:
        chroma.store_files(path)
        return chroma.embedded_client(path)

    return NoteStore(
        embedder,
        connect=connect,
        erase=lambda: chroma.erase_files(path),
        release=lock.release,
        owned=True,
        collection=collection,
    )


def open_server(
    host: str, port: int, embedder: Embedder, *, ssl: bool = False, collection: str = COLLECTION
) -> NoteStore:
    """The store on a Chroma server, shared by any number of processes. KnowledgeUnavailable: no server answers."""

    def connect() -> Any:
        return chroma.server_client(host, port, ssl=ssl)

    def erase() -> None:
        client = connect()
        try:
            chroma.drop_collection(client, collection)
        finally:
            chroma.close(client)

    return NoteStore(embedder, connect=connect, erase=erase, collection=collection)


def _similarity(distance: float) -> float:
    """Cosine similarity from Chroma's cosine distance, without the float32 noise that would decide ties."""
    return round(min(1.0, max(-1.0, 1.0 - distance)), 6)


def _batches(items: Iterable[Any]) -> Iterator[list[Any]]:
    iterator = iter(items)
    while batch := list(islice(iterator, _BATCH)):
        yield batch
