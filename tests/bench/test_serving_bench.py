"""The comparison of serving projectors: which points are asked, and what is made of the answers."""

import json

import pytest
from serving_aiconfigurator import answer as ask_aiconfigurator
from serving_aiconfigurator import arguments_of

from tests.bench.projector_peers import Run
from tests.bench.serving_bench import AICONFIGURATOR, GENZ, OURS, Result, comparisons, lines, refusals, speeds
from tests.bench.serving_questions import FILE, Question, questions

HEADER = (
    "id,silicon_data_source,backend,backend_version,model_path,system,precision,mode,isl,osl,gemm_quant_mode,"
    "moe_quant_mode,batch_size,tp_size,pp_size,attention_dp_size,moe_tp_size,moe_ep_size,"
    "prefill_tp_size,decode_tp_size,silicon_ttft_ms,silicon_tpot_ms"
)


def point(number: int, mode: str = "agg", batch: str = "8", adp: str = "2") -> str:
    stated = f"p{number},made up; silicon_concurrency=16,vllm,1,m/llama,h100_sxm,fp8,{mode},1024,128,fp8,fp8"
    return f"{stated},{batch},4,1,{adp},1,1,,8,100.5,10.25"


@pytest.fixture
def folder(tmp_path):
    points = [*(point(number) for number in range(10)), point(10, "disagg", "", ""), point(11, "disagg", "", "")]
    (tmp_path / FILE).write_text("\n".join((HEADER, *points)) + "\n", encoding="utf-8")
    return tmp_path


def test_some_points_of_every_kind_are_asked_always_the_same(folder):
    assert [one.id for one in questions(folder, 2)] == ["p0", "p5", "p10", "p11"]
    assert questions(folder, 2) == questions(folder, 2)
    assert len(questions(folder, 0)) == 12


def test_a_point_is_read_as_it_is_printed(folder):
    first = questions(folder, 1)[0]
    assert (first.batch, first.concurrency, first.attention_dp, first.ttft_ms, first.tpot_ms) == (
        8,
        16,
        2,
        100.5,
        10.25,
    )
    pooled = questions(folder, 1)[1]
    assert (pooled.batch, pooled.pools) == (None, {"prefill_tp_size": None, "decode_tp_size": 8})


def test_the_peer_is_asked_with_measured_tables_first(folder):
    asked = []

    def estimate(model, system, *, database_mode, **keywords):
        asked.append(database_mode)
        if database_mode == "SILICON":
            raise LookupError("no table")
        return type("Answer", (), {"ttft": 1.0, "tpot": 2.0})

    question = vars(questions(folder, 1)[0])
    assert ask_aiconfigurator(estimate, question) == (1.0, 2.0, "HYBRID")
    assert asked == ["SILICON", "HYBRID"]
    with pytest.raises(ValueError, match="pools are not stated"):
        arguments_of(vars(questions(folder, 1)[1]))


def asked_and_answered(folder):
    asked = questions(folder, 4)
    exact = {one.id: {"id": one.id, "ttft_ms": one.ttft_ms, "tpot_ms": one.tpot_ms, "how": "SILICON"} for one in asked}
    half = {key: line | {"tpot_ms": line["tpot_ms"] / 2} for key, line in exact.items()}
    ours = {key: line | {"how": "dense" if key in ("p10", "p11") else "experts"} for key, line in exact.items()}
    return asked, {OURS: ours, AICONFIGURATOR.title: half, GENZ.title: {}}


def test_errors_are_of_points_that_both_model(folder):
    asked, answers = asked_and_answered(folder)
    del answers[AICONFIGURATOR.title]["p0"]
    found = comparisons(asked, answers)
    whole = found[0]
    assert [(error.tool, error.points) for error in whole.errors[:2]] == [(OURS, 5), ("aiconfigurator", 5)]
    assert [error.mape_frac for error in whole.errors[:2]] == [0.0, 0.5]
    assert [one.errors[0].points for one in found[1:3]] == [2, 3]
    assert not any("GenZ" in one.kind for one in found)


def test_speed_and_refusals_are_counted():
    searched = Run(({"plans": 100, "good": 90, "cpu_s": 0.001},), 2**20)
    alone = Run(({"id": "a", "tpot_ms": 1.0, "cpu_s": 0.5}, {"id": "b", "refused": "no table: x", "cpu_s": 9.0}), 2**21)
    ours, theirs = speeds(searched, {"GenZ": alone})
    assert ours.us_a_candidate == pytest.approx(10)
    assert (theirs.candidates, theirs.us_a_candidate, theirs.peak_mib) == (1, 5e5, 2.0)
    assert refusals({"a": alone.lines[0], "b": alone.lines[1]}) == {"no table": 1}


def test_the_result_prints(folder):
    asked, answers = asked_and_answered(folder)
    ours = speeds(Run(({"plans": 1, "good": 1, "cpu_s": 1.0},), 1), {})
    text = "\n".join(lines(Result(len(asked), {OURS: 6}, {}, tuple(comparisons(asked, answers)), tuple(ours), ("x",))))
    assert "all that aiconfigurator models" in text
    assert "50.0%" in text
    json.dumps(text)
    assert all(isinstance(one, Question) for one in asked)
