"""One rank's collectives as compact columns."""

import pickle

import numpy as np
import pytest
from small_logs import US, One, log_of

from traces.cross_rank import log as log_module
from traces.trace import ABSENT


def test_what_happens_before_and_under_a_collective() -> None:
    #          0    10   20   30   40   50
    # compute  [---------)    [----)
    # g             [---------)         [----)
    log = log_of(One(10, 30), One(50, 60), compute=[(0, 20), (30, 40)])
    assert log.start_ns.tolist() == [10 * US, 50 * US]
    assert log.duration_ns.tolist() == [20 * US, 10 * US]
    assert log.exposed_ns.tolist() == [10 * US, 10 * US]
    assert log.compute_before_ns.tolist() == [10 * US, 30 * US]
    assert log.own_before_ns.tolist() == [10 * US, 40 * US], "all but the 10 us exposed before the second"
    assert log.span_ns == 60 * US


def test_columns_of_what_is_stated() -> None:
    log = log_of(
        One(0, 1, "all_gather", "tp", (0, 1, 2, 3), size=4_000, number=7),
        One(2, 3, "send", "pp", (0, 4), size=None, target=4),
        One(4, 5, "all_gather", "tp", (0, 1, 2, 3), size=4_000, number=8),
    )
    assert [group.name for group in log.groups] == ["tp", "pp"]
    assert log.groups[0].ranks == (0, 1, 2, 3)
    assert log.group.tolist() == [0, 1, 0]
    assert [log.collectives[kind] for kind in log.collective] == ["all_gather", "send", "all_gather"]
    assert log.sequence.tolist() == [7, ABSENT, 8]
    assert log.message_bytes.tolist() == [4_000, ABSENT, 4_000]
    assert log.bus_bytes.tolist() == [3_000, ABSENT, 3_000]
    assert log.target.tolist() == [ABSENT, 4, ABSENT]


def test_the_base_time_of_a_file_is_a_part_of_its_times() -> None:
    base = 1_700_000_000_000_000_000
    assert log_of(One(10, 30), base_ns=base).start_ns.tolist() == [base + 10 * US]


def test_collectives_that_have_the_links_of_their_reach_to_themselves() -> None:
    near, far = (0, 1), (0, 8)
    log = log_of(
        One(0, 100, group="near", ranks=near),
        One(50, 150, group="far", ranks=far),
        One(140, 200, group="far", ranks=far),
        One(300, 400, group="far", ranks=far),
    )
    assert log.alone.tolist() == [True, False, False, True]


def test_a_log_is_small_and_travels() -> None:
    log = log_of(*(One(10 * i, 10 * i + 5, number=i) for i in range(1_000)))
    data = pickle.dumps(log)
    assert len(data) < 70 * len(log)
    again = pickle.loads(data)  # noqa: S301 (bytes made above)
    assert again.groups == log.groups
    assert np.array_equal(again.end_ns, log.end_ns)


def test_sizes_no_machine_has_count_as_not_stated() -> None:
    log = log_of(One(0, 1, size=2**70, number=2**63 - 1))
    assert (log.message_bytes.tolist(), log.sequence.tolist()) == ([ABSENT], [ABSENT])


def test_a_log_is_cut_where_it_would_grow_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "MOST_INSTANCES", 3)
    log = log_of(*(One(10 * i, 10 * i + 5) for i in range(5)))
    assert (len(log), log.left_out) == (3, 2)
