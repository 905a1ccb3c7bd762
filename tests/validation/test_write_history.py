"""The script behind the bundled history: same data in, same bytes out, and what it takes and leaves."""

import json
from pathlib import Path

import pytest

from knowledge_base.history_files import HISTORY_FOLDER, bundled_history, read_history
from knowledge_base.history_parts import PastArchitecture
from knowledge_base.past import PastQuestion, group_of
from tests.validation.write_history import main

ARCH = {
    "model_type": "llama", "num_hidden_layers": 4, "hidden_size": 256, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 512, "vocab_size": 1000,
}  # fmt: skip


def row(name, **changes):
    """A measured training row in the form of the ground truth, of a model nobody trains."""
    return {
        "id": name, "workload_id": "w", "phase": "pretrain", "model": "tiny", "family": "tiny-family", "arch": ARCH,
        "hardware": {"chip": "H200", "count": 16}, "framework": "Megatron-Bridge", "precision": "BF16",
        "precision_class": "bf16", "seq_len": 2048, "global_batch": 32, "micro_batch": 1,
        "adopted": {"tp": 2, "pp": 2, "cp": 1, "ep": 1}, "measured": {"tokens_per_s_per_chip": 1000}, "derived": {},
        "role": "expert_adopted", "release": "NeMo 26.04", "superseded": False,
        "source": "github:some/repository@0123abc:docs/page.md (line 3)",
    } | changes  # fmt: skip


CHANGE = {
    "id": "some-thread-7", "title": "A title nobody copies", "source": {"url": "https://github.com/a/b/pull/7",
    "date": "2026-01-02"}, "phase": "train", "model": {"name": "tiny", "numbers": {}},
    "hardware": {"chip": "H200", "count": 16}, "is_moe": False, "before": {"config": {"tp": 4, "note": "on"},
    "figures": {"step_s": 3.0}}, "symptom": "a story", "after": {"config": {"tp": 2, "why": "a long story of the many "
    "things that were tried first"}, "figures": {"step_s": 2.0}},
    "effect": {"text": "faster", "metric": "step time", "improvement_ratio": 1.5, "outcome": "improved"},
    "bottleneck": {"cls": "communication", "cause": "TP collectives not overlapped"}, "levers": ["tp"],
    "good_advice": "advice nobody copies", "naive_advice": "other advice",
}  # fmt: skip

ROWS = (
    row("kept"),
    row("old", superseded=True),
    row("odd", suspect="a typing error"),
    row("full", derived={"oom": True}),
    row("silent", measured={}),
    row("foreign", hardware={"chip": "A chip of the moon", "count": 16}),
    row("slow-variant", role="sweep", measured={"tokens_per_s_per_chip": 10}),
    row("fast-variant", role="sweep", measured={"tokens_per_s_per_chip": 20}, adopted={"tp": 4, "pp": 1}),
)


@pytest.fixture
def ground_truth(tmp_path) -> Path:
    folder = tmp_path / "truth"
    folder.mkdir()
    (folder / "training.jsonl").write_text("\n".join(json.dumps(one) for one in ROWS))
    (folder / "advice_cases.jsonl").write_text(json.dumps(CHANGE))
    return folder


def test_same_data_in_same_bytes_out(ground_truth, tmp_path, capsys):
    for name in ("first", "second"):
        assert main([str(ground_truth), "--out", str(tmp_path / name)]) == 0
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("first", "second")
    )
    assert first == second
    assert "left out 1: ran out of memory" in capsys.readouterr().err


def test_what_ran_is_kept_with_its_source(ground_truth, tmp_path):
    main([str(ground_truth), "--out", str(tmp_path / "out")])
    cases = {case.id: case for case in read_history(tmp_path / "out")}
    assert sorted(cases) == ["chg-some-thread-7", "pub-fast-variant", "pub-kept"]
    kept = cases["pub-kept"]
    assert kept.text.startswith("tiny on 16 h200: dp 4 tp 2 pp 2 micro_batch 1; training rate 1,000 tokens/s/chip")
    assert kept.source.url == "https://github.com/some/repository/blob/0123abc/docs/page.md"
    assert kept.source.date == "2026-04"
    assert (kept.group, kept.architecture.layers) == ("tiny-family|h200", 4)


def test_a_change_is_composed_of_its_settings_and_no_prose_is_copied(ground_truth, tmp_path):
    main([str(ground_truth), "--out", str(tmp_path / "out")])
    (change,) = (case for case in read_history(tmp_path / "out") if case.kind == "change")
    assert change.change == "tp 4 -> 2"
    assert change.effect.text == "step time from 3 to 2 s: better, 1.5x"
    assert (change.cause, change.levers) == ("exposed_tp", ("tensor_parallelism",))
    text = "".join(path.read_text() for path in (tmp_path / "out").iterdir())
    assert not any(word in text for word in ("story", "nobody copies", "other advice"))


@pytest.mark.shared
def test_the_bundled_files_are_what_the_script_writes(tmp_path):
    main([str(Path(__file__).parents[3] / "shared" / "groundtruth"), "--out", str(tmp_path)])
    for path in sorted(HISTORY_FOLDER.glob("*.jsonl")):
        assert path.read_bytes() == (tmp_path / path.name).read_bytes(), path.name


@pytest.mark.shared
def test_a_workload_with_its_group_hidden_sees_nothing_of_its_model_on_its_chip():
    """As it is scored: nothing exact is left, and with nothing hidden the nearest case is the workload's own."""
    history = bundled_history()
    folder = Path(__file__).parents[3] / "shared" / "groundtruth"
    first_is_exact = []
    for line in (folder / "workloads.jsonl").read_text(encoding="utf-8").splitlines():
        workload = json.loads(line)
        if not workload["topk_eligible"] or not isinstance(workload["count"], int):
            continue
        own = [case for case in history.cases if case.model == workload["model"]]
        question = PastQuestion(
            phase="training",
            model=workload["model"],
            architecture=own[0].architecture if own else PastArchitecture(),
            chip=workload["chip"],
            chips=workload["count"],
        )
        group = f"{workload['family']}|{workload['chip'].lower()}"
        seen = history.past(question.model_copy(update={"hide_groups": frozenset({group})}), k=50)
        assert not any(match.match == "exact" for match in seen), group
        assert not any(match.case.group == group_of(workload["family"], workload["chip"]) for match in seen), group
        first_is_exact.append(history.past(question, k=1)[0].match == "exact")
    assert len(first_is_exact) > 150
    assert sum(first_is_exact) > 0.95 * len(first_is_exact)
