"""Bring a store in line with the notes: embed what is new, drop what is gone, touch nothing else."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from knowledge_base.chunk import chunk_notes
from knowledge_base.embed import Embedder
from knowledge_base.history_files import bundled_history
from knowledge_base.history_match import History
from knowledge_base.history_words import HISTORY_COLLECTION, ChangeWords
from knowledge_base.index_chunks import sync_chunks
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
    done = sync_chunks(store, embedder, wanted)
    return SyncReport(
        notes=len(notes),
        chunks=len(wanted),
        embedded=done.embedded,
        updated=done.updated,
        deleted=done.deleted,
        unchanged=done.unchanged,
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
    # a folder of its own: two clients of one folder are two owners
    beside = path.with_name(f"{path.name}-history")
    words = ChangeWords(embedder, lambda: open_embedded(beside, embedder, collection=HISTORY_COLLECTION))
    return _synced(open_embedded(path, embedder), embedder, notes, history, words, today)


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
    words = ChangeWords(embedder, lambda: open_server(host, port, embedder, ssl=ssl, collection=HISTORY_COLLECTION))
    return _synced(open_server(host, port, embedder, ssl=ssl), embedder, notes, history, words, today)


def _synced(
    store: NoteStore,
    embedder: Embedder,
    notes: Sequence[Note],
    history: Callable[[], History],
    words: ChangeWords,
    today: Callable[[], date] | None,
) -> tuple[KnowledgeBase, SyncReport]:
    try:
        report = sync(store, embedder, notes)
    except BaseException:
        store.close()
        raise
    return KnowledgeBase(store, embedder, history, words, today=today), report
