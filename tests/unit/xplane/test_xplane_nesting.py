"""Own time of nested events: what a loop holds is not the loop's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traces import intervals
from traces.xplane.nesting import own_time
from traces.xplane.space import Line


def line_of(*events: tuple[int, int]) -> Line:
    """Events as (begin, end)."""
    table = np.array(events, dtype=np.int64).reshape(-1, 2)
    return Line(0, "XLA Ops", 0, np.arange(len(table)), table[:, 0], table[:, 1] - table[:, 0])


def test_events_side_by_side_keep_their_time() -> None:
    own = own_time(line_of((0, 10), (10, 15), (20, 22)))
    assert own.own_ps.tolist() == [10, 5, 2]
    assert own.pieces.tolist() == [[0, 10, 0], [10, 15, 1], [20, 22, 2]]


def test_a_loop_keeps_what_its_body_leaves() -> None:
    own = own_time(line_of((0, 100), (10, 30), (30, 50), (60, 90), (65, 70)))
    assert dict(zip(own.line.kind.tolist(), own.own_ps.tolist(), strict=True)) == {0: 30, 1: 20, 2: 20, 3: 25, 4: 5}
    mine = own.pieces[own.line.kind[own.pieces[:, 2]] == 0]
    assert sorted(map(tuple, mine[:, :2].tolist())) == [(0, 10), (50, 60), (90, 100)]


def test_events_come_in_any_order() -> None:
    own = own_time(line_of((60, 90), (0, 100), (65, 70)))
    assert own.own_ps.tolist() == [70, 25, 5]


def test_no_events() -> None:
    assert own_time(line_of()).own_ps.tolist() == []


spans = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), max_size=12)


@given(spans)
def test_pieces_cover_what_the_events_cover(some: list[tuple[int, int]]) -> None:
    line = line_of(*((begin, begin + length) for begin, length in some))
    pieces = own_time(line).pieces
    assert np.array_equal(intervals.merge(pieces[:, 0], pieces[:, 1]), intervals.merge(line.begin_ps, line.end_ps))
