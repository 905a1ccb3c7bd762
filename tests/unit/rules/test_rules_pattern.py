"""Patterns that may look at untrusted names, and those that may not."""

import pytest

from traces.rules.pattern import LONGEST_PATTERN, why_refused


@pytest.mark.parametrize(
    "pattern",
    [
        "nvjet",
        r"\bmoe|_moe",
        "^triton_(?:red|per)_fused.{0,300}rsqrt",
        "all_?reduce",
        ".*gemm",
        "[a-z]+_kernel",
        "^",
        "(?<!fb)gemm",
    ],
)
def test_plain_patterns_are_accepted(pattern: str) -> None:
    assert why_refused(pattern) == ""


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"(a+)+$", "it repeats what is itself repeated or a choice: write it out"),
        (r"(?:a|aa){1,9}b", "it repeats what is itself repeated or a choice: write it out"),
        (r"(?:x?){20}y", "it repeats what is itself repeated or a choice: write it out"),
        (
            r".*a.*b.*c",
            "it can be attempted in 1,003,003,001 ways, 2,000 are allowed: bound its repeats, such as .{0,30}",
        ),
        (
            r"\w{0,90}x\w{0,90}",
            "it can be attempted in 8,281 ways, 2,000 are allowed: bound its repeats, such as .{0,30}",
        ),
        (r"(a)\1", "it uses groupref, which is not accepted"),
        ("Gemm", "it has capital letters, and names are compared in lower case"),
        ("gemm(", "it is no regular expression: missing ), unterminated subpattern at position 4"),
        ("x" * (LONGEST_PATTERN + 1), f"it has {LONGEST_PATTERN + 1} characters, {LONGEST_PATTERN} are allowed"),
    ],
)
def test_patterns_that_could_take_long_or_mean_nothing_are_refused(pattern: str, why: str) -> None:
    assert why_refused(pattern) == why


def test_more_is_allowed_where_there_is_one_start() -> None:
    bounded = r"[^<(]{0,60}x[^<(]{0,60}all_?reduce"
    assert why_refused(bounded) != ""
    assert why_refused("^" + bounded) == ""
    assert why_refused(f"^{bounded}|{bounded}") != ""


def test_classes_and_escapes_may_be_in_capitals() -> None:
    assert why_refused(r"\Wgemm\S\D\B") == ""
