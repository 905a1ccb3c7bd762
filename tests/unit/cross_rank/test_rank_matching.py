"""Which collective of one rank is which of another, and when nobody can tell."""

from collections.abc import Sequence

import numpy as np
from rank_jobs import Faults, Shape, make_job
from rank_logs import crossed, log_of_rank
from small_logs import US, One, log_of, shifted

from traces.cross_rank.log import CollectiveLog
from traces.cross_rank.matching import Match, match_ranks
from traces.cross_rank.order import Sequence as Ordered
from traces.cross_rank.order import best_shift

MIB = 1 << 20


def matched(*logs: CollectiveLog) -> tuple[list[list[list[int]]], tuple[str, ...]]:
    """Rows of each match, and the refusals."""
    matches = match_ranks(dict(enumerate(logs)))
    return [match.rows.tolist() for match in matches.found], matches.refused


def numbered(*numbers: int, step: float = 100, size: int = 8 * MIB) -> CollectiveLog:
    return log_of(*(One(step * n, step * n + 10, number=n, size=size) for n in numbers))


def test_numbers_match_whatever_is_missing() -> None:
    rows, refused = matched(numbered(1, 2, 3, 5, 6), numbered(2, 3, 4, 6, 7))
    assert rows == [[[1, 2, 4], [0, 1, 3]]]
    assert refused == ()


def test_coalesced_collectives_share_a_number_and_keep_their_order() -> None:
    rows, _ = matched(numbered(1, 1, 2), numbered(1, 1, 2))
    assert rows == [[[0, 1, 2], [0, 1, 2]]]


def test_one_number_for_different_collectives_is_refused() -> None:
    rows, refused = matched(numbered(1, 2, 3), numbered(1, 2, 3, size=16 * MIB))
    assert rows == []
    assert refused == (
        "collectives of group 'g' cannot be matched between ranks: "
        "3 of 3 collectives of the same number differ in kind or size between ranks",
    )


def test_windows_without_a_number_in_common() -> None:
    _, refused = matched(numbered(1, 2, 3), numbered(7, 8, 9))
    assert refused == (
        "collectives of group 'g' cannot be matched between ranks: "
        "no number is on all ranks, so their windows do not overlap",
    )


def test_a_rank_that_shares_few_numbers_does_not_spoil_the_others() -> None:
    rows, refused = matched(*(numbered(*range(10)) for _ in range(3)), numbered(8, 9, 10, 11))
    assert [len(row) for row in rows[0]] == [10, 10, 10]
    assert refused == (
        "collectives of group 'g' cannot be matched on 1 ranks (3): they share few numbers with the other ranks",
    )


def in_order(sizes: Sequence[int], starts: Sequence[float] | None = None, **more: object) -> CollectiveLog:
    at = starts or [100 * place for place in range(len(sizes))]
    ones = (One(start, start + 10, size=size * MIB, **more) for start, size in zip(at, sizes, strict=True))  # type: ignore[arg-type]
    return log_of(*ones)


def test_order_matches_where_nothing_is_numbered() -> None:
    rows, refused = matched(in_order([8, 16, 8, 32]), in_order([8, 16, 8, 32]))
    assert (rows, refused) == ([[[0, 1, 2, 3], [0, 1, 2, 3]]], ())


def test_a_window_that_begins_later_is_shifted() -> None:
    rows, _ = matched(in_order([8, 16, 8, 32, 64]), in_order([8, 32, 64, 16], starts=[200, 300, 400, 500]))
    assert rows == [[[2, 3, 4], [0, 1, 2]]]


def test_ends_decide_where_the_same_sizes_repeat() -> None:
    """Layers differ in time by what they compute; only at the true shift do the ends keep their distance."""
    starts = np.cumsum([100, 130, 90, 170, 60, 140, 110, 80]).tolist()
    first = in_order([8] * 7, starts[:7])
    second = in_order([8] * 7, [start + 5 for start in starts[1:]])
    rows, _ = matched(first, second)
    assert rows == [[[1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5]]]


def test_a_file_thinned_in_the_middle_is_refused() -> None:
    rows, refused = matched(in_order([8, 16, 24, 32, 40, 48]), in_order([8, 24, 32, 40, 48, 8]))
    assert rows == []
    assert refused == (
        "collectives of group 'g' cannot be matched between ranks: at best 4 of 5 collectives agree in kind and size",
    )


def test_sizes_of_an_all_to_all_may_differ_between_ranks() -> None:
    rows, _ = matched(in_order([8, 16, 24], kind="all_to_all"), in_order([9, 12, 30], kind="all_to_all"))
    assert rows == [[[0, 1, 2], [0, 1, 2]]]


def test_collectives_without_a_group_want_more_than_one_coincidence() -> None:
    rows, refused = matched(in_order([8, 16], group="", ranks=()), in_order([8, 16], group="", ranks=()))
    assert rows == []
    assert refused == (
        "collectives that name no group cannot be matched between ranks: 2 in the same order on all ranks are too few "
        "to tell",
    )
    rows, _ = matched(*(in_order([8, 16, 24], group="", ranks=()) for _ in range(2)))
    assert rows == [[[0, 1, 2], [0, 1, 2]]]


def test_more_ranks_than_a_group_has_and_no_list_of_them() -> None:
    logs = {rank: in_order([8, 16, 24], group="tp", ranks=(), members=2) for rank in range(4)}
    assert match_ranks(logs).refused == (
        "collectives of group 'tp' cannot be matched between ranks: "
        "4 ranks use a group of 2 of that name, and which of them belong together is not stated",
    )


def test_sends_meet_their_receives() -> None:
    sender = log_of(*(One(at, at + 20, "send", "pp", (0, 4), target=4) for at in (0, 100)))
    receiver = log_of(*(One(at, at + 25, "recv", "pp", (0, 4), source=0) for at in (-5, 95)))
    (match,) = match_ranks({0: sender, 4: receiver}).found
    assert (match.party.pair, match.ranks, match.rows.tolist()) == ((0, 4), (0, 4), [[0, 1], [0, 1]])


def test_sends_that_name_no_peer_are_compared_with_nothing() -> None:
    logs = {rank: log_of(One(0, 20, "send_recv", "pp", (0, 1))) for rank in range(2)}
    assert match_ranks(logs).refused == ("2 sends and receives do not say between which ranks: they are not compared",)


def test_two_shifts_that_fit_equally_well_are_no_match() -> None:
    steady = Ordered(*(np.full(6, value, dtype=np.int64) for value in (0, 8)), *_even_times(6))
    longer = Ordered(*(np.full(7, value, dtype=np.int64) for value in (0, 8)), *_even_times(7))
    shift = best_shift(steady, longer)
    assert (shift.by, shift.why) == (None, "8 shifts fit equally well")
    assert best_shift(steady, steady).by == 0, "as many on both: the plain reading"


def _even_times(count: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(count, dtype=np.int64) * 100 * US, np.full(count, 10 * US, dtype=np.int64)


def test_the_clock_does_not_matter() -> None:
    ones = [One(start, start + 10, size=8 * MIB) for start in (0, 100, 230, 300)]
    rows, _ = matched(log_of(*ones), log_of(*shifted(ones, 60e6)))
    assert rows == [[[0, 1, 2, 3], [0, 1, 2, 3]]]


def test_a_job_by_order_says_what_it_says_by_number() -> None:
    def matches(numbered: bool) -> list[Match]:
        job = make_job(Shape(tp=2, dp=2, numbered=numbered), seed=5)
        return list(match_ranks({rank: log_of_rank(job, rank) for rank in range(4)}).found)

    for by_number, by_order in zip(matches(True), matches(False), strict=True):
        assert (by_number.by, by_order.by) == ("sequence", "order")
        assert by_number.party.group.name == by_order.party.group.name
        assert by_number.rows.tolist() == by_order.rows.tolist()


def test_cut_and_thinned_ranks_in_a_job_by_order() -> None:
    told = crossed(make_job(Shape(tp=4, dp=4, numbered=False), Faults(cut={3: (2, 0)}, thinned={9: 0.3}), seed=2))
    compared = {one.rank: one.matched for one in told.lateness}
    assert compared[3] == compared[2] - 2, "the first two of its tensor-parallel group are gone, for all of it"
    assert any("cannot be matched on 1 ranks (9)" in warning for warning in told.warnings)
