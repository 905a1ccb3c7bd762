"""docs/accuracy.md says what docs/accuracy.json says, and the same measurements give the same page."""

import json
import re
from dataclasses import asdict
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.bench.projector_bench import Result, Settings, Speed
from tests.bench.projector_results import Coverage, Error, Errors, Ranking, Rankings

from .accuracy_page.__main__ import DOCS, kept, main, written
from .accuracy_page.figures import Figures, Peers, as_text, significant
from .accuracy_page.page import FOLDER, page
from .accuracy_page.peer_tables import lines
from .accuracy_page.svg import Drawing, Scale, linear_ticks, log_ticks
from .accuracy_page.tables import escaped, table

MODEL = {
    "model_type": "llama",
    "num_hidden_layers": 16,
    "hidden_size": 2048,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "intermediate_size": 8192,
    "vocab_size": 32000,
}


def measured(place: int, tp: int, time_s: float, **changes) -> dict:
    """A row of our own making: a small dense model on eight H100."""
    return {
        "id": f"row-{place}",
        "workload_id": "small|h100-sxm|8",
        "family": "small",
        "model": "small-1b",
        "phase": "pretrain",
        "source": "github:example/a_b@1:table.md",
        "framework": "Megatron-Core",
        "arch": MODEL,
        "hardware": {"chip": "H100-SXM", "count": 8},
        "precision_class": "bf16",
        "seq_len": 4096,
        "global_batch": 64,
        "micro_batch": 1,
        "adopted": {"tp": tp, "pp": 1, "vp": 1, "cp": 1, "ep": 1, "recompute": "none"},
        "measured": {"step_time_s": time_s, "mem_gb_per_chip": 30.0},
        **changes,
    }


@pytest.fixture
def groundtruth(tmp_path: Path) -> Path:
    rows = [measured(place, tp, 0.7 + 0.1 * place) for place, tp in enumerate((1, 2, 4, 8))]
    rows += [measured(4 + place, 2, 0.8 + 0.1 * place, micro_batch=2**place) for place in (1, 2)]
    rows.append(measured(9, 1, 1.0, suspect="of no use", workload_id="else"))
    workload = {
        "workload_id": "small|h100-sxm|8",
        "phase": "pretrain",
        "chip": "h100-sxm",
        "count": 8,
        "framework": "Megatron-Core",
        "stratum": "modern",
        "topk_eligible": True,
        "n_distinct_parallelism": 4,
        "expert_row_ids": ["row-0"],
        "row_ids": [f"row-{place}" for place in range(7)],
        "layout_key": "1,1,1,1",
    }
    folder = tmp_path / "groundtruth"
    folder.mkdir()
    (folder / "training.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "workloads.jsonl").write_text(json.dumps(workload) + "\n")
    return folder


def made(groundtruth: Path, docs: Path) -> dict[str, str]:
    docs.mkdir()
    assert main([str(groundtruth), "--docs", str(docs)]) == 0
    return {str(path.relative_to(docs)): path.read_text() for path in docs.rglob("*") if path.is_file()}


def test_page_and_charts_are_what_the_figures_beside_them_make():
    """After a change of page or charts `python -m tests.validation.accuracy_page` writes them from the same figures."""
    expected = written(DOCS, kept(DOCS))
    for path, text in expected.items():
        assert path.read_text(encoding="utf-8") == text, path.name
    assert set((DOCS / FOLDER).iterdir()) <= expected.keys()


def test_every_chart_the_page_shows_exists_and_every_place_is_filled():
    text = (DOCS / "accuracy.md").read_text(encoding="utf-8")
    assert "{{" not in text
    for name in re.findall(r"\]\((accuracy/[^)]+)\)", text):
        assert (DOCS / name).is_file(), name


def test_the_same_measurements_give_the_same_bytes(groundtruth: Path, tmp_path: Path) -> None:
    first, second = (made(groundtruth, tmp_path / name) for name in ("a", "b"))
    assert first == second
    assert {"accuracy.json", "accuracy.md", "accuracy/step_time.svg", "accuracy/memory.svg"} <= first.keys()
    figures = Figures.model_validate_json(first["accuracy.json"])
    assert as_text(figures) == first["accuracy.json"]
    (file,) = figures.files
    assert (file.n_given, file.n_modelled, file.n_suspect) == (7, 6, 1)
    assert f"| {100 * (file.all_rows.mape or 0):.1f} % |" in first["accuracy.md"]
    assert "`row-9`" in first["accuracy.md"]
    assert "of no use" not in first["accuracy.md"]


def test_charts_are_xml_without_a_number_that_is_none(groundtruth: Path, tmp_path: Path) -> None:
    for name, text in made(groundtruth, tmp_path / "docs").items():
        if name.endswith(".svg"):
            root = ElementTree.fromstring(text)  # noqa: S314  of our own making
            assert root.attrib["aria-label"]
            assert "nan" not in text
            assert "inf" not in text


def test_without_the_comparison_the_page_says_so_and_an_earlier_one_is_kept(groundtruth: Path, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    assert "has not been run" in made(groundtruth, docs)["accuracy.md"]
    peers = kept(DOCS).peers
    assert peers is not None
    (docs / "accuracy.json").write_text(as_text(kept(docs).model_copy(update={"peers": peers})))
    assert main([str(groundtruth), "--docs", str(docs), "--peers", str(tmp_path / "none.json")]) == 0
    assert kept(docs).peers == peers
    assert "Calculon: its own search loop" in page(kept(docs))


def test_the_result_of_the_comparison_is_what_the_page_reads():
    error = Error("ours", 0.1, 0.1, -0.1, 1.0)
    ranking = Ranking("ours", 2, 1, 1.0, 0.0, 0.0, 0.0, None)
    result = Result(
        tools=(Settings("theirs", "commit", "as shipped"),),
        coverage=(Coverage("ours", 2, 1, 1, 0, (("no field", 1),), 0),),
        as_they_are=(Errors("all", 2, (error,)),),
        with_stand_ins=(),
        sweeps=(Rankings("all", 1, 2, (ranking,)),),
        speed_setting="a model on a machine",
        speed=(Speed("ours: columns", 10, 7.0, 142857.0, 90.0),),
    )
    peers = Peers.model_validate_json(json.dumps(asdict(result)))
    text = "\n".join(lines(peers))
    assert "| ours: columns | 10 | 7.0 | 142,857 | 1 | 90 |" in text
    assert "(a model on a machine)" in text


def test_a_folder_without_figures_asks_for_measurements(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--docs", str(tmp_path)]) == 2
    assert "name a folder" in capsys.readouterr().err


def test_a_folder_without_measurements_says_what_it_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), "--docs", str(tmp_path)]) == 2
    assert "lacks training.jsonl and workloads.jsonl" in capsys.readouterr().err


def test_words_of_a_file_are_no_mark_up():
    assert escaped("a|b\n*c* <x>") == r"a\|b \*c\* \<x\>"
    drawing = Drawing(10, 10, 'a"<b>')
    drawing.text(0, 0, "<script>")
    assert "<script>" not in drawing.document()
    ElementTree.fromstring(drawing.document())  # noqa: S314


def test_numbers_stand_to_the_right_and_words_to_the_left():
    assert list(table(("what", "n"), [("a", "1"), ("b", "–")]))[1] == "|---|--:|"


def test_scales_and_ticks():
    assert Scale(1, 100, 0, 200, is_log=True)(10) == pytest.approx(100)
    assert Scale(0, 10, 0, 200).inside(30) == 200
    assert Scale(1, 100, 0, 200, is_log=True).back(100) == pytest.approx(10)
    assert log_ticks(0.9, 60) == [1, 2, 5, 10, 20, 50]
    assert log_ticks(0.05, 2000) == pytest.approx([0.1, 1, 10, 100, 1000])
    assert linear_ticks(23) == [0, 5, 10, 15, 20]
    assert [significant(value) for value in (0.123456, 98765.4, 0.0)] == [0.1235, 98770.0, 0.0]
