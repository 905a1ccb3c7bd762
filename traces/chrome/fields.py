"""Fields of a Chrome trace event that are read, by group of events; decoded strictly, or leniently where a type is odd.

Strict decoding takes a list of events in one call. Lenient decoding takes one event that a general parser made sense
of: a value of an unusable type counts as not stated, and the event as odd.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import Raw, Struct, field

from traces.chrome.categories import Group
from traces.trace import ABSENT

Number = int | float | str | None

UNSTATED: Final = -(2**63)
"""Stands for a number that an event does not state, in the fields that become columns."""


class CollectiveFields(Struct, gc=False, kw_only=True):
    """What stands beside a collective; the names on the right are the profiler's. Keyword-only: behind other fields."""

    collective: str | None = field(name="Collective name", default=None)
    dtype: str | None = None
    in_elements: Number = field(name="In msg nelems", default=None)
    out_elements: Number = field(name="Out msg nelems", default=None)
    group_size: Number = field(name="Group size", default=None)
    group: Number = field(name="Process Group Name", default=None)
    group_description: str | None = field(name="Process Group Description", default=None)
    group_ranks: str | None = field(name="Process Group Ranks", default=None)
    group_start: Number = field(name="Global rank start", default=None)
    group_stride: Number = field(name="Global rank stride", default=None)
    sequence: Number = field(name="Seq", default=None)
    source_rank: Number = field(name="Src Rank", default=None)
    target_rank: Number = field(name="Dst Rank", default=None)
    in_split: str | None = field(name="In split size", default=None)
    out_split: str | None = field(name="Out split size", default=None)


class OpArgs(CollectiveFields, gc=False):
    """Arguments of host operators and annotations, in the order of the profiler, which is the quickest to decode."""

    external_id: Number = field(name="External id", default=UNSTATED)
    record_id: Number = field(name="Record function id", default=UNSTATED)
    values: Raw = field(name="Concrete Inputs", default=Raw())
    types: Raw = field(name="Input type", default=Raw())
    strides: Raw = field(name="Input Strides", default=Raw())
    dims: Raw = field(name="Input Dims", default=Raw())
    flop: Number = field(name="flops", default=UNSTATED)
    external_id_2021: Number = field(name="external id", default=UNSTATED)


class CallArgs(Struct, gc=False):
    """Arguments of runtime and driver calls; on ROCm the call of a copy has its size, not the copy itself."""

    external_id: Number = field(name="External id", default=UNSTATED)
    correlation: Number = UNSTATED
    size_bytes: Number = field(name="bytes", default=UNSTATED)
    external_id_2021: Number = field(name="external id", default=UNSTATED)


class DeviceArgs(CollectiveFields, gc=False):
    """Arguments of kernels, copies, memsets and annotations on the device."""

    external_id: Number = field(name="External id", default=UNSTATED)
    device: Number = UNSTATED
    stream: Number = UNSTATED
    correlation: Number = UNSTATED
    size_bytes: Number = field(name="bytes", default=UNSTATED)
    kind: Number = None
    external_id_2021: Number = field(name="external id", default=UNSTATED)


class MemoryArgs(Struct, gc=False):
    """Arguments of a report of allocated memory."""

    device_type: Number = field(name="Device Type", default=None)
    device_id: Number = field(name="Device Id", default=None)
    total_allocated: Number = field(name="Total Allocated", default=None)


class OpEvent(Struct, gc=False):
    """A host operator or annotation. ts and dur keep their text, so that no digit is lost."""

    name: str = ""
    pid: Number = None
    tid: Number = None
    ts: Raw = Raw()
    dur: Raw = Raw()
    args: OpArgs | None = None


class CallEvent(Struct, gc=False):
    """A runtime or driver call."""

    name: str = ""
    pid: Number = None
    tid: Number = None
    ts: Raw = Raw()
    dur: Raw = Raw()
    args: CallArgs | None = None


class DeviceEvent(Struct, gc=False):
    """An event on a device."""

    name: str = ""
    pid: Number = None
    tid: Number = None
    ts: Raw = Raw()
    dur: Raw = Raw()
    args: DeviceArgs | None = None


class MemoryEvent(Struct, gc=False):
    """An instant; those named [memory] report what is allocated."""

    name: str = ""
    args: MemoryArgs | None = None


class Head(Struct, gc=False):
    """What decides the group of an event."""

    ph: str = ""
    cat: str = ""


Event = OpEvent | CallEvent | DeviceEvent | MemoryEvent

EVENT_OF: Final[Mapping[Group, type[Struct]]] = {
    Group.OPS: OpEvent,
    Group.CALLS: CallEvent,
    Group.DEVICE: DeviceEvent,
    Group.MEMORY: MemoryEvent,
}
_ARGS_OF: Final[Mapping[Group, type[Struct]]] = {
    Group.OPS: OpArgs,
    Group.CALLS: CallArgs,
    Group.DEVICE: DeviceArgs,
    Group.MEMORY: MemoryArgs,
}

strict_events: Final[Mapping[Group, Callable[[bytes], list[Event]]]] = {
    group: cast(Callable[[bytes], list[Event]], msgspec.json.Decoder(list[event]).decode)  # type: ignore[valid-type]
    for group, event in EVENT_OF.items()
}
"""Bytes of a JSON list of events -> events; raises msgspec.DecodeError on broken text or an unexpected type."""

strict_event: Final[Mapping[Group, Callable[[bytes], Event]]] = {
    group: cast(Callable[[bytes], Event], msgspec.json.Decoder(event).decode) for group, event in EVENT_OF.items()
}
"""The same for one event."""

strict_heads: Final = msgspec.json.Decoder(list[Head]).decode
strict_head: Final = msgspec.json.Decoder(Head).decode
"""The same for what decides the groups."""

_NULL: Final = Raw(b"null")
_READ_OF: Final = {
    into: tuple(
        (info.encode_name, info.name, info.type) for info in msgspec.structs.fields(into) if info.name != "args"
    )
    for into in (*EVENT_OF.values(), *_ARGS_OF.values())
}


class _Decimal(str):
    """A number as it is written in the file: with a fraction or exponent, or of very many digits."""

    __slots__ = ()


def _integer(text: str) -> int | str:
    return int(text) if len(text) <= 40 else _Decimal(text)


def _refused(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


strict_json = json.JSONDecoder(parse_float=_Decimal, parse_int=_integer, parse_constant=_refused)
"""JSON as the standard has it, up to lone surrogates; keeps decimals and huge integers as text."""

lenient_json = json.JSONDecoder(strict=False, parse_float=_Decimal, parse_int=_integer, parse_constant=lambda _: None)
"""The same, and accepts control characters inside strings, and NaN and Infinity as null."""


def lenient_head(fields: Mapping[str, Any]) -> Head:
    """Phase and category of an event from parsed JSON."""
    return Head(_text(fields.get("ph")) or "", _text(fields.get("cat")) or "")


def lenient_event(fields: Mapping[str, Any], group: Group) -> tuple[Event, bool]:
    """An event of a group from parsed JSON, and whether a value of it was odd: of a type its field does not have."""
    values, odd = _read(fields, EVENT_OF[group])
    args = fields.get("args")
    if isinstance(args, dict):
        inner, odd_args = _read(args, _ARGS_OF[group])
        values["args"] = _ARGS_OF[group](**inner)
        odd |= odd_args
    else:
        odd |= args is not None
    if values.get("name", "") is None:
        values["name"], odd = "", True
    return cast(Event, EVENT_OF[group](**values)), odd


def _read(fields: Mapping[str, Any], into: type[Struct]) -> tuple[dict[str, Any], bool]:
    """Values for the fields of a record, args excepted."""
    values: dict[str, Any] = {}
    odd = False
    for written, name, kind in _READ_OF[into]:
        if written not in fields:
            continue
        value = fields[written]
        if kind is Raw:
            values[name] = _raw(value)
        elif kind == Number:
            usable = value is None or (isinstance(value, (int, str)) and not isinstance(value, bool))
            value = float(value) if isinstance(value, _Decimal) else value
            values[name], odd = (value, odd) if usable else (None, True)
        else:
            values[name] = _text(value)
            odd |= value is not None and (not isinstance(value, str) or isinstance(value, _Decimal))
    return values, odd


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return str(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _raw(value: Any) -> Raw:
    """The value as JSON text; decimals as they stand in the file."""
    if isinstance(value, _Decimal):
        return Raw(value.encode())
    try:
        return Raw(msgspec.json.encode(value, enc_hook=_as_written))
    except (ValueError, UnicodeError, OverflowError, RecursionError):  # lone surrogates
        return _NULL


def _as_written(value: Any) -> Raw:
    """A decimal inside a list or an object, as it stands in the file."""
    assert isinstance(value, _Decimal), "what a JSON parser gives holds nothing else of our own"
    return Raw(value.encode())


def whole(value: Number) -> int:
    """An integer argument, however written: 7, 7.0, "7", "stream 7". ABSENT where there is none that fits 64 bits."""
    if isinstance(value, str):
        digits = value.strip().rpartition(" ")[2]
        value = _decimal(digits)
    if isinstance(value, float):
        value = int(value) if value.is_integer() else None
    return value if value is not None and -(2**63) <= value < 2**63 else ABSENT


def _decimal(digits: str) -> int | None:
    whole_part, _, fraction = digits.partition(".")
    plain = whole_part.removeprefix("-")
    if not (plain.isascii() and plain.isdigit() and len(plain) <= 20 and not fraction.strip("0")):
        return None
    return int(whole_part)
