"""The ranking rule, one example a clause."""

from advisor_examples import CURRENT, candidate, note, question, stand

from agents.advisors.ranking import rank
from projector.specs.plan import ParallelismPlan

TP4 = ParallelismPlan(tp=4, dp=16)
TP2 = ParallelismPlan(tp=2, dp=32)
PP2 = ParallelismPlan(tp=4, pp=2, dp=8)
PP4 = ParallelismPlan(tp=2, pp=4, dp=8)


def order(*candidates, **options):
    return [entry.id for entry in rank(question(candidates, **options))]


def test_the_projected_gain_decides():
    assert order(
        candidate(1, TP4, 0.30), candidate(2, TP2, 0.20), candidate(3, PP2, 0.10), candidate(4, PP4, 0.05)
    ) == [
        "c1",
        "c2",
        "c3",
    ]


def test_a_plan_that_relieves_the_cause_goes_first_within_five_percent():
    assert order(candidate(1, PP2, 0.30), candidate(2, TP4, 0.27, relieving=True)) == ["c2", "c1"]


def test_a_clearly_faster_plan_is_not_hidden():
    assert order(candidate(1, PP2, 0.40), candidate(2, TP4, 0.27, relieving=True)) == ["c1", "c2"]


def test_near_ties_go_to_less_effort_then_fewer_changes():
    flag = candidate(2, TP4, 0.296, effort="flag")
    assert order(candidate(1, TP2, 0.300), flag) == ["c2", "c1"]
    assert order(candidate(1, TP2, 0.300, extra_changes=2), candidate(2, TP4, 0.296)) == ["c2", "c1"]


def test_the_last_tenth_of_memory_is_not_spent_on_a_few_percent():
    roomy = candidate(2, TP4, 0.27, memory_gb=60)
    assert order(candidate(1, TP2, 0.30, memory_gb=78), roomy) == ["c2", "c1"]
    assert order(candidate(1, TP2, 0.40, memory_gb=78), roomy) == ["c1", "c2"]


def test_a_note_that_holds_or_does_not_decides_a_near_tie_and_nothing_more():
    first, second = candidate(1, TP2, 0.300), candidate(2, TP4, 0.296)
    assert order(first, second) == ["c1", "c2"]
    assert order(first, stand(second, holds=True)) == ["c2", "c1"]
    assert order(candidate(1, TP2, 0.300, effort="flag"), stand(second, holds=True)) == ["c1", "c2"], "no more work"
    assert order(stand(first, holds=False), second) == ["c2", "c1"]
    assert order(stand(first, holds=True), stand(second, holds=True)) == ["c1", "c2"]
    assert order(first, stand(candidate(2, TP4, 0.25), holds=True)) == ["c1", "c2"]


def test_a_note_that_was_only_retrieved_moves_nothing():
    pair = (candidate(1, TP2, 0.300, levers=["recompute"]), candidate(2, TP4, 0.296, levers=["fsdp"]))
    assert order(*pair, notes=[note("fsdp-1", ["fsdp"])]) == ["c1", "c2"]


def test_a_note_about_the_cause_makes_a_plan_relieving_where_the_projection_shows_it():
    fast, slower = candidate(1, TP2, 0.300), candidate(2, TP4, 0.260)
    holding = stand(slower, holds=True, relieves=True)
    assert order(fast, holding) == ["c1", "c2"], "the projection does not show the relief"
    assert order(fast, holding.model_copy(update={"shows_relief": True})) == ["c2", "c1"]
    clear = stand(candidate(2, TP4, 0.20), holds=True, relieves=True).model_copy(update={"shows_relief": True})
    assert order(fast, clear) == ["c1", "c2"], "a clear gain outweighs it"


def test_the_three_have_distinct_layouts_while_there_are_any():
    variants = [
        candidate(1, TP4, 0.30),
        candidate(2, TP4.model_copy(update={"recompute": "full"}), 0.29),
        candidate(3, TP4.model_copy(update={"micro_batch": 2}), 0.28),
        candidate(4, TP2, 0.10),
        candidate(5, PP2, 0.05),
    ]
    assert order(*variants) == ["c1", "c4", "c5"]
    assert order(*variants[:4]) == ["c1", "c4", "c2"]


def test_keep_leads_when_nothing_gains_beyond_the_noise():
    assert order(candidate(1, TP4, 0.008), candidate(2, CURRENT, 0.0), candidate(3, TP2, -0.1)) == ["c2", "c1", "c3"]


def test_keep_is_no_proposal_beside_better_plans():
    found = order(candidate(1, TP4, 0.3), candidate(2, TP2, 0.2), candidate(3, CURRENT, 0.0), candidate(4, PP2, -0.1))
    assert found == ["c1", "c2", "c4"]


def test_where_no_layout_helps_the_plain_relieving_lever_leads():
    graphs = candidate(3, CURRENT.model_copy(update={"micro_batch": 4}), 0.20, relieving=True, effort="flag")
    both = candidate(1, TP4.model_copy(update={"micro_batch": 4}), 0.40, relieving=True)
    assert order(both, candidate(2, TP2, 0.30), graphs, layout_relieves=False) == ["c3", "c1", "c2"]
