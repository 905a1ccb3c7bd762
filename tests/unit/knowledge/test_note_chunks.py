from collections.abc import Callable

from knowledge_base.chunk import MAX_CHUNK_CHARACTERS, chunk_note, chunk_notes
from knowledge_base.note import Note, parse_note

NoteText = Callable[..., str]


def parsed(text: str) -> Note:
    return parse_note(text, origin="n.md")


def test_a_section_is_a_chunk_with_the_front_matter_of_its_note(note_text: NoteText) -> None:
    chunks = chunk_note(parsed(note_text()))
    assert [chunk.section for chunk in chunks][:2] == ["Claim", "When it helps"]
    assert chunks[0].text == "Halls empty through all doors at once."
    assert chunks[0].levers == ("tensor_parallelism",)
    assert chunks[0].chunk_id == f"wider-doors.claim.{chunks[0].content_hash[:12]}"


def test_only_a_changed_passage_gets_a_new_id(note_text: NoteText) -> None:
    before = chunk_note(parsed(note_text()))
    after = chunk_note(parsed(note_text(("Doors cost wall.", "Doors cost walls."))))
    changed = [a.section for a, b in zip(after, before, strict=True) if a.chunk_id != b.chunk_id]
    assert changed == ["When it hurts"]


def test_changed_front_matter_keeps_the_id_and_changes_the_record(note_text: NoteText) -> None:
    before = chunk_note(parsed(note_text()))[0]
    after = chunk_note(parsed(note_text(("exposed_tp", "exposed_dp"))))[0]
    assert (after.chunk_id, after.content_hash) == (before.chunk_id, before.content_hash)
    assert after.record_hash != before.record_hash


def test_a_long_section_is_split_and_nothing_is_lost(note_text: NoteText) -> None:
    paragraph = "A door opens. " * 30
    text = f"{paragraph}\n\n{paragraph}\n\n{'wide ' * 200}\n\n{'x' * 1500}"
    parts = [c.text for c in chunk_note(parsed(note_text(("Many people wait.", text)))) if c.slug == "when-it-helps"]
    assert max(len(part) for part in parts) <= MAX_CHUNK_CHARACTERS
    assert "".join("".join(parts).split()) == "".join(text.split())


def test_a_repeated_passage_is_kept_once(note_text: NoteText) -> None:
    paragraph = "x" * MAX_CHUNK_CHARACTERS
    note = parsed(note_text(("Many people wait.", f"{paragraph}\n\n{paragraph}")))
    assert len(chunk_note(note)) == 6
    assert len(chunk_notes([note])) == 5
