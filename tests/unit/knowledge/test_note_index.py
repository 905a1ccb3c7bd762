from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from knowledge_base.index import open_knowledge_base, rebuild, sync
from knowledge_base.note import Note, parse_note
from knowledge_base.store import open_embedded
from projector.errors import InvalidDescription

NoteText = Callable[..., str]


def parsed(text: str) -> Note:
    return parse_note(text, origin="n.md")


def test_only_what_changed_is_embedded(tmp_path: Path, embedder: Any, note_text: NoteText) -> None:
    first, second = parsed(note_text()), parsed(note_text(("wider-doors", "more-doors"), ("Wider doors", "More doors")))
    with open_embedded(tmp_path / "kb", embedder) as store:
        report = sync(store, embedder, [first])
        assert (report.notes, report.chunks, report.embedded, report.unchanged) == (1, 5, 5, 0)

        report = sync(store, embedder, [first, second])
        assert (report.embedded, report.unchanged) == (5, 5)

        embedder.calls.clear()
        reworded = parsed(note_text(("Doors cost wall.", "Doors cost walls.")))
        report = sync(store, embedder, [reworded, second])
        assert (report.embedded, report.deleted, report.updated, report.unchanged) == (1, 1, 0, 9)
        assert embedder.calls == ["Wider doors. When it hurts. Doors cost walls."]

        embedder.calls.clear()
        moved = parsed(note_text(("exposed_tp", "exposed_dp"), ("Doors cost wall.", "Doors cost walls.")))
        report = sync(store, embedder, [moved, second])
        assert (report.embedded, report.deleted, report.updated, report.unchanged) == (0, 0, 5, 5)
        assert embedder.calls == []
        assert {chunk.causes for chunk in store.get_note("wider-doors")} == {("exposed_dp",)}

        report = sync(store, embedder, [second])
        assert (report.deleted, store.count()) == (5, 5)
        assert sync(store, embedder, []).deleted == 5


def test_nothing_is_embedded_when_the_store_is_opened_again(tmp_path: Path, embedder: Any, note_text: NoteText) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "wider-doors.md").write_text(note_text(), encoding="utf-8")
    for unchanged in (0, 5):
        knowledge, report = open_knowledge_base(tmp_path / "kb", embedder, folders=[tmp_path / "notes"])
        knowledge.close()
        assert (report.unchanged, report.rebuilt_because) == (unchanged, None)
    assert len(embedder.calls) == 5


def test_rebuild_embeds_everything_again_and_keeps_the_reason(
    tmp_path: Path, embedder: Any, note_text: NoteText
) -> None:
    note = parsed(note_text())
    with open_embedded(tmp_path / "kb", embedder) as store:
        sync(store, embedder, [note])
        report = rebuild(store, embedder, [note], reason="the operator asked")
        assert (report.embedded, report.unchanged, report.rebuilt_because) == (5, 0, "the operator asked")
        assert store.count() == 5


def test_another_embedding_model_is_reported(
    tmp_path: Path, embedder: Any, other_embedder: Any, note_text: NoteText
) -> None:
    note = parsed(note_text())
    with open_embedded(tmp_path / "kb", embedder) as store:
        sync(store, embedder, [note])
    with open_embedded(tmp_path / "kb", other_embedder) as store:
        report = sync(store, other_embedder, [note])
    assert report.embedded == 5
    assert report.rebuilt_because == "it was embedded by hash-64, now hash-64-retrained is used"


def test_a_bad_note_leaves_the_store_free(tmp_path: Path, embedder: Any) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "bad.md").write_text("no front matter", encoding="utf-8")
    with pytest.raises(InvalidDescription):
        open_knowledge_base(tmp_path / "kb", embedder, folders=[tmp_path / "notes"])
    open_embedded(tmp_path / "kb", embedder).close()


def test_a_failing_embedder_leaves_the_store_free(
    tmp_path: Path, embedder: Any, note_text: NoteText, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wider-doors.md").write_text(note_text(), encoding="utf-8")

    def fail(texts: object) -> None:
        raise MemoryError

    monkeypatch.setattr(embedder, "embed", fail)
    with pytest.raises(MemoryError):
        open_knowledge_base(tmp_path / "kb", embedder, folders=[tmp_path])
    open_embedded(tmp_path / "kb", embedder).close()
