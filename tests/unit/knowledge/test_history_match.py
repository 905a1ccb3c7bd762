"""Past optimisations: what is exact, what is only near, what is old, and what contradicts what."""

import pytest
from history_examples import MIXTURE, change, published, question

from knowledge_base.history_match import History
from knowledge_base.history_parts import PastLayout
from knowledge_base.past import PastCase, group_of
from projector.errors import InvalidDescription, UnknownName
from projector.specs.plan import ParallelismPlan


def kinds(history: History, asked=None, **options):
    return [(found.case.id, found.match) for found in history.past(asked or question(), **options)]


def test_the_same_job_comes_first_and_is_exact():
    history = History([published("other-chips", chips=128, layout={"tp": 4}), published("same")])
    assert kinds(history) == [("same", "exact"), ("other-chips", "same model")]


def test_other_hardware_is_never_exact_and_says_so():
    (found,) = History([published("elsewhere", chip="h200")]).past(question())
    assert found.match == "same model"
    assert "h200 instead of h100-sxm" in found.differs


def test_another_size_of_the_cluster_is_never_exact_and_says_so():
    (found,) = History([published("larger", chips=512, layout={"dp": 128, "tp": 4})]).past(question())
    assert (found.match, found.differs) == ("same model", ("512 chips instead of 64",))


def test_an_exact_match_still_says_what_its_job_had_otherwise():
    (found,) = History([published("longer", seq_len=8192, precision="fp8")]).past(question())
    assert found.match == "exact"
    assert found.differs == ("sequences of 8,192 tokens instead of 4,096", "fp8 instead of bf16")


def test_a_change_is_exact_only_from_the_same_baseline():
    history = History([change("faster")])
    from_it = question(baseline=ParallelismPlan(dp=32, tp=2))
    elsewhere = question(baseline=ParallelismPlan(dp=64))
    assert kinds(history, from_it) == [("faster", "exact")]
    (found,) = history.past(elsewhere)
    assert found.match == "same model"
    assert found.differs == ("it started from dp 32 tp 2 instead of dp 64",)
    (unknown,) = history.past(question())
    assert unknown.differs == ("it started from dp 32 tp 2; your current layout is not known",)


def test_one_shape_under_two_names_is_one_model():
    (found,) = History([published("renamed", model="tuned-8b", family="tuned-8b")]).past(question())
    assert found.match == "exact"


def test_one_name_with_other_numbers_is_another_model():
    larger = published("larger").architecture.model_copy(update={"layers": 40})
    (found,) = History([published("larger", architecture=larger)]).past(question())
    assert found.match == "same chip"


def test_layouts_of_a_mixture_of_experts_say_nothing_of_a_dense_model():
    expert = published("experts", model="moe", family="moe", architecture=MIXTURE)
    assert kinds(History([expert])) == []


def test_training_says_nothing_of_serving():
    assert kinds(History([published("trained")]), question(phase="serving", seq_len=None, global_batch=None)) == []


def test_a_change_against_another_bottleneck_of_another_model_is_left_out():
    other = change(
        "other", model="else", family="else", architecture=published("x").architecture.model_copy(update={"layers": 30})
    )
    assert kinds(History([other]), question(bottleneck="communication")) == [("other", "same chip")]
    assert kinds(History([other]), question(bottleneck="memory")) == []


def test_a_model_nobody_knows_gets_what_ran_on_its_chip():
    asked = question(model=None, architecture={}, seq_len=None, global_batch=None)
    (found,) = History([published("here")]).past(asked)
    assert (found.match, found.differs[0]) == ("same chip", "model made-up-8b; yours is not known")


def test_a_far_case_of_another_model_is_not_shown():
    giant = {"parameters": 1e12, "active_parameters": 1e12, "layers": 120, "hidden_size": 20480, "heads": 160}
    far = published("far", model="giant", family="giant", architecture=giant, chips=8192, chip="tpu-v5e", layout={})
    assert kinds(History([far])) == []


def test_one_layout_on_one_machine_is_told_once():
    history = History([published("long", seq_len=8192), published("short"), published("tiny", global_batch=16)])
    assert kinds(history) == [("short", "exact")]


def test_hidden_groups_and_sources_are_not_seen():
    history = History([published("same"), published("other", chip="h200")])
    hidden = frozenset({"made-up-8b|H100_SXM"})
    assert kinds(history, question(hide_groups=hidden)) == [("other", "same model")]
    assert kinds(history, question(hide_sources=frozenset({"https://example.org/report"}))) == []


def test_a_group_holds_the_variants_of_a_chip():
    assert group_of("Made Up-8b", "H100-SXM-96GB-HBM2e(500W)") == group_of("made-up-8b", "h100_sxm")


def test_an_older_release_of_the_same_workload_is_stale():
    old, new = published("old", release="0.9", layout={"tp": 8}), published("new", release="0.12.1")
    found = {one.case.id: one.stale for one in History([old, new]).past(question())}
    assert found == {"new": "", "old": "older than new, of the same workload (0.12.1)"}


def test_what_cannot_be_dated_is_not_called_stale():
    source = {"title": "a report", "url": None, "date": None}
    cases = [published(name, release=None, source=source, layout={"tp": tp}) for name, tp in (("a", 4), ("b", 8))]
    assert [one.stale for one in History(cases).past(question())] == ["", ""]


def test_an_outcome_a_user_recorded_replaces_an_older_report():
    mine = published("mine", origin="user", recorded_at="2026-11-01T00:00:00Z", layout={"tp": 8})
    found = {one.case.id: bool(one.stale) for one in History([published("report"), mine]).past(question())}
    assert found == {"report": True, "mine": False}


WORSE = {"metric": "step time", "outcome": "worse", "ratio": 0.8}


def test_two_changes_with_opposite_outcomes_are_both_shown_and_say_what_differs():
    moved = [{"field": "tp", "before": "2", "after": "4"}]
    hurt = change(
        "hurt", moves=moved, chips=128, baseline={"dp": 64, "tp": 2}, layout={"dp": 32, "tp": 4}, effect=WORSE
    )
    found = {one.case.id: one for one in History([change("help"), hurt]).past(question())}
    assert [one.case_id for one in found["help"].contradicts] == ["hurt"]
    assert found["help"].contradicts[0].differs == ("changed tp 2 -> 4", "128 chips instead of 64")
    assert [one.case_id for one in found["hurt"].contradicts] == ["help"]


def test_the_opposite_move_with_the_opposite_outcome_agrees():
    back = change("back", baseline={"dp": 16, "tp": 4}, layout={"dp": 32, "tp": 2}, effect=WORSE)
    assert [one.contradicts for one in History([change("help"), back]).past(question())] == [(), ()]


def test_a_case_that_contradicts_is_shown_in_place_of_the_last():
    near = [published(f"near-{tp}", layout={"tp": tp}) for tp in (1, 2, 8)]
    hurt = change("hurt", chips=4096, baseline={"tp": 2}, layout={"tp": 4}, effect=WORSE)
    asked = question(baseline=ParallelismPlan(dp=32, tp=2))
    names = [name for name, _ in kinds(History([*near, change("help"), hurt]), asked, k=4)]
    assert len(names) == 4
    assert {"help", "hurt"} <= set(names)


def test_questions_out_of_range_are_refused():
    with pytest.raises(InvalidDescription, match="k 0 is not within 1 to 50"):
        History([published("one")]).past(question(), k=0)
    with pytest.raises(UnknownName, match="unknown past case 'onne'"):
        History([published("one")]).get("onne")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"layout": {"tp": 3}}, "tp \\* pp \\* cp = 3 does not divide 64 devices"),
        ({"layout": {"dp": 8, "tp": 4}}, "dp \\* tp \\* pp \\* cp = 32, not 64 devices"),
        ({"layout": {"dp": 16, "tp": 4, "fsdp": 5}}, "fsdp 5 does not divide dp 16"),
        ({"layout": {"dp": 16, "tp": 4, "ep": 128}}, "ep \\* etp = 128 does not divide"),
        ({"chip": "h100-sxn"}, "unknown chip 'h100-sxn'"),
        ({"levers": ("tensor_paralelism",)}, "unknown lever 'tensor_paralelism'; nearest known: tensor_parallelism"),
        ({"cause": "slow"}, "cause"),
        ({"task": "inference"}, "inference is no training task"),
        ({"cause": "exposed_tp", "bottleneck": "memory"}, "exposed_tp is a communication bottleneck"),
        ({"modle": "x"}, "modle"),
        ({"model": "two\nlines"}, "line break"),
        ({"effect": {"metric": "step time", "outcome": "improved"}}, "has no outcome"),
    ],
)
def test_a_case_that_cannot_be_is_refused(changes, says):
    with pytest.raises(ValueError, match=says):
        published("wrong", **changes)


def test_a_case_reads_as_one_line():
    case: PastCase = change("help")
    assert case.text == (
        "made-up-8b on 64 h100-sxm: tensor_parallelism; step time from 2 to 1.6 s: better, 1.25x "
        "(a report, 2025-06-01, https://example.org/report)"
    )


@pytest.mark.parametrize(
    ("layout", "agrees"),
    [
        ({"tp": 4}, True),
        ({"tp": 4, "dp": 4}, True),
        ({"tp": 4, "dp": 2}, False),
        ({"tp": 8}, False),
        ({"tp": 4, "attention_dp": 4}, False),
        ({"tp": 4, "ep": 4}, False),
    ],
)
def test_a_degree_that_is_not_stated_is_one_and_the_number_of_replicas_is_open(layout, agrees):
    plan = ParallelismPlan(phase="serving", tp=4, dp=4)
    assert PastLayout.model_validate(layout).agrees_with(plan) is agrees
