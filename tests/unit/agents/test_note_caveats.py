"""What a citation says against itself: out of date, worked for another chip, contradicted by another note."""

from dataclasses import replace

from advisor_examples import candidate, note, stand
from test_planning_standings import Books, planned, request

from agents.planning.note_disputes import cited, disputed
from projector.specs.plan import ParallelismPlan

PLAN = ParallelismPlan(dp=16, tp=4)


class Marked(Books):
    """The deciding notes with figures of one chip, and why they are stale."""

    def __init__(self, *, chips=(), stale=""):
        super().__init__()
        self.chips, self.stale = chips, stale

    def search(self, query, **filters):
        return tuple(replace(one, chips=self.chips, stale=self.stale) for one in super().search(query, **filters))


def citations(knowledge, asked=None):
    return [citation for proposal in planned(knowledge, asked).proposals for citation in proposal.citations]


def test_a_note_worked_for_another_chip_says_so():
    for citation in citations(Marked(chips=("b200-sxm", "tpu-v5p"))):
        assert citation.other_hardware == "worked with figures of b200-sxm, tpu-v5p, not of h100-sxm"
        assert citation.other_hardware in citation.caveats


def test_a_note_worked_for_this_chip_or_for_none_has_nothing_to_say():
    assert {one.other_hardware for one in citations(Marked(chips=("b200-sxm", "h100-sxm")))} == {""}
    assert {one.other_hardware for one in citations(Marked())} == {""}
    assert {one.other_hardware for one in citations(Marked(chips=("tpu-v5p",)), request(chip="tpu-v5p"))} == {""}


def test_a_stale_note_may_be_cited_and_takes_no_stand():
    result = planned(Marked(stale="valid until 2020-01-01"))
    found = [citation for proposal in result.proposals for citation in proposal.citations]
    assert found
    assert all("stale: valid until 2020-01-01" in citation.caveats for citation in found)
    assert not any(entry.ref.startswith("note.") for entry in result.evidence)


def test_notes_that_disagree_about_a_plan_name_each_other():
    plan = stand(candidate(1, PLAN, 0.1, levers=("fsdp",)), holds=True, chunk="for")
    plan = stand(plan, holds=False, chunk="against")
    notes = [note("for", ["fsdp"]), note("against", ["fsdp", "overlap"])]
    assert disputed(plan, notes) == {"for": ("against",), "against": ("for",)}
    (citation,) = cited(["for"], plan, notes)
    assert citation.contradicts == ("against",)
    assert citation.caveats == ("contradicted for this plan by against",)


def test_notes_on_different_levers_or_of_one_mind_contradict_nobody():
    plan = stand(candidate(1, PLAN, 0.1, levers=("fsdp", "overlap")), holds=True, chunk="a")
    other_lever = stand(plan, holds=False, chunk="b")
    assert disputed(other_lever, [note("a", ["fsdp"]), note("b", ["overlap"])]) == {}
    one_mind = stand(plan, holds=True, chunk="b")
    assert disputed(one_mind, [note("a", ["fsdp"]), note("b", ["fsdp"])]) == {}
    unchanged = stand(
        stand(candidate(1, PLAN, 0.1, levers=("tp_all_reduce",)), holds=True, chunk="a"), holds=False, chunk="b"
    )
    assert disputed(unchanged, [note("a", ["fsdp"]), note("b", ["fsdp"])]) == {}


def test_how_many_notes_a_question_brings_can_be_asked_for():
    asked = request().model_copy(update={"notes_per_search": 2})
    wanted = []

    class Counting(Books):
        def search(self, query, *, k=3, **filters):
            wanted.append(k)
            return super().search(query, k=k, **filters)

    planned(Counting(), asked)
    assert set(wanted) == {2}
    wanted.clear()
    planned(Counting())
    assert set(wanted) == {4, 6}
