import numpy as np
from trace_examples import external, kernel, launch, op, trace_of

from traces.linking import NONE, enclosing, inside, link
from traces.trace import Category


def names(trace: object, rows: object) -> list[str]:
    return ["" if row == NONE else trace.name(row) for row in rows]  # type: ignore[attr-defined]


def test_launches_are_joined_on_the_correlation() -> None:
    trace = trace_of(
        launch(4, 1),
        launch(5, 2),
        kernel("a", 10, 1, correlation=5),
        kernel("b", 12, 1),
        kernel("c", 14, 1, correlation=6),
    )
    links = link(trace)
    assert [int(trace.start_ns[row]) if row != NONE else None for row in links.launch] == [2_000, None, None]


def test_operators_by_id_and_by_time() -> None:
    trace = trace_of(
        op("outer", 0, 100),
        op("inner", 10, 20),
        op("elsewhere", 10, 20, thread=2),
        op("by id", 70, 5, **external(9)),
        launch(1, 12),
        launch(2, 40),
        launch(3, 80),
        launch(4, 200),
        kernel("k1", 300, 1, correlation=1),
        kernel("k2", 301, 1, correlation=2),
        kernel("k3", 302, 1, correlation=3, **external(9)),
        kernel("k4", 303, 1, correlation=4),
    )
    assert names(trace, link(trace).operator) == ["inner", "outer", "by id", ""]


def test_enclosing_intervals() -> None:
    starts = np.array([0, 1, 2, 5, 12])
    ends = np.array([10, 4, 3, 6, 13])
    assert enclosing(starts, ends).tolist() == [NONE, 0, 1, 0, NONE]


def test_calls_inside_annotations_of_their_thread() -> None:
    trace = trace_of(op("mark", 0, 10), launch(1, 5), launch(2, 5, thread=2), launch(3, 20))
    calls = np.append(trace.rows(Category.RUNTIME), NONE)
    assert inside(trace, calls, trace.rows(Category.CPU_OP)).tolist() == [True, False, False, False]
