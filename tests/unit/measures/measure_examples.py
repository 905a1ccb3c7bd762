"""Timelines for the tests of this folder. Times are microseconds, as in the helpers of the trace tests."""

from typing import Any

from tests.unit.traces.trace_examples import (
    Event,
    annotation,
    device_annotation,
    kernel,
    launch,
    memcpy,
    memset,
    op,
    trace_of,
)
from traces.launches import GapCauses, gap_causes
from traces.linking import link
from traces.naming import Classified, classify
from traces.shares import Cover, device_cover
from traces.trace import Trace

__all__ = [
    "Event",
    "annotation",
    "call",
    "causes_of",
    "classified_cover",
    "copy",
    "device_annotation",
    "kernel",
    "launch",
    "launched",
    "memcpy",
    "memset",
    "op",
    "trace_of",
]


def call(name: str, correlation: int, start: float, duration: float, *, thread: int = 1) -> Event:
    """A runtime call of any name and length."""
    event = launch(correlation, start, thread=thread)
    return {**event, "name": name, "dur": duration}


def launched(correlation: int, called: float, took: float, start: float, duration: float, **args: Any) -> list[Event]:
    """A launching call and the kernel it launched."""
    return [
        call("cudaLaunchKernel", correlation, called, took),
        kernel("nvjet", start, duration, correlation=correlation, **args),
    ]


def copy(name: str, start: float, duration: float, **args: Any) -> Event:
    """A copy by its full name."""
    return {**memcpy(start, duration, **args), "name": name}


def causes_of(*events: Event) -> GapCauses:
    trace = trace_of(*events)
    links = link(trace)
    return gap_causes(trace, links, device_cover(trace, classify(trace)).idle)


def classified_cover(*events: Event) -> tuple[Trace, Classified, Cover]:
    trace = trace_of(*events)
    classified = classify(trace)
    return trace, classified, device_cover(trace, classified)
