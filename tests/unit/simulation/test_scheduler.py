"""The scheduler: jumps against single steps, pool and preemption, budgets, prefixes."""

import numpy as np
import pytest
from simulation_examples import ROOMY, Ran, ran, requests, steps

from projector.simulation.pool import Pool, PrefixCache
from projector.simulation.replica import Replica
from projector.simulation.request import Limits
from projector.simulation.request_log import RequestLog


class OneByOne(Replica):
    """Takes every decode step on its own."""

    def _jump(self) -> None:
        super()._jump()
        self.steps = 1
        self.slowest = max((rank for rank in self.ranks if rank.decoding), key=lambda rank: self._seconds(rank, 1))
        self.end_s = self.clock_s + self._seconds(self.slowest, 1)


def tight(tokens: int) -> Pool:
    return Pool(bytes_=float(tokens), request_bytes=0.0, token_bytes=1.0, block_tokens=16)


def mixture(count: int = 300, seed: int = 0) -> "object":
    random = np.random.default_rng(seed)
    arrival_s = np.cumsum(random.exponential(2.0, count))
    return requests(arrival_s, random.integers(1, 400, count), random.integers(1, 120, count))


@pytest.mark.parametrize("pool", [ROOMY, tight(1500), tight(700)], ids=["roomy", "tight", "tighter"])
def test_jumps_are_the_steps_they_stand_for(pool: Pool) -> None:
    limits = Limits(seats=12, chunk_tokens=64, step_tokens=70)
    times = steps(0.1, 0.3, by_context=1e-4)
    by_jump, by_step = (ran(mixture(), times, limits=limits, pool=pool, engine=kind) for kind in (Replica, OneByOne))
    for name in ("started_s", "first_s", "finish_s"):
        assert by_jump.column(name) == pytest.approx(by_step.column(name), rel=1e-9)
    preempted = [sum(rank.preemptions for rank in one.ranks) for one in (by_jump, by_step)]
    assert preempted[0] == preempted[1]
    assert (preempted[0] > 0) == (pool is not ROOMY)
    gaps, single = by_jump.counts, by_step.counts
    assert sum(gaps.gap_counts) == sum(single.gap_counts)
    assert np.dot(gaps.gaps_s, gaps.gap_counts) == pytest.approx(np.dot(single.gaps_s, single.gap_counts))
    for share in (0.5, 0.9, 0.99):
        assert weighted(gaps.gaps_s, gaps.gap_counts, share) == pytest.approx(
            weighted(single.gaps_s, single.gap_counts, share), rel=0.01
        )
    assert (gaps.steps, gaps.mixed_steps, gaps.decoding_sum) == (
        single.steps,
        single.mixed_steps,
        single.decoding_sum,
    )


def weighted(values: object, counts: object, share: float) -> float:
    return float(np.quantile(np.repeat(values, np.asarray(counts, dtype=int)), share))  # type: ignore[arg-type]


def test_every_token_but_the_first_has_its_gap() -> None:
    of = mixture()
    for pool in (ROOMY, tight(700)):
        found = ran(of, steps(0.1, 0.3), limits=Limits(12, 64, 70), pool=pool)  # type: ignore[arg-type]
        assert sum(found.counts.gap_counts) == sum(of.output_tokens - 1)  # type: ignore[attr-defined]
        # gaps of a request sum to its time from the first token to the last
        decoding_s = found.column("finish_s") - found.column("first_s")
        assert np.dot(found.counts.gaps_s, found.counts.gap_counts) == pytest.approx(decoding_s.sum())


def test_preemption_takes_the_newest_and_computes_it_anew() -> None:
    # A pool of 6 blocks of 16 tokens, two prompts of 32: A prefills from 0 to 1, B from 1 to 2.
    of = requests(np.array([0.0, 0.0]), 32, 40)
    found = ran(of, steps(1.0), limits=Limits(2, 32, 0), pool=tight(96))
    assert sum(rank.preemptions for rank in found.ranks) == 1
    # At 17 A holds 48 tokens and needs a fourth block, B holds 47 in three: B goes, A decodes its 39 tokens till 40.
    assert found.column("finish_s")[0] == 40.0
    # B, 16 of its tokens out, computes the 48 tokens before the 17th in two steps from 40 on; 23 more follow.
    assert found.column("finish_s")[1] == 42.0 + 23.0
    # it waited for its 17th token from 17 to 42
    assert max(found.counts.gaps_s) == 25.0


def test_what_never_fits_is_refused_and_counted() -> None:
    of = requests(np.array([0.0, 1.0, 2.0]), np.array([10, 500, 10]), 5)
    found = ran(of, steps(1.0), pool=tight(96))
    assert (found.outcome.refused, len(found.outcome.finished)) == (1, 2)


def test_decoding_requests_leave_the_rest_of_the_budget_to_a_prompt() -> None:
    # 10 tokens a step, one of them decoding: the second prompt of 27 tokens takes 3 steps of 9
    found = ran(requests(np.array([0.0, 3.0]), np.array([10, 27]), 20), steps(1.0), limits=Limits(4, 2048, 10))
    assert found.column("first_s").tolist() == [1.0, 6.0]


def test_short_prompts_share_a_step() -> None:
    found = ran(requests(np.zeros(5), 40, 2), steps(1.0), limits=Limits(8, 100, 0))
    # 100 = 40 + 40 + 20, then 20 + 40 + 40
    assert found.column("first_s").tolist() == [1.0, 1.0, 2.0, 2.0, 2.0]


def test_ranks_of_an_engine_step_together() -> None:
    # the second rank's prompt of 4 chunks makes every step of the first one long
    of = requests(np.array([0.0, 0.0]), np.array([10, 400]), np.array([5, 1]))
    found = ran(of, steps(1.0, 3.0), limits=Limits(4, 100, 0), ranks=2)
    assert found.column("finish_s").tolist() == [13.0, 12.0]
    apart = ran(of, steps(1.0, 3.0), limits=Limits(4, 100, 0), replicas=2)
    assert apart.column("finish_s").tolist() == [7.0, 12.0]


def logged(blocks: list[tuple[int, ...]], gap_s: float = 100.0) -> RequestLog:
    count = len(blocks)
    inputs = np.array([16 * len(one) for one in blocks], dtype=np.int64)
    return RequestLog(np.arange(count) * gap_s, inputs, np.full(count, 2), tuple(blocks), block_tokens=16)


def replayed(log: RequestLog, pool: Pool = ROOMY) -> Ran:
    of = requests(log.arrival_s, log.input_tokens, log.output_tokens, log=log)
    return ran(of, steps(1.0), limits=Limits(4, 16, 0), pool=pool)


def test_a_prefix_that_was_computed_is_not_computed_again() -> None:
    found = replayed(logged([(1, 2, 3), (1, 2, 4), (1, 2, 3)]))
    # a step a block: 3, then 1 (two at hand), then 1 (all at hand, and the last block has to be computed)
    assert (found.column("first_s") - found.column("arrival_s")).tolist() == [3.0, 1.0, 1.0]
    assert (found.ranks[0].hit_tokens, found.ranks[0].prompt_tokens) == (64, 144)


def test_the_least_recently_used_prefix_goes_first() -> None:
    # room for 5 blocks: two prompts of two with their answers' block, not three
    found = replayed(logged([(1, 2), (3, 4), (1, 2), (5, 6), (1, 2), (3, 4)]), tight(80))
    taken = (found.column("first_s") - found.column("arrival_s")).tolist()
    assert taken == [2.0, 2.0, 1.0, 2.0, 1.0, 2.0]


def test_a_cache_holds_what_somebody_uses() -> None:
    cache = PrefixCache(block_tokens=16)
    cache.hold((1, 2))
    cache.hold((1,))
    cache.release((1, 2))
    cache.trim(0)
    assert (cache.hits((1, 2)), cache.held, list(cache.idle)) == (1, {1: 1}, [])
