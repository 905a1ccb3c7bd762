"""Timelines for the tests of patterns. Times are microseconds; collectives state what NCCL's arguments state."""

from typing import Any

from tests.unit.traces.trace_examples import Event, annotation, kernel, launch, memcpy, op, trace_of
from traces.pattern_types import PatternKind, SequencePattern
from traces.summary import summarise
from traces.summary_types import TraceSummary

GEMM = "nvjet"
CHEAP = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
BF16 = "c10::BFloat16"

__all__ = [
    "BF16",
    "CHEAP",
    "GEMM",
    "Event",
    "annotation",
    "collective",
    "found",
    "issued",
    "kernel",
    "launch",
    "memcpy",
    "op",
    "pattern",
    "summary",
    "wait",
]


def collective(name: str, start: float, duration: float, *, bytes_in: int, bytes_out: int, **more: Any) -> Event:
    """A collective of bfloat16 in a group of 8, on stream 20."""
    arguments = {
        "Collective name": name,
        "Process Group Name": "1",
        "Process Group Description": "mesh_fsdp",
        "Group size": 8,
        "In msg nelems": bytes_in // 2,
        "Out msg nelems": bytes_out // 2,
        "dtype": "BFloat16",
    }
    return kernel("ncclDevKernel_Generic(x)", start, duration, **{"stream": 20, **arguments, **more})


def issued(event: Event, correlation: int, called: float, **more: Any) -> list[Event]:
    """A device event and the call that launched it, which takes 1 us."""
    event["args"]["correlation"] = correlation
    return [event, launch(correlation, called, **more)]


def wait(start: float, duration: float, name: str = "cudaStreamSynchronize") -> Event:
    """A call of the host that waits for the device."""
    return {**launch(0, start), "name": name, "dur": duration, "args": {}}


def summary(*events: Event, **outer: Any) -> TraceSummary:
    return summarise([trace_of(*events, **outer)])


def found(told: TraceSummary) -> dict[PatternKind, SequencePattern]:
    return {one.kind: one for one in told.patterns}


def pattern(kind: PatternKind, *events: Event, **outer: Any) -> SequencePattern | None:
    """The one pattern of a kind in these events, if there is one."""
    return found(summary(*events, **outer)).get(kind)
