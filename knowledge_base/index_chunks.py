"""Bring a collection in line with the chunks it should hold: embed what is new, drop what is gone, keep the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from knowledge_base.chunk import Chunk
from knowledge_base.embed import Embedder
from knowledge_base.store import NoteStore


@dataclass(frozen=True)
class ChunkSync:
    """What a sync did, in chunks."""

    chunks: int
    embedded: int
    updated: int
    deleted: int

    @property
    def unchanged(self) -> int:
        """Chunks that were there as they should be."""
        return self.chunks - self.embedded - self.updated


def sync_chunks(store: NoteStore, embedder: Embedder, wanted: Mapping[str, Chunk]) -> ChunkSync:
    """Make the store hold exactly the wanted chunks, by id; one whose fields alone changed keeps its vector."""
    stored = store.record_hashes()
    new = [chunk for chunk_id, chunk in wanted.items() if chunk_id not in stored]
    changed = [
        chunk for chunk_id, chunk in wanted.items() if chunk_id in stored and stored[chunk_id] != chunk.record_hash
    ]
    gone = sorted(stored.keys() - wanted.keys())
    _embed_and_put(store, embedder, new)
    store.update(changed)
    store.delete(gone)
    return ChunkSync(chunks=len(wanted), embedded=len(new), updated=len(changed), deleted=len(gone))


def _embed_and_put(store: NoteStore, embedder: Embedder, chunks: Sequence[Chunk]) -> None:
    if chunks:
        store.put(chunks, embedder.embed([chunk.embedded_text for chunk in chunks]))
