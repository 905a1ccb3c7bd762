"""Numbers and foreign text as people read them."""

import pytest

from agents.findings import Change
from app import wording
from projector.specs.plan import ParallelismPlan


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "unknown"),
        (0, "0"),
        (84.4912, "84.49"),
        (1234.5, "1,234"),
        (128, "128"),
        (0.80283, "0.8028"),
        (1_350_000, "1,350,000"),
        (1.5e-9, "1.5e-09"),
        (-3.14159, "-3.142"),
    ],
)
def test_a_number_has_four_digits(value, text) -> None:
    assert wording.number(value) == text


def test_a_figure_carries_its_unit_and_a_fraction_is_a_percentage() -> None:
    assert wording.figure(0.1234, "fraction") == "12.3 %"
    assert wording.figure(84.49, "ms") == "84.49 ms"
    assert wording.figure(None, "ms") == ""


def test_a_change_has_a_sign_and_may_be_unknown() -> None:
    assert (wording.change(0.25), wording.change(-0.5), wording.change(None)) == ("+25.0 %", "-50.0 %", "unknown")


def test_foreign_text_cannot_steer_a_terminal() -> None:
    assert wording.plain("a\x1b[31mred\x07\nb\u202ec") == "a\ufffd[31mred\ufffd b\ufffdc"


def test_a_plan_shows_its_degrees_and_what_is_unusual() -> None:
    plan = ParallelismPlan(dp=4, tp=2, recompute="full", overlap_grad_reduce=False)
    assert wording.plan_text(plan) == "dp 4, tp 2, pp 1, recompute full, overlap_grad_reduce off"


def test_changes_with_one_reason_are_told_together() -> None:
    changes = [
        Change(field=name, before="1", after="8", why=why) for name, why in (("ep", "x"), ("etp", "x"), ("tp", "y"))
    ]
    assert [([c.field for c in group], why) for group, why in wording.grouped_changes(changes)] == [
        (["ep", "etp"], "x"),
        (["tp"], "y"),
    ]


def test_a_source_is_split_from_its_address() -> None:
    assert wording.split_source("A. Author, 2024, https://a.org/x") == ("A. Author, 2024,", "https://a.org/x")
    assert wording.split_source("https://a.org/x") == ("", "https://a.org/x")
    assert wording.split_source("a book, javascript:alert(1)") == ("a book, javascript:alert(1)", "")


def test_an_unknown_cause_has_no_bottleneck() -> None:
    assert wording.headline("compute", "unknown") == "Bottleneck unknown"
    assert wording.headline("compute", "hbm_bandwidth") == "Compute bound: HBM bandwidth"
