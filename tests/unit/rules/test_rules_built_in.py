"""The built-in table, line by line: every entry decides real names, and no entry before it does."""

import re

import pytest

from traces.rules.kernel_rules import BUILT_IN, built_in_rules
from traces.rules.names import comparable
from traces.rules.pattern import why_refused
from traces.rules.rule import MEANINGS, NONE, TABLES, Rule
from traces.rules.rule_file import misjudged

RULES = built_in_rules()
DECIDED = [
    pytest.param(rule, name, id=f"{rule.table}-{rule.id}-{name[:60]}") for rule in RULES for name in rule.examples
]
BY_RULE = [pytest.param(rule, id=f"{rule.table}-{rule.meaning}-{rule.id}") for rule in RULES]


@pytest.mark.parametrize(("rule", "name"), DECIDED)
def test_every_line_decides_its_examples(rule: Rule, name: str) -> None:
    """Asked as a trace is classified: against all rules, of all tables."""
    decision = BUILT_IN.of_operator(name) if rule.on_host else BUILT_IN.of_kernel(name)
    if rule.meaning == NONE:
        assert rule.matches(comparable(name, on_host=rule.on_host))
        assert decision.subject != "communication"
    else:
        assert decision.rule == rule


@pytest.mark.parametrize("rule", BY_RULE)
def test_no_line_before_it_takes_them_and_it_takes_nothing_it_must_not(rule: Rule) -> None:
    assert misjudged(rule, RULES) == ""


@pytest.mark.parametrize("rule", BY_RULE)
def test_every_spelling_of_a_line_is_that_of_a_real_name(rule: Rule) -> None:
    names = [comparable(name, on_host=rule.on_host) for name in rule.examples]
    unused = [part for part in alternatives(rule.pattern) if not any(re.search(part, name) for name in names)]
    assert unused == []


@pytest.mark.parametrize("rule", BY_RULE)
def test_every_line_is_sound(rule: Rule) -> None:
    assert why_refused(rule.pattern) == ""
    assert rule.table in TABLES
    assert rule.meaning in MEANINGS[rule.table]
    assert rule.examples
    assert rule.source


def test_labels_are_unique_in_a_table() -> None:
    labels = [(rule.table, rule.label) for rule in RULES]
    assert len(set(labels)) == len(labels)


def test_every_kind_and_every_table_has_lines() -> None:
    assert {rule.table for rule in RULES} == set(TABLES)
    assert {rule.meaning for rule in RULES if rule.table == "kind"} == set(MEANINGS["kind"]) - {NONE}


def test_a_name_that_nobody_wrote_a_rule_for_says_nothing() -> None:
    assert BUILT_IN.of_kernel("triton__0d1d2d3d").rule is None
    assert BUILT_IN.of_operator("Torch-Compiled Region: 0/1").rule is None


@pytest.mark.parametrize("name", ["_zn" + "a" * 5000, "deepep" * 400, "at::native::" * 300, "x" * 100_000, "(" * 9000])
def test_names_made_to_be_slow_are_not(name: str) -> None:
    """No clock: the search looks at 1,000 characters, and `why_refused` bounds what each pattern does with them."""
    assert BUILT_IN.of_kernel(name) is BUILT_IN.of_kernel(name)
    assert len(comparable(name, on_host=False)) <= 1000


def alternatives(pattern: str) -> list[str]:
    """Parts of a pattern that a bar at the outermost level divides."""
    parts, depth, start, in_class, position = [], 0, 0, False, 0
    while position < len(pattern):
        char = pattern[position]
        if char == "\\":
            position += 1
        elif in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif char == "|" and depth == 0:
            parts.append(pattern[start:position])
            start = position + 1
        position += 1
    return [*parts, pattern[start:]]
