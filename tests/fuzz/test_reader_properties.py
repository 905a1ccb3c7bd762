"""Any bytes, and whole files damaged in any way: a sound result or a typed error, never anything else.

What is sound stands in `tests.fuzz.checks`. The fuzzer (`make fuzz-traces`) asks the same for longer and is led by
coverage; here hypothesis finds the smallest file that fails.
"""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.byte_mutations import damaged
from tests.fuzz.harness import TARGETS, Target, reshaped

EVERY_TARGET = pytest.mark.parametrize("one", TARGETS, ids=lambda one: one.name)
FEW = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
WORDS = {"read", "not claimed"}


def check(one: Target, data: bytes) -> None:
    """Read the file; what is no typed error comes through, and the word for the outcome is one that is known."""
    outcome = one.run(data)
    assert all(part in WORDS or part[0].isupper() for part in outcome.split(", "))


@EVERY_TARGET
def test_seeds_are_whole(one: Target) -> None:
    """At least one seed of each reader gives a sound result, so that damaged ones start from something."""
    outcomes = [one.run(seed) for seed in one.seeds()]
    assert any("read" in outcome for outcome in outcomes), outcomes


@EVERY_TARGET
@FEW
@given(data=st.binary(max_size=400))
def test_any_bytes(one: Target, data: bytes) -> None:
    check(one, data)


@EVERY_TARGET
@FEW
@given(choices=st.data())
def test_any_bytes_behind_a_whole_beginning(one: Target, choices: st.DataObject) -> None:
    seed = choices.draw(st.sampled_from(one.seeds()))
    kept = choices.draw(st.integers(0, len(seed)))
    check(one, seed[:kept] + choices.draw(st.binary(max_size=200)))


@EVERY_TARGET
@FEW
@given(choices=st.data(), seed=st.integers(0, 2**32))
def test_damaged_files(one: Target, choices: st.DataObject, seed: int) -> None:
    """Bits flipped, ranges deleted, doubled, moved and spliced in, numbers swapped, brackets nested, ends cut off."""
    random = Random(seed)  # noqa: S311
    check(one, damaged(choices.draw(st.sampled_from(one.seeds())), random, random.choice(one.seeds())))


@EVERY_TARGET
@FEW
@given(choices=st.data(), seed=st.integers(0, 2**32))
def test_files_that_keep_their_format_and_change_what_they_say(one: Target, choices: st.DataObject, seed: int) -> None:
    random, data = Random(seed), choices.draw(st.sampled_from(one.seeds()))  # noqa: S311
    for _ in range(choices.draw(st.integers(1, 3))):
        changed = reshaped(one, data, random)
        data = data if changed is None else changed
    check(one, data)
