"""The accuracy report: what is counted, what is left out and why, memory, folds."""

import pytest
from evaluation_examples import LLAMA, read, row, row_values

from agents.evaluation import accuracy as module
from agents.evaluation.accuracy import accuracy
from agents.evaluation.cases import case_of
from agents.evaluation.scored import score


def seconds(**changes) -> float:
    """What the projector says of a row of ours."""
    return score(case_of(row(**changes), "")).projected_s


def measured(factor: float, name: str = "row-1", **changes):
    """A row that measured `factor` times what is projected."""
    timed = {"step_time_s": factor * seconds(**changes), **changes.pop("measured", {})}
    return row_values(name, measured=timed, **changes)


def report(*values, **options):
    return accuracy(read(*values), {"small|h100|8": "modern"}, **options)


def test_errors_are_of_projected_against_measured():
    found = report(measured(2.0, "slow"), measured(0.8, "fast", seq_len=2048), measured(1.0, "hit", seq_len=1024))
    assert found.n_modelled == found.n_given == 3
    assert found.mape == pytest.approx((0.5 + 0.25 + 0) / 3)
    assert found.median_error == pytest.approx(0.25)
    assert found.bias == pytest.approx((-0.5 + 0.25 + 0) / 3)
    assert found.coverage_80 == pytest.approx(1 / 3)
    assert found.width_80 is not None


def test_suspects_are_listed_by_id_and_count_in_no_figure():
    found = report(measured(1.0), measured(5.0, "odd", suspect="the clock stood still"))
    assert (found.n_given, found.n_suspect, found.n_modelled) == (2, 1, 1)
    assert found.mape == pytest.approx(0.0)
    assert [(one.reason, one.ids) for one in found.suspects] == [("the clock stood still", ("odd",))]


def test_refusals_are_grouped_by_reason_and_named_on_request():
    values = [measured(1.0), row_values("a", seq_len=None), row_values("b", seq_len=None), row_values("c", seq_len="x")]
    found = report(*values)
    assert (found.n_given, found.n_refused, found.refused_share) == (4, 3, 0.75)
    assert [(one.reason, one.n, one.ids) for one in found.refusals] == [
        ("sequence length not stated", 2, ()),
        ("seq_len is 'x', not a number", 1, ()),
    ]
    assert report(*values, with_ids=True).refusals[0].ids == ("a", "b")


def test_rows_the_file_calls_incomplete_are_neither_refused_nor_counted():
    found = report(measured(1.0), row_values("half", arch_complete=False), row_values("odd", hardware_known=False))
    assert (found.n_ineligible, found.n_refused, found.refused_share) == (2, 0, 0.0)


def test_a_row_given_twice_counts_once():
    found = report(measured(1.0), measured(3.0))
    assert found.n_modelled == 1
    assert found.refusals[0].reason == "a row of this id was given before"


def test_what_nobody_foresaw_refuses_the_row_and_says_so(monkeypatch):
    def fails(*_):
        raise ZeroDivisionError("division by zero")

    values = measured(1.0)
    monkeypatch.setattr(module, "case_of", fails)
    found = report(values)
    assert found.n_modelled == 0
    assert found.refusals[0].reason == "not foreseen, ZeroDivisionError: division by zero"


def test_newest_rows_and_rows_with_nothing_assumed_stand_apart():
    open_row = {"micro_batch": None}
    found = report(measured(2.0, "old", superseded=True), measured(1.0, "new"), measured(1.0, "open", **open_row))
    assert found.newest.n == 2
    assert found.newest.mape == pytest.approx(0.0)
    assert found.nothing_assumed.n == 2
    assert found.assumed == {"micro_batch": 1}


def test_slices_count_what_was_given_and_what_was_modelled():
    found = report(measured(1.0), row_values("b", seq_len=None), measured(1.0, "c", suspect="odd", seq_len=1024))
    chips = {one.value: one for one in found.slices if one.by == "chip"}
    assert (chips["h100-sxm"].n_given, chips["h100-sxm"].n_modelled, chips["h100-sxm"].n_suspect) == (3, 1, 1)
    strata = {one.value for one in found.slices if one.by == "stratum"}
    assert strata == {"modern"}
    targets = {one.value for one in found.slices if one.by == "target"}
    assert targets == {"step time"}


def test_memory_is_compared_without_the_reserve_and_oom_is_counted():
    one = score(case_of(row(), ""))
    assert one.counted_bytes is not None
    printed = {"mem_gb_per_chip": one.counted_bytes / 1e9}
    huge = {
        "arch": LLAMA | {"num_hidden_layers": 400, "hidden_size": 8192},
        "measured": {"tokens_per_s_per_chip": None},
    }
    found = report(
        measured(1.0, measured=printed),
        row_values("planted", derived={"oom": True}, **huge),
        row_values("too-large", **{**huge, "measured": {"tokens_per_s_per_chip": 100}}),
        row_values("small", derived={"oom": True}, measured={"tokens_per_s_per_chip": None}),
    )
    memory = found.memory[0]
    assert (memory.n, found.memory_median_error) == (1, pytest.approx(0.0))
    assert (memory.out_of_memory, memory.out_of_memory_flagged) == (2, 1)
    assert (memory.ran, memory.ran_called_too_large) == (2, 1)


def test_memory_counts_what_the_framework_counts():
    def counted(framework: str) -> float:
        one = score(case_of(row(framework=framework), ""))
        assert one.projection.memory is not None
        assert one.counted_bytes is not None
        return one.projection.memory.total_bytes - one.counted_bytes

    # H100: 1.5 GB of runtime, and 2 % of 80 GB that the allocator holds and does not use
    assert counted("Megatron-Core") == pytest.approx(3.1e9)
    assert counted("torchtitan") == pytest.approx(1.5e9)
    assert counted("Megatron-DeepSpeed") == 0.0


def test_of_the_plans_a_row_may_mean_the_fastest_that_fits_counts():
    narrow, wide = seconds(adopted={"recompute": "full"}), seconds(adopted={"recompute": "none"})
    assert seconds(adopted={"recompute": None}) == min(narrow, wide)


def test_rows_are_listed_on_request():
    (one,) = report(measured(1.0), with_rows=True).rows
    assert one.id == "row-1"
    assert one.measured_s == pytest.approx(one.projected_s)
    assert one.low_s < one.projected_s < one.high_s
    assert one.plan.dp == 8


def families(*factors: float):
    """Three rows each of several families that measured their own multiple of the projection."""
    return [
        measured(factor, f"{place}-{seq_len}", seq_len=seq_len, family=f"family-{place}", source=f"github:{place}/x")
        for place, factor in enumerate(factors)
        for seq_len in (1024, 2048, 4096)
    ]


def test_the_same_rows_give_the_same_report():
    values = families(1.25, 0.8)
    assert report(*values, with_folds=True, with_rows=True) == report(*values, with_folds=True, with_rows=True)
