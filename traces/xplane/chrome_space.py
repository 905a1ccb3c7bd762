"""Chrome JSON of the JAX profiler (`*.trace.json.gz`) to the same columns as the protobuf.

The JSON is what the profiler shows in a viewer: processes are planes, threads are lines, arguments are stats as text.
It lacks the planes' own stats (device type, peaks) and is cut at a million events, so the protobuf of the same run is
preferred.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Raw, Struct

from projector.errors import CorruptTrace, TraceTooLarge
from traces.content import Content, Limits
from traces.trace import ABSENT, Ints
from traces.xplane.decode import EVENT_INTS, EVENT_TEXTS
from traces.xplane.space import LATEST_PS, LONGEST_PS, NO_TEXT, Kind, Line, Plane, Space, StatValue, Texts

VIEWER_LIMIT_EVENTS: Final = 1_000_000

_PS_PER_US: Final = 10**6
_KIND_TEXTS: Final = ("hlo_category", "tf_op", "long_name")
_KIND_NUMBERS: Final = ("bytes_accessed", "model_flops", "flops", "program_id")
_Scalar = str | int | float | None


class _Event(Struct, gc=False):
    ph: str = ""
    pid: int = 0
    tid: int = 0
    name: str = ""
    ts: Raw = Raw()
    dur: Raw = Raw()
    args: dict[str, Any] | None = None


class _Document(Struct):
    events: list[_Event] = msgspec.field(name="traceEvents", default_factory=list)


@dataclass(slots=True)
class _Thread:
    name: str = ""
    events: list[_Event] = field(default_factory=list)


@dataclass(slots=True)
class _Process:
    name: str = ""
    threads: dict[int, _Thread] = field(default_factory=dict)

    def thread(self, tid: int) -> _Thread:
        return self.threads.setdefault(tid, _Thread())


def chrome_space(content: Content, limits: Limits) -> Space:
    """Decode a whole file.

    Raises `CorruptTrace` where the JSON is damaged or cut off, `TraceTooLarge` above max_events or where it is nested
    too deeply.
    """
    if content.truncated:
        raise CorruptTrace(
            f"{content.file}: the gzip stream ends early", hint="copy the file again, or give the xplane.pb"
        )
    try:
        document = msgspec.json.decode(memoryview(content.data), type=_Document)
    except RecursionError as fault:
        raise TraceTooLarge(f"{content.file} is nested too deeply to be parsed", hint="limit max_depth") from fault
    except msgspec.MsgspecError as fault:
        raise CorruptTrace(
            f"{content.file} is damaged JSON of the JAX profiler: {fault}", hint="give the xplane.pb of the same run"
        ) from fault
    limits.check("max_events", len(document.events), f"number of events in {content.file}")
    warnings: list[str] = []
    processes, timed = _processes(document.events)
    if timed >= VIEWER_LIMIT_EVENTS:
        warnings.append(
            f"the file holds {timed:,} events, and its writer stops at a million: later events are missing; "
            "give the xplane.pb of the same run"
        )
    planes = tuple(_plane(pid, process, warnings) for pid, process in sorted(processes.items()))
    return Space("jax_chrome", content.file, planes, warnings=tuple(warnings))


def _processes(events: list[_Event]) -> tuple[dict[int, _Process], int]:
    processes: dict[int, _Process] = {}
    timed = 0
    for event in events:
        process = processes.setdefault(event.pid, _Process())
        if event.ph == "X":
            timed += 1
            process.thread(event.tid).events.append(event)
        elif event.ph == "M":
            name = str((event.args or {}).get("name", ""))
            if event.name == "process_name":
                process.name = name.split(" (")[0]
            elif event.name == "thread_name":
                process.thread(event.tid).name = name
    return processes, timed


def _plane(pid: int, process: _Process, warnings: list[str]) -> Plane:
    kinds: dict[tuple[str, ...], int] = {}
    made: list[Kind] = []
    lines = tuple(
        _line(tid, thread, kinds, made, process.name, warnings) for tid, thread in sorted(process.threads.items())
    )
    return Plane(pid, process.name, {}, tuple(made), lines)


def _line(
    tid: int,
    thread: _Thread,
    kinds: dict[tuple[str, ...], int],
    made: list[Kind],
    plane: str,
    warnings: list[str],
) -> Line:
    begin = np.array([exact_ps(bytes(event.ts)) for event in thread.events], dtype=np.int64)
    duration = np.array([exact_ps(bytes(event.dur)) for event in thread.events], dtype=np.int64)
    all_args = [event.args or {} for event in thread.events]
    line = Line(
        id=tid,
        name=thread.name,
        timestamp_ns=0,
        kind=np.array([_kind(event, kinds, made) for event in thread.events], dtype=np.int64),
        begin_ps=begin,
        duration_ps=duration,
        ints={name: _ints(all_args, name) for name in EVENT_INTS if any(name in args for args in all_args)},
        texts={name: _texts(all_args, name) for name in EVENT_TEXTS if any(name in args for args in all_args)},
    )
    wrong = (begin < -LATEST_PS) | (begin > LATEST_PS) | (duration < 0) | (duration > LONGEST_PS)
    if not wrong.any():
        return line
    on = f"line {thread.name[:60]!r} of {plane[:60]!r}"
    warnings.append(f"{int(wrong.sum()):,} events on {on} have no usable time and were dropped")
    return line.where(~wrong)


def _kind(event: _Event, kinds: dict[tuple[str, ...], int], made: list[Kind]) -> int:
    args = event.args or {}
    key = (event.name, *(str(args.get(name, "")) for name in (*_KIND_TEXTS, *_KIND_NUMBERS)))
    index = kinds.setdefault(key, len(made))
    if index == len(made):
        stats: dict[str, StatValue] = {name: str(args[name]) for name in ("hlo_category", "tf_op") if name in args}
        numbers = {name: number for name in _KIND_NUMBERS if (number := _whole(args.get(name))) != ABSENT}
        flop = numbers.pop("model_flops", None)
        if flop is not None:
            numbers.setdefault("flops", flop)
        long_name = str(args.get("long_name", ""))
        made.append(Kind(long_name or event.name, event.name if long_name else "", stats | numbers))
    return index


def _ints(all_args: list[dict[str, Any]], name: str) -> Ints:
    return np.array([_whole(args.get(name)) for args in all_args], dtype=np.int64)


def _texts(all_args: list[Mapping[str, Any]] | list[dict[str, Any]], name: str) -> Texts:
    place: dict[str, int] = {}
    ids = [place.setdefault(str(args[name]), len(place)) if name in args else NO_TEXT for args in all_args]
    return Texts(np.array(ids, dtype=np.int64), tuple(place))


def _whole(value: _Scalar | Any) -> int:
    """A whole number, however written; ABSENT where it is none or does not fit."""
    text = str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return ABSENT
    number = int(text)
    return number if -(2**63) <= number < 2**63 else ABSENT


NO_TIME: Final = -(2**62)
"""What `exact_ps` gives for a text that is no time."""


def exact_ps(text: bytes) -> int:
    """Picoseconds of a decimal text of microseconds, rounded to the nearest; NO_TIME where it is none or out of range.

    An empty text (an event without a duration) is 0, an instant.
    """
    if not text:
        return 0
    whole, _, fraction = text.partition(b".")
    if whole.isdigit() and len(whole) <= 12 and len(fraction) <= 6 and (fraction.isdigit() or not fraction):
        return int(whole) * _PS_PER_US + int(fraction.ljust(6, b"0"))
    try:
        number = Decimal(text.decode("ascii").strip('" ')) * _PS_PER_US
        return int(number.to_integral_value()) if number.is_finite() and abs(number) < 2**62 else NO_TIME
    except (ArithmeticError, UnicodeDecodeError):
        return NO_TIME
