"""Rows by a key, and extremes over ranges, against the plain way; and what is remembered of untrusted texts."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traces.grouping import over_ranges, places_by, sums_by
from traces.remembered import LONGEST_REMEMBERED, remembered

KEYS = st.lists(st.integers(-2, 3), max_size=30)


@given(KEYS)
def test_places_are_those_where_the_key_stands(keys: list[int]) -> None:
    found = {key: places.tolist() for key, places in places_by(np.array(keys, dtype=np.int64))}
    assert found == {key: [place for place, one in enumerate(keys) if one == key] for key in sorted(set(keys))}


@given(KEYS)
def test_sums_are_exact_beyond_what_a_double_holds(keys: list[int]) -> None:
    values = np.arange(len(keys), dtype=np.int64) + 2**55
    distinct, sums = sums_by(np.array(keys, dtype=np.int64), values)
    plain = {key: sum(int(value) for one, value in zip(keys, values, strict=True) if one == key) for key in set(keys)}
    assert dict(zip(distinct.tolist(), sums.tolist(), strict=True)) == plain


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=40), st.data())
def test_extremes_over_ranges_that_overlap(values: list[int], draw: st.DataObject) -> None:
    first = draw.draw(st.lists(st.integers(0, len(values) - 1), max_size=8))
    behind = [draw.draw(st.integers(start + 1, len(values))) for start in first]
    columns = (np.array(one, dtype=np.int64) for one in (values, first, behind))
    column, starts, ends = columns
    for pick, plain in ((np.minimum, min), (np.maximum, max)):
        expected = [plain(values[start:end]) for start, end in zip(first, behind, strict=True)]
        assert over_ranges(column, starts, ends, pick).tolist() == expected


def test_short_texts_are_remembered_and_long_ones_are_not() -> None:
    asked: list[str] = []

    @remembered(8)
    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    for text in ("a", "a" * LONGEST_REMEMBERED, "a" * (LONGEST_REMEMBERED + 1)):
        assert (length(text), length(text)) == (len(text), len(text))
    assert [len(text) for text in asked] == [1, LONGEST_REMEMBERED, LONGEST_REMEMBERED + 1, LONGEST_REMEMBERED + 1]
