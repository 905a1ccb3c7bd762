"""Small cases whose label hand arithmetic fixes; unchanged with all times scaled or the events in another order."""

from functools import cache

import pytest
from all_cases import ADVERSARIAL, CASES
from micro_case import Case, missed

BY_NAME = {case.name: case for case in CASES}


@cache
def misses() -> dict[str, str]:
    """Why each missed case was missed."""
    found = {case.name: missed(case, case.diagnosis()) for case in CASES}
    return {name: why for name, why in found.items() if why}


def rate(cases: list[Case]) -> float:
    return sum(case.name not in misses() for case in cases) / len(cases)


def test_there_are_as_many_as_promised() -> None:
    assert len(BY_NAME) == len(CASES) >= 60
    assert ADVERSARIAL.total() >= 20
    assert all(case.arithmetic for case in CASES)


def test_nineteen_of_twenty_are_right() -> None:
    assert rate(list(CASES)) >= 0.95, misses()


@pytest.mark.parametrize("trap", sorted(ADVERSARIAL))
def test_no_trap_catches_more_than_one_in_ten(trap: str) -> None:
    assert rate([case for case in CASES if case.adversarial == trap]) >= 0.9, misses()


@pytest.mark.parametrize("name", BY_NAME)
def test_scaled_times_and_another_order_change_nothing(name: str) -> None:
    plain, other = BY_NAME[name].diagnosis(), BY_NAME[name].diagnosis(7, seed=11)
    same = ("bottleneck", "cause", "hypothesis", "ambiguous", "abstained")
    assert {field: getattr(other, field) for field in same} == {field: getattr(plain, field) for field in same}
    assert other.scores == pytest.approx(plain.scores, abs=1e-6)
