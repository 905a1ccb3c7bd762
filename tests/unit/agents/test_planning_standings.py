"""What retrieved notes say of plans, at the plans' own numbers, and what that changes."""

import pytest

from agents.advisors.rules import RulesAdvisor
from agents.planning.graph import run_plan
from agents.planning.note_symbols import KEPT, SYMBOLS, evaluable, values_for
from agents.planning.resolve import resolve
from agents.planning.standings import LEAST_SIMILARITY, stand_on
from agents.planning.state import NoKnowledge
from agents.request import PlanRequest
from knowledge_base.note import NOTES_FOLDER, read_notes
from knowledge_base.retrieve import RetrievedNote
from knowledge_base.rule import rule_of
from projector.specs.plan import ParallelismPlan

NOTES = {note.id: note for note in read_notes(NOTES_FOLDER)}
RULES = {name: rule_of(note) for name, note in NOTES.items()}
DECIDING = {name for name, note in NOTES.items() if note.decides == "plan"}
TENSOR = "tensor-parallelism-with-sequence-parallelism"


SHARDED = {"dp": 64, "fsdp": 64, "zero_stage": 3, "grad_accum": 4}


def request(chip="h100-sxm", chips=64, model="llama-3.1-8b", **current):
    return PlanRequest.model_validate(
        {
            "workload": {"model": model, "phase": "training", "seq_len": 4096, "global_batch": 256},
            "cluster": {"chip": chip, "chips": chips},
            "current_plan": {
                "phase": "training",
                **(current or {"dp": 64, "fsdp": 64, "zero_stage": 3, "grad_accum": 4}),
            },
        }
    )


class Books(NoKnowledge):
    """Every deciding note about a lever that is asked for, all equally near."""

    def __init__(self, similarity: float = 0.6, only: frozenset[str] = frozenset(DECIDING)) -> None:
        self.similarity, self.only = similarity, only

    def search(self, query, *, phase, causes=(), levers=(), hardware_kind=None, k=3):
        del query, k
        return tuple(
            RetrievedNote(
                note_id=name,
                chunk_id=f"{name}.claim.0",
                title=NOTES[name].title,
                quote="a passage",
                sources=("https://example.org",),
                similarity=self.similarity,
                levers=NOTES[name].levers,
                causes=NOTES[name].causes,
                rule=RULES[name],
            )
            for name in sorted(self.only)
            if phase in NOTES[name].phases
            and hardware_kind in NOTES[name].hardware
            and (set(causes) & set(NOTES[name].causes) or set(levers) & set(NOTES[name].levers))
        )


def planned(knowledge, asked=None):
    return run_plan(asked or request(), None, knowledge=knowledge, advisor=RulesAdvisor())


def test_every_note_that_decides_is_written_in_symbols_planning_knows():
    assert len(DECIDING) >= 13
    assert [name for name in sorted(DECIDING) if not evaluable(RULES[name])] == []


def test_every_known_symbol_is_used_by_some_note():
    used = {(one.name, one.unit) for name in DECIDING for one in RULES[name].symbols}
    assert {(known.name, known.unit) for known in SYMBOLS} <= used
    assert {name for name, _ in used} >= KEPT


def test_the_numbers_are_those_of_the_plan_and_the_job():
    job = resolve(request(), None)
    plan = ParallelismPlan(dp=16, tp=4, micro_batch=2, grad_accum=8)
    values = values_for(RULES[TENSOR], plan, job)
    assert values is not None
    assert values["tp"] == 4
    assert values["tokens"] == 2 * 4096
    assert values["hidden_size"] == 4096
    assert values["link_gb_per_s_one_way"] == pytest.approx(450)
    assert values["peak_tflop_per_s"] == pytest.approx(989, abs=1)


def test_a_note_says_nothing_about_a_plan_that_makes_it_moot():
    job = resolve(request(), None)
    assert stand_on(RULES[TENSOR], ParallelismPlan(dp=64), job) is None
    assert stand_on(RULES["fsdp-full-sharding"], ParallelismPlan(dp=64, fsdp=8), job) is None, "within one node"
    assert stand_on(RULES["fsdp-full-sharding"], ParallelismPlan(dp=64, fsdp=64), job) is not None
    torus = resolve(request(chip="tpu-v5p"), None)
    assert stand_on(RULES[TENSOR], ParallelismPlan(dp=16, tp=4), torus) is None, "a torus has no switch"
    assert stand_on(RULES["torus-axis-mapping"], ParallelismPlan(dp=16, tp=4), torus) is not None


def test_a_note_can_hold_for_one_plan_and_not_for_another():
    job = resolve(request(chip="tpu-v5p"), None)
    narrow, wide = (stand_on(RULES["torus-axis-mapping"], ParallelismPlan(dp=64 // tp, tp=tp), job) for tp in (2, 32))
    assert narrow is not None
    assert narrow[0]
    assert narrow[1].startswith("model_axis < largest_axis, with largest_axis = ")
    assert wide is not None
    assert not wide[0]


def test_what_a_note_says_is_evidence_and_is_cited():
    result = planned(Books())
    stands = {entry.ref.removeprefix("note."): entry for entry in result.evidence if entry.ref.startswith("note.")}
    assert stands
    cited = {citation.chunk_id for proposal in result.proposals for citation in proposal.citations}
    assert set(stands) <= cited
    told = " ".join(proposal.rationale for proposal in result.proposals)
    assert "holds for it (" in told or "speaks against it (" in told


def test_knowledge_orders_what_is_projected_alike_and_nothing_else():
    on, off = planned(Books()), planned(NoKnowledge())
    best = max(proposal.expected.objective_frac for proposal in off.proposals)
    for proposal in on.proposals[:1]:
        assert 1 + proposal.expected.objective_frac >= (1 + best) / 1.05 / 1.01
    assert {proposal.projections[0].fit for proposal in on.proposals} == {"fits"}


def test_notes_that_are_far_from_the_question_or_only_advise_change_nothing():
    off = [proposal.plan for proposal in planned(NoKnowledge()).proposals]
    far = planned(Books(similarity=LEAST_SIMILARITY - 0.01))
    assert [proposal.plan for proposal in far.proposals] == off
    advice = planned(Books(only=frozenset(set(NOTES) - DECIDING)))
    assert [proposal.plan for proposal in advice.proposals] == off
    assert not any(entry.ref.startswith("note.") for entry in advice.evidence)
