import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from knowledge_base.chunk import chunk_notes
from knowledge_base.embed import Embedder
from knowledge_base.note import parse_note
from knowledge_base.store import NoteStore, open_embedded, open_server
from projector.errors import InvalidDescription, KnowledgeUnavailable, StoreBusy

NoteText = Callable[..., str]
OPEN_AND_PRINT = """
import sys
from pathlib import Path
import numpy as np
from knowledge_base.store import open_embedded
from projector.errors import StoreBusy
class Embedder:
    name, dim = "hash-64", 64
try:
    open_embedded(Path(sys.argv[1]), Embedder()).close()
    print("opened")
except StoreBusy as error:
    print("busy:", error.hint)
"""


def filled(path: Path, embedder: Embedder, text: str) -> NoteStore:
    store = open_embedded(path, embedder)
    chunks = tuple(chunk_notes([parse_note(text, origin="n.md")]).values())
    store.put(chunks, embedder.embed([chunk.embedded_text for chunk in chunks]))
    return store


def test_chunks_come_back_as_they_went_in(tmp_path: Path, embedder: Any, note_text: NoteText) -> None:
    chunks = chunk_notes([parse_note(note_text(), origin="n.md")])
    filled(tmp_path / "kb", embedder, note_text()).close()
    with open_embedded(tmp_path / "kb", embedder) as store:
        assert store.reset_reason is None
        assert store.count() == 5
        assert store.record_hashes() == {chunk.chunk_id: chunk.record_hash for chunk in chunks.values()}
        assert store.get_note("wider-doors") == tuple(chunks.values())
        first = next(iter(chunks.values()))
        assert store.get_chunk(first.chunk_id) == first
        assert store.get_chunk("nobody.claim.000000000000") is None
        assert store.get_note("nobody") == ()


def test_query_is_filtered_first_and_ordered_by_cosine(tmp_path: Path, embedder: Any, note_text: NoteText) -> None:
    with filled(tmp_path / "kb", embedder, note_text()) as store:
        vector = embedder.embed(["Wider doors. When it hurts. Doors cost wall."])[0]
        matches = store.query(vector, where={"phases": {"$contains": "training"}}, limit=10)
        assert matches[0].chunk.slug == "when-it-hurts"
        assert matches[0].similarity == pytest.approx(1, abs=1e-5)
        assert [m.similarity for m in matches] == sorted((m.similarity for m in matches), reverse=True)
        assert store.query(vector, where={"phases": {"$contains": "serving"}}, limit=10) == []


def test_update_keeps_the_vector_and_drops_a_list_that_became_empty(
    tmp_path: Path, embedder: Any, note_text: NoteText
) -> None:
    with filled(tmp_path / "kb", embedder, note_text()) as store:
        chunks = tuple(chunk_notes([parse_note(note_text(("[tensor_parallelism]", "[]")), origin="n.md")]).values())
        embedder.calls.clear()
        store.update(chunks)
        assert store.get_note("wider-doors") == chunks
        assert embedder.calls == []


def test_a_second_owner_is_refused_with_a_hint(tmp_path: Path, embedder: Any) -> None:
    path = tmp_path / "kb"
    with open_embedded(path, embedder):
        with pytest.raises(StoreBusy, match="owns the knowledge store") as caught:
            open_embedded(path, embedder)
        assert "chroma run" in caught.value.hint
        assert run(path).startswith("busy: use that process")
    assert run(path) == "opened"
    open_embedded(path, embedder).close()


def run(path: Path) -> str:
    """Open the store in another process."""
    command = [sys.executable, "-c", OPEN_AND_PRINT, str(path)]
    root = Path(__file__).parents[3]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=root).stdout.strip()


def garbage(path: Path) -> None:
    (path / "chroma.sqlite3").write_bytes(b"not a database " * 500)


def truncated(path: Path) -> None:
    content = (path / "chroma.sqlite3").read_bytes()
    (path / "chroma.sqlite3").write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize("break_it", [garbage, truncated])
def test_a_broken_store_is_replaced_and_says_why(
    tmp_path: Path, embedder: Any, note_text: NoteText, break_it: Callable[[Path], None]
) -> None:
    filled(tmp_path / "kb", embedder, note_text()).close()
    break_it(tmp_path / "kb")
    with open_embedded(tmp_path / "kb", embedder) as store:
        assert store.reset_reason is not None
        assert store.reset_reason.startswith("it could not be read (")
        assert store.count() == 0
    filled(tmp_path / "kb", embedder, note_text()).close()


def test_a_store_that_lost_its_database_starts_empty(tmp_path: Path, embedder: Any, note_text: NoteText) -> None:
    filled(tmp_path / "kb", embedder, note_text()).close()
    (tmp_path / "kb" / "chroma.sqlite3").unlink()
    with open_embedded(tmp_path / "kb", embedder) as store:
        assert store.count() == 0


def test_chunks_without_vectors_are_noticed(
    tmp_path: Path, embedder: Any, note_text: NoteText, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two writers leave a store that counts more chunks than it has vectors for; get() then fails or falls short."""
    from chromadb import Collection

    filled(tmp_path / "kb", embedder, note_text()).close()
    real = Collection.count
    monkeypatch.setattr(Collection, "count", lambda self: real(self) and real(self) + 2)
    with open_embedded(tmp_path / "kb", embedder) as store:
        assert store.reset_reason == "7 chunks are listed and not all of them have a vector"
        monkeypatch.undo()
        assert store.count() == 0


def test_another_embedding_model_starts_an_empty_store(
    tmp_path: Path, embedder: Any, other_embedder: Any, note_text: NoteText
) -> None:
    filled(tmp_path / "kb", embedder, note_text()).close()
    with open_embedded(tmp_path / "kb", other_embedder) as store:
        assert store.reset_reason == "it was embedded by hash-64, now hash-64-retrained is used"
        assert store.count() == 0


def test_a_folder_with_other_files_is_never_taken_or_erased(tmp_path: Path, embedder: Any) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(InvalidDescription, match=r"holds 'thesis.txt'"):
        open_embedded(tmp_path / "kb", embedder)
    assert (tmp_path / "kb" / "thesis.txt").read_text(encoding="utf-8") == "years of work"
    (tmp_path / "kb" / "thesis.txt").unlink()
    open_embedded(tmp_path / "kb", embedder).close()


def test_a_path_that_cannot_be_a_store_is_refused(tmp_path: Path, embedder: Any) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InvalidDescription, match="is a file"):
        open_embedded(tmp_path / "file", embedder)
    with pytest.raises(KnowledgeUnavailable, match="cannot be written"):
        open_embedded(tmp_path / "file" / "kb", embedder)


def test_no_server_is_said_so(embedder: Any) -> None:
    with pytest.raises(KnowledgeUnavailable, match=r"no Chroma server answers at 127.0.0.1:9"):
        open_server("127.0.0.1", 9, embedder)


def test_a_closed_store_says_so_and_may_be_closed_again(tmp_path: Path, embedder: Any) -> None:
    store = open_embedded(tmp_path / "kb", embedder)
    store.close()
    with pytest.raises(KnowledgeUnavailable, match="is closed"):
        store.count()
    with open_embedded(tmp_path / "kb", embedder) as successor:
        store.close()
        assert successor.count() == 0
        with pytest.raises(StoreBusy):
            open_embedded(tmp_path / "kb", embedder)
