"""Bring a store in line with the notes: embed what is new, drop what is gone, touch nothing else."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from knowledge_base.chunk import Chunk, chunk_notes
from knowledge_base.embed import Embedder
from knowledge_base.history_files import bundled_history
from knowledge_base.history_match import History
from knowledge_base.note import NOTES_FOLDER, Note, read_notes
from knowledge_base.retrieve import KnowledgeBase
from knowledge_base.store import NoteStore, open_embedded, open_server


@dataclass(frozen=True)
class SyncReport:
    """What a sync did, in chunks. rebuilt_because: why the store was emptied first; None where it was not."""

    notes: int
    chunks: int
    embedded: int
    updated: int
    deleted: int
    unchanged: int
    rebuilt_because: str | None


def sync(store: NoteStore, embedder: Embedder, notes: Iterable[Note]) -> SyncReport:
    """Make the store hold exactly the chunks of `notes`; only passages it lacks are embedded.

    A passage whose front matter alone changed keeps its vector (`updated`).
    """
    notes = tuple(notes)
    wanted = chunk_notes(notes)
    stored = store.record_hashes()
    new = [chunk for chunk_id, chunk in wanted.items() if chunk_id not in stored]
    changed = [
        chunk for chunk_id, chunk in wanted.items() if chunk_id in stored and stored[chunk_id] != chunk.record_hash
    ]
    gone = sorted(stored.keys() - wanted.keys())
    _embed_and_put(store, embedder, new)
    store.update(changed)
    store.delete(gone)
    return SyncReport(
        notes=len(notes),
        chunks=len(wanted),
        embedded=len(new),
        updated=len(changed),
        deleted=len(gone),
        unchanged=len(wanted) - len(new) - len(changed),
        rebuilt_because=store.reset_reason,
    )


def rebuild(
    store: NoteStore, embedder: Embedder, notes: Iterable[Note], *, reason: str = "it was asked for"
) -> SyncReport:
    """Empty the store and embed every note again."""
    store.reset(reason)
    return sync(store, embedder, notes)


def open_knowledge_base(
    path: Path,
    embedder: Embedder,
    *,
    folders: Sequence[Path] = (NOTES_FOLDER,),
    history: Callable[[], History] = bundled_history,
    today: Callable[[], date] | None = None,
) -> tuple[KnowledgeBase, SyncReport]:
    """The notes of the folders, indexed in an embedded store at `path` that this process owns until it is closed.

    today: see `KnowledgeBase`. Errors as `note.read_notes` and `store.open_embedded`.
    """
    notes = read_notes(*folders)
    return _synced(open_embedded(path, embedder), embedder, notes, history, today)


def connect_knowledge_base(
    host: str,
    port: int,
    embedder: Embedder,
    *,
    ssl: bool = False,
    folders: Sequence[Path] = (NOTES_FOLDER,),
    history: Callable[[], History] = bundled_history,
    today: Callable[[], date] | None = None,
) -> tuple[KnowledgeBase, SyncReport]:
    """The notes of the folders, indexed on a Chroma server. Errors as `note.read_notes` and `store.open_server`."""
    notes = read_notes(*folders)
    return _synced(open_server(host, port, embedder, ssl=ssl), embedder, notes, history, today)


def _synced(
    store: NoteStore,
    embedder: Embedder,
    notes: Sequence[Note],
    history: Callable[[], History],
    today: Callable[[], date] | None,
) -> tuple[KnowledgeBase, SyncReport]:
    try:
        report = sync(store, embedder, notes)
    except BaseException:
        store.close()
        raise
    return KnowledgeBase(store, embedder, history, today=today), report


def _embed_and_put(store: NoteStore, embedder: Embedder, chunks: Sequence[Chunk]) -> None:
    if chunks:
        store.put(chunks, embedder.embed([chunk.embedded_text for chunk in chunks]))
