"""A job's summary does not depend on the order its ranks come in, and its sums are those of its ranks."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.jobs.job_examples import parts_of
from tests.unit.traces.trace_examples import Event, annotation, kernel
from traces.merge import merge_parts
from traces.rank import RankParts
from traces.summary_types import TimeShares


@st.composite
def jobs(draw: st.DrawFn) -> list[RankParts]:
    """Files that may repeat one another's ranks, devices, times and names of kernels."""
    parts: list[RankParts] = []
    for source in range(draw(st.integers(1, 6))):
        start = draw(st.sampled_from([0, 5, 100]))
        events: list[Event] = [annotation("ProfilerStep#1", start, 50)]
        for device in draw(st.sampled_from([(0,), (0, 1)])):
            for at in range(draw(st.integers(1, 3))):
                name = draw(st.sampled_from(["nvjet", "ncclDevKernel_AllReduce", "odd"]))
                events.append(kernel(name, start + 7 * at, draw(st.integers(1, 9)), device=device))
        rank = draw(st.none() | st.integers(0, 3))
        world = draw(st.sampled_from([None, 4, 8]))
        name = draw(st.sampled_from(["a.json", f"rank{source}.json", f"{source}.json"]))
        parts += parts_of(name, *events, rank=rank, world=world, source=source)
    return parts


@settings(max_examples=60, deadline=None)
@given(jobs(), st.integers(0, 1000))
def test_the_order_of_the_ranks_does_not_matter(parts: list[RankParts], seed: int) -> None:
    summary = merge_parts(parts)
    assert merge_parts(random.Random(seed).sample(parts, len(parts))) == summary  # noqa: S311
    for name in TimeShares.model_fields:
        assert getattr(summary, name) == sum(getattr(rank, name) for rank in summary.ranks)
    assert summary.job.present == tuple(sorted({rank.rank for rank in summary.ranks if rank.rank is not None}))
