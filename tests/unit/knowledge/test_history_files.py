"""History as files: what is bundled, what a broken line says, and what users record."""

import json
from pathlib import Path

import pytest
from history_examples import SOURCE, published

from knowledge_base.history_files import HISTORY_FOLDER, HistoryFolder, bundled_history, read_history
from projector import catalog
from projector.errors import InvalidDescription, KnowledgeUnavailable

# Meshes (data, seq, model) of the showcased cases of the PROMPTS paper, with chip and number of chips, as
# shared/reference/prompts_cases.json states them: current, proposed and adopted ones. None may be known beforehand.
PROMPTS_MESHES = {
    ("tpu-v5p", 512): {(8, 8, 8), (16, 4, 8), (8, 4, 16), (16, 8, 4)},
    ("tpu-v6e", 16): {(4, 4, 1), (4, 1, 4), (1, 4, 4), (2, 4, 2)},
    ("tpu-v5e", 256): {(4, 16, 4), (8, 16, 2), (2, 16, 8), (16, 16, 1)},
    ("tpu-v6e", 128): {(2, 16, 4), (2, 32, 2), (1, 32, 4)},
    ("tpu-v6e", 256): {(2, 32, 4)},
}


def test_the_bundled_history_reads_and_names_its_sources():
    cases = bundled_history().cases
    assert {case.kind for case in cases} == {"published", "change"}
    assert all(case.source.url for case in cases)
    assert all(case.origin == "bundled" and case.id.startswith(("pub-", "chg-")) for case in cases)


def test_the_bundled_history_is_compact():
    assert sum(path.stat().st_size for path in HISTORY_FOLDER.iterdir()) < 700_000


def test_no_bundled_case_holds_a_mesh_of_the_prompts_cases():
    for case in bundled_history().cases:
        for layout in filter(None, (case.layout, case.baseline)):
            tp, pp, cp, _ = layout.degrees
            if case.chip is None or case.chips is None or pp > 1:
                continue
            devices = case.chips * catalog.chip(case.chip).devices_per_chip
            mesh = (devices // (tp * cp), cp, tp)
            assert mesh not in PROMPTS_MESHES.get((case.chip, case.chips), set()), case.id


def written(folder: Path, **changes) -> Path:
    """A folder with one published line."""
    row = {
        "id": "pub-one", "kind": "published", "phase": "training", "model": "m", "chip": "h100-sxm", "chips": 8,
        "layout": {"tp": 8}, "effect": {"metric": "MFU", "after": 0.4}, "source": "s1",
    }  # fmt: skip
    (folder / "models.jsonl").write_text(json.dumps({"model": "m", "family": "m"}) + "\n")
    (folder / "sources.jsonl").write_text(json.dumps({"key": "s1", "source": SOURCE}) + "\n")
    (folder / "published.jsonl").write_text("\n" + json.dumps(row | changes) + "\n")
    return folder


def test_a_line_reads_with_the_numbers_of_its_model_and_its_source(tmp_path):
    (case,) = read_history(written(tmp_path))
    assert (case.family, case.source.title, case.layout.tp) == ("m", "a report", 8)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"modle": "m"}, r"published.jsonl:2: modle: Extra inputs"),
        ({"chip": "h100x"}, r"published.jsonl:2: chip: .*unknown chip 'h100x'"),
        ({"levers": ["tp"]}, r"published.jsonl:2: levers.0: .*unknown lever 'tp'"),
        ({"cause": "slow"}, r"published.jsonl:2: cause"),
        ({"layout": {"tp": 3}}, r"published.jsonl:2: .*tp \* pp \* cp = 3 does not divide 8 devices"),
        ({"model": "n"}, r"published.jsonl:2: model 'n' is not in models.jsonl"),
        ({"source": "s2"}, r"published.jsonl:2: source 's2' is not in sources.jsonl"),
    ],
)
def test_a_broken_line_is_named_by_file_and_number(tmp_path, changes, says):
    with pytest.raises(InvalidDescription, match=says):
        read_history(written(tmp_path, **changes))


def test_an_id_may_occur_once(tmp_path):
    folder = written(tmp_path)
    (folder / "more.jsonl").write_text((folder / "published.jsonl").read_text())
    with pytest.raises(InvalidDescription, match="the id 'pub-one' occurs twice"):
        read_history(folder)


def test_what_a_user_records_is_read_when_it_is_there_and_gone_when_it_is_removed(tmp_path):
    history = HistoryFolder(tmp_path / "history")
    before = len(history().cases)
    (tmp_path / "history").mkdir()
    path = tmp_path / "history" / "ours.json"
    path.write_text(published("ours", origin="user").model_dump_json())
    assert history().get("ours").origin == "user"
    assert [case.id for case in history.recorded()] == ["ours"]
    path.unlink()
    assert len(history().cases) == before


@pytest.mark.parametrize("content", ["{", "[]", '{"id": "ours"}', "\ud800".encode("utf-8", "surrogatepass")])
def test_a_broken_recorded_outcome_is_named(tmp_path, content):
    path = tmp_path / "ours.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(KnowledgeUnavailable, match=r"recorded outcome ours\.json cannot be read"):
        HistoryFolder(tmp_path)()
