"""What the rules advisor says, and what the validation refuses from anybody."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from advisor_examples import CURRENT, candidate, note, question

from agents.advisors.protocol import AdvisorChoice
from agents.advisors.rules import RulesAdvisor
from agents.advisors.validate import problems_of
from projector.specs.plan import ParallelismPlan

FASTER = candidate(1, ParallelismPlan(tp=4, dp=16), 0.25, relieving=True)
OTHER = candidate(2, ParallelismPlan(tp=2, dp=32), 0.10)
SAME = candidate(3, ParallelismPlan(tp=4, pp=2, dp=8), 0.002)
QUESTION = question([FASTER, OTHER, SAME], notes=[note("tp-note:0", ["tensor_parallelism"])])
ANSWER = RulesAdvisor().choose(QUESTION)


def changed(pick: int = 0, **fields) -> AdvisorChoice:
    """The valid answer with one pick altered."""
    picks = list(ANSWER.picks)
    picks[pick] = picks[pick].model_copy(update=fields)
    return AdvisorChoice(picks=tuple(picks))


def test_the_rules_answer_is_valid():
    assert problems_of(QUESTION, ANSWER) == ()


def test_the_rationale_is_composed_from_the_numbers():
    assert ANSWER.picks[0].rationale == (
        "The measured step is limited by exposed tensor-parallel communication, "
        "which a change of tensor parallelism relieves here. "
        "tensor_parallelism works. "
        "The step is projected to take 8.00 s instead of 10.00 s (-20.0 %); "
        "trained tokens a second and chip improves by 25.0 % against the current plan (dp 8 tp 8). "
        "The fullest chip needs 40.0 GB of 80.0 GB."
    )


def test_a_gain_below_the_noise_is_called_none():
    assert "treat it as no gain" in ANSWER.picks[2].rationale


def test_evidence_and_citations_are_those_of_the_cause_and_the_lever():
    assert ANSWER.picks[0].evidence == ("ev-axis-tp", "ev-exposed-communication", "ev-c1-gain")
    assert ANSWER.picks[0].citations == ("tp-note:0",)


def test_what_no_layout_can_fix_is_said():
    answer = RulesAdvisor().choose(question([FASTER, OTHER], layout_relieves=False))
    assert any("no change of layout removes it" in risk for risk in answer.picks[1].risks)


def test_keeping_is_explained():
    kept = question([candidate(1, CURRENT, 0.0), candidate(2, ParallelismPlan(tp=4, dp=16), -0.2)])
    assert RulesAdvisor().choose(kept).picks[0].rationale.startswith("No other feasible plan is projected to improve")


def test_a_change_of_numerics_is_a_risk():
    precise = candidate(1, CURRENT.model_copy(update={"compute_dtype": "fp8"}), 0.3, levers=["precision"])
    answer = RulesAdvisor().choose(question([precise]))
    assert "Numerics change (precision): check quality before adopting." in answer.picks[0].risks


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (AdvisorChoice(picks=ANSWER.picks[:2]), "2 candidates were picked, 3 are wanted"),
        (changed(candidate="c9"), "candidate 'c9' is not on the list"),
        (changed(candidate="c2"), "candidate c2 is picked twice"),
        (changed(evidence=("ev-invented",)), "c1: evidence 'ev-invented' does not exist"),
        (changed(evidence=()), "c1: no evidence is named"),
        (changed(citations=("made-up:1",)), "c1: citation 'made-up:1' does not exist"),
        (changed(rationale="  "), "c1: the rationale is empty"),
        (changed(rationale="It is 37 % faster."), "c1: the number 37 has no source"),
        (changed(rationale="Step 8.00 s, later 7.31 s."), "c1: the number 7.31 has no source"),
        (changed(risks=("Needs 79.2 GB.",)), "c1: the number 79.2 has no source"),
    ],
)
def test_what_is_refused(answer, problem):
    assert problem in problems_of(QUESTION, answer)


@pytest.mark.parametrize(
    "text",
    [
        "The step takes 8.0 s, a gain of 25 %.",
        "From tp 8 to tp 4 on h100-sxm with gpt-oss-120b and v5.0.1.",
        "40.0 of 80 GB are used.",
    ],
)
def test_sourced_numbers_and_names_pass(text):
    assert problems_of(QUESTION, changed(rationale=text)) == ()


def test_the_same_layout_twice_is_refused_while_another_is_left():
    twin = candidate(4, FASTER.plan.model_copy(update={"recompute": "full"}), 0.2)
    asked = question([FASTER, twin, OTHER, SAME], wanted=3)
    answer = AdvisorChoice(
        picks=tuple(
            ANSWER.picks[0].model_copy(
                update={"candidate": entry.id, "evidence": (entry.evidence[0].id,), "citations": ()}
            )
            for entry in (FASTER, twin, SAME)
        )
    )
    assert "2 distinct layouts are picked, 3 are available" in problems_of(asked, answer)


def test_the_rules_answer_is_the_same_in_another_process():
    """Sets and dicts of names must not leak their order: another hash seed, the same answer."""
    script = (
        "import sys; from agents.advisors.protocol import AdvisorInput; from agents.advisors.rules import RulesAdvisor;"
        "print(RulesAdvisor().choose(AdvisorInput.model_validate_json(sys.stdin.read())).model_dump_json())"
    )
    root = Path(__file__).parents[3]
    asked = json.dumps(QUESTION.model_dump(mode="json", round_trip=True))
    for seed in ("1", "2"):
        ran = subprocess.run(
            [sys.executable, "-c", script],
            input=asked,
            capture_output=True,
            text=True,
            check=True,
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        assert AdvisorChoice.model_validate_json(ran.stdout) == ANSWER
