"""Published points of a prefill and a decode pool, of which nothing was fitted."""

from statistics import mean

from .published_pools import POINTS, errors


def test_one_prefill_and_one_decode_engine_of_mi355x() -> None:
    found = [errors(point) for point in POINTS]
    assert all(abs(one.tpot_frac) < 0.15 for one in found)
    assert mean(abs(one.rate_frac) for one in found) < 0.10
    assert mean(abs(one.ttft_frac) for one in found) < 0.4
