"""The order in which a profiler wrote its events, and when it started its clock, change nothing."""

import json
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from traces.content import Content, Limits
from traces.readers import kineto
from traces.summary import summarise
from traces.summary_types import TimeShares, TraceSummary

NAMES = (
    "nvjet",
    "ncclDevKernel_AllReduce",
    "mystery",
    "void at::native::elementwise_kernel<int>(int)",
    "flash_fwd_kernel",
)


@st.composite
def kernels(draw: st.DrawFn) -> list[dict[str, Any]]:
    events = [
        {
            "ph": "X",
            "cat": draw(st.sampled_from(("kernel", "kernel", "gpu_memcpy"))),
            "name": draw(st.sampled_from(NAMES)),
            "pid": 0,
            "tid": 7,
            "ts": draw(st.integers(0, 80)),
            "dur": draw(st.integers(0, 30)),
            "args": {"device": 0, "stream": draw(st.sampled_from((7, 20)))},
        }
        for _ in range(draw(st.integers(1, 12)))
    ]
    events[0]["dur"] += 1  # a trace in which nothing takes time is refused
    return events


def summary(events: list[dict[str, Any]], origin: int = 0) -> TraceSummary:
    shifted = [{**event, "ts": event["ts"] + origin} for event in events]
    data = json.dumps({"traceEvents": shifted}).encode()
    return summarise(kineto.read(Content("t.json", data), Limits()))


@given(kernels(), st.integers(0, 2**32))
def test_shuffling_the_events_changes_nothing(events: list[dict[str, Any]], seed: int) -> None:
    shuffled = list(events)
    random.Random(seed).shuffle(shuffled)  # noqa: S311
    assert summary(events) == summary(shuffled)


@given(kernels(), st.integers(0, 10**15))
def test_the_origin_of_time_changes_no_share(events: list[dict[str, Any]], origin: int) -> None:
    here, there = summary(events), summary(events, origin)
    for name in TimeShares.model_fields:
        assert getattr(here, name) == getattr(there, name)


@given(kernels())
def test_the_terms_add_up_to_the_window(events: list[dict[str, Any]]) -> None:
    found = summary(events)
    terms = found.compute_ns + found.exposed_communication_ns + found.exposed_copy_ns + found.idle_ns
    assert terms == found.window_ns
    assert found.exposed_communication_ns <= found.communication_ns
    assert found.exposed_copy_ns <= found.copy_ns
    assert found.unclassified_ns <= found.compute_ns
