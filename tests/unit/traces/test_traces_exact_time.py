from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from trace_examples import kernel, trace_of, traces_of_text

from traces.chrome.exact_time import MAX_NS, exact_ns


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        (b"0", 0),
        (b"1", 1_000),
        (b"33.0", 33_000),
        (b"1365627949885.185", 1_365_627_949_885_185),
        (b"1712195495505582.988", 1_712_195_495_505_582_988),
        (b"999999999999999.999", 999_999_999_999_999_999),
        (b'"1365627949885.185"', 1_365_627_949_885_185),
        (b'" 17.5 "', 17_500),
        (b"1.5e3", 1_500_000),
        (b"1e15", 10**18),
        (b"-1", -1_000),
        (b"0.0004", 0),
        (b"124.75987589205187", 124_760),
        (b"0.0005", 0),
        (b"0.0015", 2),
    ],
)
def test_decimal_microseconds_become_exact_nanoseconds(text: bytes, nanoseconds: int) -> None:
    values, read = exact_ns([text])
    assert read.tolist() == [True]
    assert values.tolist() == [nanoseconds]


@pytest.mark.parametrize(
    "text", [b"", b"null", b"NaN", b"Infinity", b"-", b"1.2.3", b"abc", b"1e30", b"9" * 40, b"1e999999999", b"\xff\xfe"]
)
def test_what_is_no_time_is_told_apart_from_zero(text: bytes) -> None:
    values, read = exact_ns([b"1.0", text])
    assert read.tolist() == [True, False]
    assert values.tolist() == [1_000, 0]


def test_a_double_could_not_hold_such_a_time() -> None:
    text = "1712195495505582.988"
    through_a_double = round(float(text) * 1000)
    exact = int(Decimal(text) * 1000)
    assert abs(through_a_double - exact) > 1
    assert exact_ns([text.encode()])[0].tolist() == [exact]


def test_columns_agree_with_fractions_over_many_spellings() -> None:
    generator = np.random.default_rng(7)
    whole = generator.integers(0, 10**15, 500)
    digits = generator.integers(0, 4, 500)
    texts = [f"{w}.{'739'[:d]}" if d else str(w) for w, d in zip(whole, digits, strict=True)]
    values, read = exact_ns([text.encode() for text in texts])
    assert read.all()
    assert values.tolist() == [int(Fraction(text) * 1000) for text in texts]


def test_limits_of_the_range() -> None:
    below, above = str(MAX_NS // 1000), str(MAX_NS // 1000 + 1)
    _, read = exact_ns([below.encode(), above.encode()])
    assert read.tolist() == [True, False]


def test_absolute_times_survive_reading() -> None:
    text = (
        '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, '
        '"ts": 1712195495505582.988, "dur": 1.001, "args": {"device": 0, "stream": 7}}]}'
    )
    for careful in (False, True):
        (trace,) = traces_of_text(text, careful=careful)
        assert trace.start_ns.tolist() == [1_712_195_495_505_582_988]
        assert trace.duration_ns.tolist() == [1_001]


def test_times_are_columns_of_int64() -> None:
    trace = trace_of(kernel("gemm", 1, 2))
    assert trace.start_ns.dtype == trace.duration_ns.dtype == np.int64
