"""Short ways to write a Kineto trace in a test. Times are microseconds, as the profiler writes them."""

import json
from typing import Any

from traces.content import Content, Limits
from traces.read import DEFAULT_LIMITS
from traces.readers import kineto
from traces.trace import Trace

Event = dict[str, Any]


def kernel(name: str, start: float, duration: float, *, stream: int = 7, device: int = 0, **args: Any) -> Event:
    """A kernel; further arguments as the profiler spells them, blanks as underscores in lower case ids."""
    return _on_device("kernel", name, start, duration, stream, device, args)


def memcpy(start: float, duration: float, *, stream: int = 7, device: int = 0, **args: Any) -> Event:
    return _on_device("gpu_memcpy", "Memcpy DtoD (Device -> Device)", start, duration, stream, device, args)


def memset(start: float, duration: float, *, stream: int = 7, device: int = 0, **args: Any) -> Event:
    return _on_device("gpu_memset", "Memset (Device)", start, duration, stream, device, args)


def op(name: str, start: float, duration: float, *, thread: int = 1, **args: Any) -> Event:
    return _on_host("cpu_op", name, start, duration, thread, args)


def annotation(name: str, start: float, duration: float, *, thread: int = 1, **args: Any) -> Event:
    return _on_host("user_annotation", name, start, duration, thread, args)


def launch(correlation: int, start: float, *, thread: int = 1, **args: Any) -> Event:
    return _on_host("cuda_runtime", "cudaLaunchKernel", start, 1, thread, {"correlation": correlation, **args})


def device_annotation(name: str, start: float, duration: float, *, stream: int = 7) -> Event:
    return _on_device("gpu_user_annotation", name, start, duration, stream, 0, {})


def document(*events: Event, **outer: Any) -> dict[str, Any]:
    return {"schemaVersion": 1, **outer, "traceEvents": list(events)}


def trace_of(*events: Event, **outer: Any) -> Trace:
    """The Trace of one device that the reader makes of these events."""
    (trace,) = traces_of_text(json.dumps(document(*events, **outer)))
    return trace


def traces_of_text(text: str | bytes, *, careful: bool = False, limits: Limits = DEFAULT_LIMITS) -> tuple[Trace, ...]:
    data = text.encode() if isinstance(text, str) else text
    return kineto.read(Content("example.json", data), limits, careful=careful)


def external(number: int) -> dict[str, int]:
    """The External id argument, whose name has a blank."""
    return {"External id": number}


def _on_device(
    category: str, name: str, start: float, duration: float, stream: int, device: int, args: dict[str, Any]
) -> Event:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": device,
        "tid": stream,
        "ts": start,
        "dur": duration,
        "args": {"device": device, "stream": stream, **args},
    }


def _on_host(category: str, name: str, start: float, duration: float, thread: int, args: dict[str, Any]) -> Event:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": 100,
        "tid": thread,
        "ts": start,
        "dur": duration,
        "args": args,
    }
