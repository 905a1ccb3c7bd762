"""Notes that are out of date are marked, and those another supersedes come last."""

from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from knowledge_base.chunk import chunk_note
from knowledge_base.index import sync
from knowledge_base.note import NOTES_FOLDER, parse_note, read_notes
from knowledge_base.retrieve import KnowledgeBase
from knowledge_base.staleness import outdated, stale_on
from knowledge_base.store import NoteStore, open_embedded
from projector.errors import InvalidDescription, UnknownName

NoteText = Callable[..., str]
HEAD = "holds: true\n"


def with_head(note_text: NoteText, *lines: str, **names: str) -> Any:
    """The sample note, whose source is of 2020, with more front matter."""
    note_id = names.get("id", "wider-doors")
    text = note_text((HEAD, HEAD + "".join(f"{line}\n" for line in lines)), ("wider-doors", note_id))
    return parse_note(text, origin="n.md")


@pytest.fixture
def store(tmp_path: Path, embedder: Any) -> Iterator[NoteStore]:
    with open_embedded(tmp_path / "kb", embedder) as store:
        yield store


def test_a_note_without_dates_is_never_stale(note_text: NoteText) -> None:
    assert outdated(with_head(note_text)) == ""
    assert stale_on(date(2100, 1, 1), outdated="", valid_until="") == ""


def test_a_note_whose_sources_end_before_a_release_it_names_is_stale(note_text: NoteText) -> None:
    note = with_head(note_text, "releases: [{name: doors 2.0, released: 2021-05-01}]")
    assert outdated(note) == "its sources end 2020-12-31, before doors 2.0 of 2021-05-01"
    same_year = with_head(note_text, "releases: [{name: doors 1.9, released: 2020-05-01}]")
    assert outdated(same_year) == ""


def test_a_review_after_the_release_clears_it(note_text: NoteText) -> None:
    release = "releases: [{name: doors 2.0, released: 2021-05-01}]"
    assert outdated(with_head(note_text, release, "reviewed: 2021-05-01")) == ""
    assert "before doors 2.0" in outdated(with_head(note_text, release, "reviewed: 2021-04-30"))


def test_a_date_of_reading_counts_as_the_age_of_a_source(note_text: NoteText) -> None:
    text = note_text(("year: 2020", "read: 2022-01-01"), (HEAD, HEAD + "releases: [{name: x, released: 2021-05-01}]\n"))
    assert outdated(parse_note(text, origin="n.md")) == ""


@pytest.mark.parametrize(
    ("today", "stale"),
    [(date(2026, 6, 30), ""), (date(2026, 7, 1), "valid until 2026-06-30"), (None, "")],
)
def test_a_note_past_its_date_is_stale_from_the_day_after(today: date | None, stale: str) -> None:
    assert stale_on(today, outdated="", valid_until="2026-06-30") == stale


def test_a_superseded_note_comes_last_and_says_so(store: NoteStore, embedder: Any, note_text: NoteText) -> None:
    old = with_head(note_text, "superseded_by: new-doors", id="old-doors")
    sync(store, embedder, [old, with_head(note_text, id="new-doors"), with_head(note_text, id="zebra-doors")])
    found = KnowledgeBase(store, embedder).search("old doors", phase="training", k=3)
    assert [note.note_id for note in found] == ["new-doors", "zebra-doors", "old-doors"]
    assert [note.stale for note in found] == ["", "", "superseded by new-doors"]


def test_the_day_is_asked_for_at_each_search(store: NoteStore, embedder: Any, note_text: NoteText) -> None:
    sync(store, embedder, [with_head(note_text, "valid_until: 2026-06-30")])
    days = iter([date(2026, 6, 30), date(2026, 7, 1)])
    knowledge = KnowledgeBase(store, embedder, today=lambda: next(days))
    assert [knowledge.search("doors", phase="training")[0].stale for _ in range(2)] == ["", "valid until 2026-06-30"]
    assert KnowledgeBase(store, embedder).search("doors", phase="training")[0].stale == ""


def test_new_dates_and_aliases_are_stored_without_embedding_again(
    store: NoteStore, embedder: Any, note_text: NoteText
) -> None:
    sync(store, embedder, [with_head(note_text)])
    before = len(embedder.calls)
    knowledge = KnowledgeBase(store, embedder)
    assert knowledge.search("portals", phase="training")[0].keyword_rank is None
    report = sync(store, embedder, [with_head(note_text, "aliases: [portals]", "superseded_by: other")])
    assert (report.embedded, report.updated) == (0, 5)
    (found,) = knowledge.search("portals", phase="training")
    assert (found.keyword_rank, found.stale) == (1, "superseded by other")
    assert len(embedder.calls) == before + 2, "the two queries"
    assert knowledge.get_note("wider-doors")[0].aliases == ("portals",)


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        ("superseded_by: wider-doors", InvalidDescription, "cannot supersede itself"),
        ("superseded_by: '../etc'", InvalidDescription, "superseded_by"),
        ("valid_until: soon", InvalidDescription, "valid_until"),
        ("aliases: [a, a]", InvalidDescription, "aliases: a name is listed twice"),
        (f"aliases: [{'x' * 61}]", InvalidDescription, "aliases"),
        (f"aliases: [{', '.join('abcdefghijklm')}]", InvalidDescription, "aliases"),
        ("releases: [{name: doors}]", InvalidDescription, "releases.0.released"),
        ("valid_untill: 2026-01-01", UnknownName, "valid_until"),
    ],
)
def test_wrong_front_matter_is_refused(note_text: NoteText, line: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        with_head(note_text, line)
    assert message in str(caught.value) + str(getattr(caught.value, "nearest", ""))


def test_no_bundled_note_is_out_of_date_and_what_supersedes_one_is_there() -> None:
    notes = read_notes(NOTES_FOLDER)
    ids = {note.id for note in notes}
    assert {note.superseded_by for note in notes if note.superseded_by} <= ids
    assert {note.id: outdated(note) for note in notes if outdated(note) and note.superseded_by is None} == {}


def test_chips_are_stored_under_their_catalogue_ids() -> None:
    notes = {note.id: note for note in read_notes(NOTES_FOLDER)}
    assert chunk_note(notes["torus-axis-mapping"])[0].chips == ("tpu-v5p",)
