"""`shardwise eval advice` over workloads: keys, folds, parts left out, chances against outcomes."""

import json

import numpy as np
import pytest
from evaluation_examples import row_values, text_of, workload_values

from agents.evaluation.advice import choices_of, published_of
from agents.evaluation.advice_parts import Part, PartialAdvisor, Setup, hidden
from agents.evaluation.advice_report import order_only
from agents.evaluation.advice_run import Question, advice, practice_model
from agents.evaluation.calibration import brier, calibration_error, platt, reliability
from agents.evaluation.practice_fit import blind_models
from agents.evaluation.rows import read_rows
from agents.evaluation.workloads import read_workloads
from agents.planning.graph import run_plan
from agents.planning.state import NoKnowledge
from agents.practice.features import GAIN
from agents.practice.model import shipped_model
from agents.request import PlanRequest
from app.cli import main
from knowledge_base.history_files import bundled_history


@pytest.fixture(scope="module")
def material():
    names = ("one", "two", "three")
    rows = [row_values(f"row-{name}", adopted={"tp": tp}) for name, tp in zip(names, (1, 2, 2), strict=True)]
    workloads = [
        workload_values(workload_id=name, family=name, row_ids=[f"row-{name}"], expert_row_ids=[f"row-{name}"])
        for name in names
    ]
    return (
        tuple(read_workloads(text_of(*workloads), "workloads.jsonl")),
        tuple(read_rows(text_of(*rows), "training.jsonl")),
    )


def past(question):
    return bundled_history().past(question, k=50)


def report(material, *ablated, **changes):
    question = Question("pretrain", "unknown", Setup(frozenset(ablated)), **changes)
    return advice(*material, question, NoKnowledge(), past)


def test_every_workload_is_asked_of_the_service_and_counted_as_topk_counts(material):
    found = report(material, with_workloads=True)
    assert (found.n, found.phase, found.history, found.diversity) == (3, "pretrain", True, True)
    assert all(len(one.proposals) == 3 for one in found.workloads)
    assert found.legal_share == 1.0
    assert found.confidence.n == 0 or found.confidence.ece is not None
    assert (found.unseen_n, found.order_only) == (3, ())
    tried = {one.stratum: one for one in found.efforts}["all"]
    assert tried.exhaustive is not None
    assert tried.random == (tried.exhaustive + 1) / 2


def test_every_part_can_be_left_out_and_its_cost_is_paired(material):
    found = report(material, every_part=True)
    assert {one.left_out for one in found.ablations} == {
        "knowledge", "history", "practice", "projector", "diagnosis", "diversity", "llm",
    }  # fmt: skip
    model = [one for one in found.ablations if one.left_out == "llm"]
    assert all(one.top1_cost == 0 and one.note for one in model)


def test_a_group_that_the_shipped_weights_have_seen_is_advised_by_others(material):
    workloads, rows = material
    known = {row.id: row for row in rows}
    choices = list(choices_of(published_of(workloads, known, ("pretrain",)), known, "unknown", past, print).values())
    seen = shipped_model().model_copy(update={"groups": (choices[0].group,)})
    models = blind_models(choices, seen)
    assert models[choices[0].group].data == "2 workloads of 2 other groups"
    assert all(models[one.group] is seen for one in choices[1:])
    told = order_only(choices, choices, with_past=False)
    assert {one.left_out for one in told} == {"group", "group and source"}


def test_without_practice_the_projector_orders(material):
    found = report(material, "practice", "history", with_workloads=True)
    assert found.ablated == ("history", "practice")
    for one in found.workloads:
        steps = [proposal.step_time_s for proposal in one.proposals]
        assert steps[0] <= 1.06 * min(steps)


def test_a_group_of_its_own_is_hidden_from_history():
    class Asked:
        def __call__(self, question):
            self.question = question
            return ()

    from knowledge_base.past import PastQuestion

    asked = Asked()
    hidden(asked, PastQuestion(phase="training"), "llama|h100-sxm")
    assert asked.question.hide_groups == {"llama|h100-sxm"}


def test_the_weights_that_ship_are_fitted_for_both_kinds_of_request(material):
    model = practice_model(*material, past, "examples")
    assert len(model.sets) == 4
    assert all(one.weights[GAIN] == pytest.approx(17.0, abs=0.01) for one in model.sets)
    assert all(one.calibration is None for one in model.sets)


def test_chances_are_corrected_towards_what_happened():
    draw = np.random.default_rng(3)
    shares = draw.uniform(0.05, 0.95, size=400)
    outcomes = [bool(value) for value in draw.uniform(size=400) < shares**2]
    found = platt(shares.tolist(), outcomes)
    raw = calibration_error(reliability(shares.tolist(), outcomes))
    corrected = [found.chance(share) for share in shares]
    assert calibration_error(reliability(corrected, outcomes)) < raw
    assert brier(corrected, outcomes) < brier(shares.tolist(), outcomes)
    assert min(one.n for one in reliability(corrected, outcomes)) >= 20
    assert platt([0.5] * 39, [True] * 39) is None


def test_the_command_prints_one_document_and_refuses_a_part_that_is_none(capsys, tmp_path):
    (tmp_path / "training.jsonl").write_text(text_of(row_values()))
    (tmp_path / "workloads.jsonl").write_text(text_of(workload_values(row_ids=["row-1"])))
    where = str(tmp_path / "workloads.jsonl")
    assert main(["eval", "advice", where, "--ablate", "knowledge", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found)[:3] == ["n", "nontrivial_n", "nontrivial_top1"]
    assert found["ablated"] == ["knowledge"]
    assert main(["eval", "advice", where, "--ablate", "knowledge,diversity"]) == 0
    assert "Stated chances against outcomes" in capsys.readouterr().out
    assert main(["eval", "advice", where, "--ablate", "knowlege"]) != 0
    assert "knowledge" in capsys.readouterr().err


def test_a_part_that_is_left_out_is_not_asked():
    """Practice puts sharded data parallelism alone first, the projector by itself tensor parallelism of 2 beside it."""
    body = {
        "workload": {"model": "llama-3.1-8b", "phase": "training", "seq_len": 8192, "global_batch": 128},
        "cluster": {"chip": "h100-sxm", "chips": 32},
    }

    def first(*ablated: Part) -> int:
        advisor = PartialAdvisor(Setup(frozenset(ablated)))
        result = run_plan(PlanRequest.model_validate(body), None, knowledge=NoKnowledge(), advisor=advisor)
        return result.proposals[0].plan.tp

    assert (first(), first("practice")) == (1, 2)
