"""One Chrome trace event: the fields used here, decoded strictly and fast, or leniently where a type is odd."""

import json
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from traces.trace import ABSENT

Number = int | float | str | None


class Args(Struct, gc=False):
    """Arguments of an event; the names on the right are the profiler's."""

    external_id: Number = field(name="External id", default=None)
    external_id_2021: Number = field(name="external id", default=None)
    correlation: Number = None
    device: Number = None
    stream: Number = None
    size_bytes: Number = field(name="bytes", default=None)
    collective: str | None = field(name="Collective name", default=None)
    in_elements: Number = field(name="In msg nelems", default=None)
    out_elements: Number = field(name="Out msg nelems", default=None)
    group_size: Number = field(name="Group size", default=None)
    dtype: str | None = None
    group: Number = field(name="Process Group Name", default=None)
    group_description: str | None = field(name="Process Group Description", default=None)
    group_ranks: str | None = field(name="Process Group Ranks", default=None)
    dims: Raw = field(name="Input Dims", default=Raw())
    types: Raw = field(name="Input type", default=Raw())
    values: Raw = field(name="Concrete Inputs", default=Raw())
    device_type: Number = field(name="Device Type", default=None)
    device_id: Number = field(name="Device Id", default=None)
    total_allocated: Number = field(name="Total Allocated", default=None)


class Event(Struct, gc=False):
    """One event. ts and dur keep their text, so that no digit is lost."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: Number = None
    tid: Number = None
    ts: Raw = Raw()
    dur: Raw = Raw()
    args: Args | None = None


strict_event = msgspec.json.Decoder(Event).decode
"""Raw bytes of one event -> Event; raises msgspec.DecodeError on broken text or an unexpected type."""

_ARGUMENTS = {info.encode_name: info.name for info in msgspec.structs.fields(Args)}
_TEXTS = frozenset({"collective", "dtype", "group_description", "group_ranks"})
_RAWS = frozenset({"dims", "types", "values"})


def lenient_event(fields: dict[str, Any]) -> Event:
    """An Event from parsed JSON: values of an unusable type count as not stated."""
    args = fields.get("args")
    return Event(
        ph=_text(fields.get("ph")) or "",
        cat=_text(fields.get("cat")) or "",
        name=_text(fields.get("name")) or "",
        pid=_number(fields.get("pid")),
        tid=_number(fields.get("tid")),
        ts=_time(fields.get("ts")),
        dur=_time(fields.get("dur")),
        args=_lenient_args(args) if isinstance(args, dict) else None,
    )


def _integer(text: str) -> int | str:
    return int(text) if len(text) <= 40 else text


def _refused(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


strict_json = json.JSONDecoder(parse_float=str, parse_int=_integer, parse_constant=_refused)
"""JSON as the standard has it, up to lone surrogates; keeps decimals and huge integers as text."""

lenient_json = json.JSONDecoder(strict=False, parse_float=str, parse_int=_integer, parse_constant=lambda _: None)
"""The same, and accepts control characters inside strings, and NaN and Infinity as null."""


def _lenient_args(args: dict[str, Any]) -> Args:
    found: dict[str, Any] = {}
    for written, value in args.items():
        name = _ARGUMENTS.get(written)
        if name is None:
            continue
        if name in _RAWS:
            found[name] = Raw(msgspec.json.encode(value))
        else:
            found[name] = _text(value) if name in _TEXTS else _number(value)
    return Args(**found)


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return str(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _number(value: Any) -> Number:
    return value if isinstance(value, (int, str)) and not isinstance(value, bool) else None


def _time(value: Any) -> Raw:
    number = _number(value)
    return Raw() if number is None else Raw(str(number).encode("utf-8", "replace"))


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
