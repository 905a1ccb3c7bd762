"""A file of own rules: what is read from it, and how it is refused."""

from pathlib import Path

import pytest
from rule_examples import PATCHWORK, entry

from projector.errors import InvalidDescription
from traces.rules import read_rules
from traces.rules.rule_file import LONGEST_FILE_BYTES, MOST_RULES


def read(folder: Path, content: str | bytes) -> object:
    path = folder / "own.toml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_rules(path)


def test_entries_are_read_in_order(tmp_path: Path) -> None:
    first, second = read(tmp_path, PATCHWORK + entry())  # type: ignore[misc]
    assert (first.table, first.meaning, first.label) == ("kind", "moe", "own rule moe/patchwork")
    assert first.not_examples == ("my_patchwork_pack_kernel",)
    assert first.source == "our own mixture of experts"
    assert (second.label, second.source, second.not_examples) == ("own rule gemm/own", "", ())


def test_an_empty_file_adds_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, "# nothing yet\n") == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (entry(id=None), "own.toml, entry 1: lacks 'id'"),
        (entry(examples=[]), "own.toml, entry 'own': lacks 'examples'"),
        (entry(patern="x"), "own.toml, entry 'own': has no field 'patern'"),
        (
            entry(table="kinds"),
            "own.toml, entry 'own': table 'kinds' is none of collective, communication, copy, kind,",
        ),
        (entry(meaning="matmul"), "own.toml, entry 'own': meaning 'matmul' is none of gemm, attention, norm,"),
        (entry(table="copy"), "own.toml, entry 'own': meaning 'gemm' is none of memcpy, memset, none"),
        (entry(id="Own Rule"), "own.toml, entry 'Own Rule': id is not up to 40 of a to z, 0 to 9 and hyphens"),
        (
            entry(pattern="(a+)+"),
            "own.toml, entry 'own': pattern '(a+)+' is refused: it repeats what is itself repeated",
        ),
        (entry(pattern="own("), "own.toml, entry 'own': pattern 'own(' is refused: it is no regular expression"),
        (entry(examples=["other"]), "own.toml, entry 'own': its example 'other' is not found by its pattern"),
        (
            entry(not_examples=["own_kernel_2"]),
            "own.toml, entry 'own': its pattern finds 'own_kernel_2', which it must not",
        ),
        (
            entry(id="first", pattern="kernel", examples=["a_kernel"]) + entry(),
            "own.toml, entry 'own': its example 'own_kernel' is decided by 'first' before it",
        ),
        (entry() + entry(), "own.toml, entry 'own': another entry of table kind has its meaning and id"),
        (entry(source=3), "own.toml, entry 'own': source is no text"),
        (entry(examples=[1]), "own.toml, entry 'own': examples is no list of texts"),
        ("rule = 3", "own.toml has [rule]; entries are written [[rule]]"),
        ("rule = [3]", "own.toml, entry 1: is no table of fields"),
        ("[rule]\nid = 'x'", "own.toml has [rule]; entries are written [[rule]]"),
        ("[[rules]]", "own.toml has 'rules'; only [[rule]] entries belong there"),
        ("[[rule", "own.toml is no TOML: "),
        (b"\xff\xfe", "own.toml is no TOML: "),
        ("rule = [" + "{}," * (MOST_RULES + 1) + "]", "own.toml has 1,001 entries, 1,000 are allowed"),
        ("#" * (LONGEST_FILE_BYTES + 1), "own.toml has more than 1,000,000 bytes"),
    ],
)
def test_faults_are_told_with_file_entry_and_reason(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(InvalidDescription) as refused:
        read(tmp_path, content)
    assert refused.value.message.startswith(message)
    assert refused.value.hint


@pytest.mark.parametrize("name", ["absent.toml", "."])
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidDescription, match="cannot be read: "):
        read_rules(tmp_path / name)
