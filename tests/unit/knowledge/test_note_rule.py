"""The inequality of a note, evaluated at other numbers than the worked ones."""

import pytest

from knowledge_base.chunk import chunk_note
from knowledge_base.note import NOTES_FOLDER, inequality_holds, read_notes
from knowledge_base.rule import from_text, rule_of, to_text
from projector.errors import InvalidDescription

NOTES = {note.id: note for note in read_notes(NOTES_FOLDER)}
TENSOR = rule_of(NOTES["tensor-parallelism-with-sequence-parallelism"])


def test_every_rule_gives_its_note_s_own_answer_and_survives_storage():
    for note in NOTES.values():
        rule = rule_of(note)
        assert rule.holds_at({symbol.name: symbol.value for symbol in rule.symbols}) is inequality_holds(note)
        assert from_text(to_text(rule)) == rule


def test_only_what_the_inequality_rests_on_is_kept():
    names = {symbol.name for symbol in TENSOR.symbols}
    assert {"tp", "tokens", "hidden_size", "layer_parameters"} <= names
    assert {name for name, _ in TENSOR.steps} == {"moved_gb", "comm_ms", "compute_ms"}
    assert TENSOR.sides == ("comm_ms", "compute_ms")


def test_other_numbers_give_another_answer():
    values = {symbol.name: symbol.value for symbol in TENSOR.symbols}
    assert TENSOR.holds_at(values)
    assert not TENSOR.holds_at(values | {"link_gb_per_s_one_way": 20})
    with pytest.raises(InvalidDescription):
        TENSOR.holds_at(values | {"tp": 0})


def test_a_passage_carries_the_rule_of_its_note():
    note = NOTES["fsdp-full-sharding"]
    assert {from_text(chunk.rule) for chunk in chunk_note(note)} == {rule_of(note)}
