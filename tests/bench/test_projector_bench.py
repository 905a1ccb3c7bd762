"""The comparison with other projectors: the same questions for all, fair fields, figures over the same rows."""

import json
import sys
from pathlib import Path

import projector_calculon
import projector_llm_analysis
import pytest

from agents.evaluation.cases import Case, case_of
from agents.evaluation.rows import MeasuredRow, read_rows
from tests.bench.projector_bench import main
from tests.bench.projector_peers import PEERS, missing, run
from tests.bench.projector_questions import questions, speed_questions
from tests.bench.projector_results import Answer, answers_of, common, coverage, errors, rankings

GPT = {
    "model_type": "gpt",
    "num_hidden_layers": 24,
    "hidden_size": 2048,
    "num_attention_heads": 16,
    "intermediate_size": 8192,
    "vocab_size": 51200,
}
LAYOUT = {"tp": 2, "pp": 1, "vp": 1, "cp": 1, "ep": 1, "recompute": "full"}


def case(name: str = "row-1", time_s: float = 2.0, arch: dict | None = None, **layout) -> Case:
    """A GPT on 16 A100."""
    values = {
        "id": name,
        "workload_id": "small gpt",
        "model": "gpt-1b",
        "source": "example",
        "framework": "Megatron-LM",
        "arch": arch or GPT,
        "hardware": {"chip": "A100-80-SXM", "count": 16},
        "precision_class": "bf16",
        "seq_len": 2048,
        "global_batch": 64,
        "micro_batch": 2,
        "adopted": LAYOUT | layout,
        "measured": {"step_time_s": time_s},
    }
    row = next(read_rows(json.dumps(values), "rows.jsonl"))
    assert isinstance(row, MeasuredRow), row
    return case_of(row, "")


def asked(one: Case, place: int = 0) -> dict:
    """A question as a peer reads it."""
    return json.loads(json.dumps(list(questions([one]))[place].__dict__))


def test_a_peer_that_is_not_there_is_named_with_its_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "calculon").mkdir()
    assert missing(tmp_path) == [
        f"{tmp_path}/llm-analysis is missing: git clone https://github.com/cli99/llm-analysis {tmp_path}/llm-analysis"
    ]
    assert main(["--peers", str(tmp_path), "--groundtruth", str(tmp_path)]) == 2
    assert "git clone https://github.com/cli99/llm-analysis" in capsys.readouterr().err


def test_a_folder_without_rows_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for peer in PEERS:
        (tmp_path / peer.folder).mkdir(exist_ok=True)
    assert main(["--peers", str(tmp_path), "--groundtruth", str(tmp_path)]) == 1
    assert "expected training.jsonl" in capsys.readouterr().err


def test_every_plan_a_row_may_mean_is_a_question():
    assert [one.recompute for one in questions([case()])] == ["full"]
    assert {one.recompute for one in questions([case(recompute=None)])} == {"none", "selective", "full"}


def test_a_question_names_what_a_plain_model_lacks():
    experts = GPT | {
        "model_type": "mixtral",
        "num_key_value_heads": 16,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "tie_word_embeddings": False,
    }
    question = asked(case(arch=experts))
    assert "experts" in question["beyond"]
    for unknown, fields in (
        (projector_calculon.Unknown, projector_calculon.execution),
        (projector_llm_analysis.Unknown, projector_llm_analysis.parallelism_fields),
    ):
        with pytest.raises(unknown, match="no field for experts"):
            fields(question)


def test_speed_is_measured_on_plans_every_tool_has_fields_for():
    asked_for = [json.loads(json.dumps(one.__dict__)) for one in speed_questions(20)]
    assert len(asked_for) >= 20
    for question in asked_for:
        assert projector_calculon.execution(question)[1] == []
        projector_llm_analysis.parallelism_fields(question)


def test_ranks_stand_in_calculon_as_megatron_places_them():
    def tiers(**layout):
        fields, _ = projector_calculon.execution(asked(case(**layout)))
        return tuple(fields[f"{axis}_par_net"] for axis in ("tensor", "data", "pipeline"))

    assert tiers(tp=8) == (0, 1, 1)
    assert tiers(tp=2, pp=8) == (0, 0, 1)
    assert tiers(tp=16) == (1, 1, 1)


def test_what_calculon_lacks_but_something_of_it_is_near_is_a_stand_in():
    llama = GPT | {"model_type": "llama", "num_key_value_heads": 4, "intermediate_size": 5632}
    question = asked(case(arch=llama, fsdp=8, zero_stage=3))
    fields, stand_ins = projector_calculon.execution(question)
    assert len(stand_ins) == 3
    assert projector_calculon.application(question)["feedforward"] == 8448
    assert fields["optimizer_sharding"]
    assert fields["data_par_overlap"]
    assert projector_calculon.execution(asked(case()))[1] == []


def test_ranks_that_share_nothing_are_replicas_for_llm_analysis():
    degrees, stage = projector_llm_analysis.parallelism_fields(asked(case(zero_stage=0)))
    assert (degrees["dp_size"], degrees["rdp_size"], stage) == (1, 8, 0)
    degrees, stage = projector_llm_analysis.parallelism_fields(asked(case(zero_stage=3, fsdp=4)))
    assert (degrees["dp_size"], degrees["rdp_size"], stage) == (4, 2, 3)


def line(row: str, time_s: float, *, fits: bool = True, bytes_: float = 1.0) -> dict:
    return {"row": row, "tokens": 1, "time_s": time_s, "bytes": bytes_, "fits": fits, "stand_ins": []}


def test_the_fastest_that_fits_counts_and_where_none_fits_the_smallest():
    found = answers_of([line("a", 1.0, fits=False), line("a", 3.0), line("a", 2.0)])
    assert found["a"].s_per_token == 2.0
    found = answers_of([line("a", 1.0, fits=False, bytes_=9.0), line("a", 3.0, fits=False, bytes_=5.0)])
    assert (found["a"].s_per_token, found["a"].fits) == (3.0, False)
    assert answers_of([{"row": "a", "refused": "no field for x"}]) == {"a": "no field for x"}


def test_errors_are_over_the_rows_that_all_model_alike():
    cases = [case("a"), case("b", tp=4), case("c", tp=8)]
    told = [one.target.s_per_token for one in cases]
    ours = {name: Answer(1.1 * time, 0.0, True, ()) for name, time in zip("abc", told, strict=True)}
    theirs = {
        "a": Answer(0.5 * told[0], 0.0, True, ()),
        "b": Answer(told[1], 0.0, False, ("something near",)),
        "c": "no field for it",
    }
    tools = {"ours": ours, "theirs": theirs}
    assert [one.row.id for one in common(cases, tools, stand_ins=False)] == ["a"]
    assert [one.row.id for one in common(cases, tools, stand_ins=True)] == ["b"]
    every, source = errors(cases[:1], tools)
    assert (every.n, source.source) == (1, "example")
    assert [one.mape for one in every.tools] == [pytest.approx(0.1), pytest.approx(0.5)]
    found = coverage("theirs", cases, theirs)
    assert (found.as_they_are, found.with_stand_ins, found.refused, found.called_too_large) == (1, 1, 1, 1)


def test_regret_is_against_the_best_row_of_the_sweep_whoever_models_it():
    cases = [case(f"row-{tp}", time_s=time, tp=tp) for tp, time in ((1, 1.0), (2, 1.2), (4, 1.5))]
    right = {one.row.id: Answer(one.target.s_per_token, 0.0, True, ()) for one in cases}
    backward = {one.row.id: Answer(1 / one.target.s_per_token, 0.0, True, ()) for one in cases}
    backward["row-1"] = "no field for it"
    every, _ = rankings(cases, {"ours": right, "theirs": backward})
    ours, theirs = every.tools
    assert (ours.modelled, ours.order_accuracy, ours.top1_regret) == (3, 1.0, 0.0)
    assert (theirs.modelled, theirs.order_accuracy) == (2, 0.0)
    assert theirs.top1_regret == pytest.approx(0.5)
    assert theirs.top3_regret == pytest.approx(0.2)


CALCULON = """
class Llm:
    class Error(Exception): pass
    class Application:
        def __init__(self, fields): self.fields = fields
    class Execution:
        @staticmethod
        def from_json(fields): return fields
    def __init__(self, application, log): self.application = application
    def compile(self, system, plan): self.plan = plan
    def run(self, system):
        if self.plan["tensor_par"] == 8: raise Llm.Error("too many heads")
    def get_total_time(self): return 1.5
    def get_mem_tier1_cap_req(self): return 2.0**30
"""


def test_a_peer_answers_in_lines_from_a_process_of_its_own(tmp_path: Path) -> None:
    """Against a package of our own making with the calls of Calculon that are used."""
    package = tmp_path / "calculon"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "llm.py").write_text(CALCULON)
    (package / "system.py").write_text("class System:\n    def __init__(self, values): pass\n")
    (tmp_path / "systems").mkdir()
    (tmp_path / "systems" / "a100_80g.json").write_text('{"mem1": {"GiB": 80, "GBps": 2048}}')
    asked_file = tmp_path / "asked.jsonl"
    asked_file.write_text("".join(json.dumps(asked(case(f"row-{tp}", tp=tp))) + "\n" for tp in (2, 8)))
    script = Path(projector_calculon.__file__)
    found = run([sys.executable, str(script), str(tmp_path), str(asked_file)], {"PYTHONPATH": ""})
    assert not isinstance(found, str), found
    assert found.peak_bytes > 0
    answers = answers_of(found.lines)
    assert answers["row-8"] == "too many heads"
    assert answers["row-2"] == Answer(pytest.approx(1.5 / (2048 * 64)), 2.0**30, True, ())


def test_every_peer_has_a_script_and_says_how_it_is_configured():
    for peer in PEERS:
        assert (Path(projector_calculon.__file__).parent / peer.script).is_file()
        assert peer.settings
