import pytest

from knowledge_base.expression import evaluate, holds, names
from projector.errors import InvalidDescription


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3", 7),
        ("-(2 ** 3) / 4", -2),
        ("7 // 2 + 7 % 2", 4),
        ("max(a, b, 1) - min(a, b)", 3),
        ("ceil(b / a)", 3),
        ("sqrt(16) + log(1)", 4),
        ("1e9 / 1_000", 1e6),
    ],
)
def test_arithmetic(expression: str, value: float) -> None:
    assert evaluate(expression, {"a": 2, "b": 5}) == value


def test_comparisons_may_be_chained() -> None:
    assert holds("1 < a <= 2", {"a": 2})
    assert not holds("1 < a < 2", {"a": 2})
    assert holds("a >= 2 > 1", {"a": 2})


def test_names_are_the_variables_without_the_functions() -> None:
    assert names("max(comm_ms, compute_ms) + 1") == {"comm_ms", "compute_ms"}


@pytest.mark.parametrize(
    "hostile",
    [
        "__import__('os').system('true')",
        "().__class__",
        "(lambda: 1)()",
        "[x for x in (1, 2)]",
        "open('f')",
        "a if a else 1",
        "a and 1",
        "True",
        "'text'",
        "f'{a}'",
        "a[0]",
        "a := 1",
        "min(*a)",
        "sqrt(x=4)",
        "sqrt()",
        "1j",
        "a == 1",
        "(a < 1) + 1",
        "a\n+ import",
        "",
        "1 +",
        "a\x00",
        "(" * 300 + "1" + ")" * 300,
        "1" * 501,
        " + ".join(["a"] * 150),
    ],
)
def test_what_is_outside_the_grammar_is_refused_by_name(hostile: str) -> None:
    with pytest.raises(InvalidDescription):
        evaluate(hostile, {"a": 1})


@pytest.mark.parametrize("expression", ["1 / 0", "9 ** 9 ** 9", "(-1) ** 0.5", "log(0)", "sqrt(4, 4)", "1e308 * 10"])
def test_what_has_no_finite_value_is_refused(expression: str) -> None:
    with pytest.raises(InvalidDescription, match=r"no .*value"):
        evaluate(expression, {})


def test_a_name_without_a_value_is_named() -> None:
    with pytest.raises(InvalidDescription, match="'tp'"):
        evaluate("tp + 1", {})


def test_a_number_is_no_inequality_and_the_other_way_round() -> None:
    with pytest.raises(InvalidDescription, match="not a comparison"):
        holds("1 + 1", {})
    with pytest.raises(InvalidDescription, match="is a comparison"):
        evaluate("1 < 2", {})
