"""Patterns of a job: thresholds, ranks, what is unknown, stored summaries, evidence, order and scale."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pattern_examples import CHEAP, GEMM, Event, collective, found, issued, kernel, op, summary

from agents.planning.analyzer import diagnose
from tests.unit.traces.trace_examples import document, trace_of, traces_of_text
from traces.content import Content
from traces.stored.contradictions import contradictions
from traces.stored.document import document_of, read_summary_document
from traces.summary import summarise

NCHW = "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(int)"


def relayout(share: float, name: str = NCHW) -> list[Event]:
    """A relayout that takes this share of a window of 10,000 us."""
    return [kernel(name, 0, 10_000 * share), kernel(GEMM, 10_000 * share, 10_000 * (1 - share))]


def test_less_than_half_a_percent_is_not_told() -> None:
    assert "relayout_copies" in found(summary(*relayout(0.0051)))
    assert not found(summary(*relayout(0.0049)))


def test_ranks_add_up() -> None:
    ranks = [trace_of(*relayout(share), distributedInfo={"rank": rank}) for rank, share in enumerate((0.02, 0.04))]
    told = summarise(ranks).patterns[0]
    assert (told.occurrences, told.exposed_ns, told.exposed_frac) == (2, 600_000, 0.03)
    assert summarise(ranks[::-1]).patterns[0] == told


def test_a_trace_without_device_events_says_of_every_pattern_that_it_cannot_tell() -> None:
    told = summary(op("aten::mm", 0, 10))
    assert not told.patterns
    assert len(told.patterns_unknown) == 9
    assert {one.why for one in told.patterns_unknown} == {"the trace holds no device event"}


def test_a_trace_without_launches_cannot_tell_what_the_host_did() -> None:
    told = {one.kind for one in summary(kernel(GEMM, 0, 10), kernel(GEMM, 30, 10)).patterns_unknown}
    assert told == {"host_syncs", "tiny_kernels"}


def test_what_one_rank_could_be_searched_for_is_not_unknown() -> None:
    whole = trace_of(*issued(kernel(GEMM, 0, 10), 1, -5), distributedInfo={"rank": 0})
    device_alone = trace_of(kernel(GEMM, 0, 10), distributedInfo={"rank": 1})
    assert not summarise([whole, device_alone]).patterns_unknown


def test_collectives_without_sizes_cannot_be_called_small() -> None:
    events = [kernel("ncclDevKernel_AllReduce_Sum(x)", 12 * at, 10, stream=20) for at in range(5)]
    told = {one.kind for one in summary(*events, kernel(GEMM, 100, 10)).patterns_unknown}
    assert {"tiny_collectives", "gather_then_slice"} <= told


def test_a_stored_summary_keeps_patterns_and_no_names() -> None:
    told = summary(*relayout(0.1, "void acme_secret::batched_transpose<512>(int)"))
    whole = document_of(told, redacted=False)
    masked = document_of(told, redacted=True)
    assert read_summary_document(Content("a.json", whole.model_dump_json().encode())).summary.patterns == told.patterns
    assert masked.summary.patterns[0].basis == told.patterns[0].basis
    assert masked.summary.patterns[0].examples == ("void x1::batched_transpose<512>(int)",)
    assert masked.summary.patterns_unknown == told.patterns_unknown


def test_a_stored_summary_whose_patterns_are_longer_than_the_window_contradicts_itself() -> None:
    told = summary(*relayout(0.1))
    wrong = told.patterns[0].model_copy(update={"total_ns": told.window_ns + 1})
    assert "a pattern takes" in contradictions(told.model_copy(update={"patterns": (wrong,)}))[0][1]


def test_each_pattern_is_evidence_with_its_bound_and_what_relieves_it() -> None:
    (told,) = [one for one in diagnose(summary(*relayout(0.1))).evidence if one.id.startswith("ev-pattern")]
    assert (told.id, told.value, told.unit) == ("ev-pattern-relayout-copies", 0.1, "fraction")
    assert "at most 10.0 % of the window to gain" in told.claim
    assert "One layout throughout" in told.claim


def test_what_is_not_proved_is_called_possible_with_the_reason() -> None:
    reduction = collective("allreduce", 0, 100, bytes_in=8 << 20, bytes_out=8 << 20)
    events = [*issued(kernel(GEMM, -50, 50), 1, -90), *issued(reduction, 2, -45), *issued(kernel(GEMM, 102, 9), 3, -40)]
    (told,) = [one for one in diagnose(summary(*events)).evidence if one.id.startswith("ev-pattern")]
    assert "Only possibly: a gradient reduction" in told.claim


NAMES = (GEMM, CHEAP, NCHW, "SubTensorOpWithScalar1d")
SYNC = {"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 100, "tid": 1, "args": {}}


@st.composite
def timelines(draw: st.DrawFn) -> list[Event]:
    """Kernels and small collectives with their launches, in order of issue, and waits between."""
    events: list[Event] = []
    start = called = 0
    for number in range(1, draw(st.integers(12, 40))):
        start += draw(st.integers(0, 40))
        called = max(called, start - draw(st.integers(1, 60)))
        took = draw(st.integers(1, 20))
        if draw(st.booleans()):
            event = kernel(draw(st.sampled_from(NAMES)), start, took, stream=draw(st.sampled_from((7, 7, 9))))
        else:
            name = draw(st.sampled_from(("allreduce", "_allgather_base")))
            event = collective(name, start, took, bytes_in=4096, bytes_out=4096)
        events += issued(event, number, called)
        if draw(st.integers(0, 3)) == 0:
            events.append({**SYNC, "ts": start, "dur": took + 1})
        called += 2
        start += took
    return events


@settings(max_examples=40)
@given(timelines(), st.integers(0, 2**32))
def test_shuffled_events_change_nothing(events: list[Event], seed: int) -> None:
    shuffled = list(events)
    random.Random(seed).shuffle(shuffled)  # noqa: S311
    assert summary(*shuffled).patterns == summary(*events).patterns


@pytest.mark.parametrize("factor", [2, 1000])
@settings(max_examples=40)
@given(timelines())
def test_scaled_times_scale_times_alone(factor: int, events: list[Event]) -> None:
    scaled = [{**event, "ts": event["ts"] * factor, "dur": event["dur"] * factor} for event in events]
    (trace,) = traces_of_text(json.dumps(document(*scaled)))
    here, there = summary(*events).patterns, summarise([trace]).patterns
    assert [(one.kind, one.occurrences, one.exposed_frac, one.examples) for one in here] == [
        (one.kind, one.occurrences, one.exposed_frac, one.examples) for one in there
    ]
    assert [factor * one.exposed_ns for one in here] == [one.exposed_ns for one in there]


@settings(max_examples=40)
@given(timelines())
def test_what_is_exposed_is_a_part_of_what_is_taken(events: list[Event]) -> None:
    told = summary(*events)
    assert contradictions(told) == []
    assert all(0 < one.exposed_ns <= one.total_ns <= told.window_ns for one in told.patterns)


def test_what_the_host_did_suggests_no_class_of_a_device() -> None:
    told = diagnose(summary(op("c10d::allreduce_", 0, 80), op("aten::mm", 80, 10)))
    assert told.abstained
    assert not told.overturned
    assert told.overturned_by == ""
