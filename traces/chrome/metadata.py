"""What a Kineto file says outside its events: devices, rank, world size, process groups."""

import re
from collections.abc import Mapping
from typing import Any, Final

from projector.specs.record import MOST_DEVICES
from traces.chrome.fields import Number, whole
from traces.trace import DeviceProperties, GroupConfig, Metadata

_FLAGS: Final = ("record_shapes", "with_stack", "with_flops", "with_modules", "profile_memory")


def metadata_of(outer: Mapping[str, Any]) -> Metadata:
    """Metadata from the outer keys of a file. Whatever is missing or malformed stays unknown."""
    distributed = _object(outer.get("distributedInfo"))
    base = whole(_scalar(outer.get("baseTimeNanoseconds")))
    return Metadata(
        devices=tuple(
            _device(_object(entry), index) for index, entry in enumerate(_items(outer.get("deviceProperties")))
        ),
        rank=_count(distributed.get("rank")),
        world_size=_believable_size(distributed.get("world_size")),
        backend=_text(distributed.get("backend")),
        groups=tuple(
            group for entry in _items(distributed.get("pg_config")) if (group := _group(_object(entry))) is not None
        ),
        trace_name=_text(outer.get("traceName")),
        base_time_ns=base if base > 0 else None,
        flags=tuple(flag for flag in _FLAGS if outer.get(flag)),
    )


def disbelieved(outer: Mapping[str, Any]) -> tuple[str, ...]:
    """Warnings about stated sizes that no machine has."""
    stated = _object(outer.get("distributedInfo")).get("world_size")
    if stated is None or _believable_size(stated) is not None:
        return ()
    size = _count(stated)
    if size is not None and size > MOST_DEVICES:
        return (f"distributedInfo states a world size of {size:.3g}, beyond any machine: taken as unknown",)
    return ("distributedInfo states a world size that is no count of ranks: taken as unknown",)


def _believable_size(value: Any) -> int | None:
    size = _count(value)
    return size if size is not None and 0 < size <= MOST_DEVICES else None


def _device(entry: Mapping[str, Any], index: int) -> DeviceProperties:
    stated = _count(entry.get("id"))
    return DeviceProperties(
        index=index if stated is None else stated,
        name=re.sub(r"\s+", " ", _text(entry.get("name"))).strip(),
        memory_bytes=_count(entry.get("totalGlobalMem")) or None,
        compute_units=_count(entry.get("numSms")) or None,
        compute_major=_count(entry.get("computeMajor")),
        compute_minor=_count(entry.get("computeMinor")),
    )


def _group(entry: Mapping[str, Any]) -> GroupConfig | None:
    ranks = tuple(rank for item in _items(entry.get("ranks")) if (rank := _count(item)) is not None)
    size = _count(entry.get("pg_size")) or len(ranks)
    if not 0 < size <= MOST_DEVICES:
        return None
    name = entry.get("pg_name")
    return GroupConfig("" if name is None else _text(str(name)), _text(entry.get("pg_desc")), size, ranks)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    """A text that can be written again: halves of surrogate pairs become U+FFFD."""
    if not isinstance(value, str):
        return ""
    return str(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _scalar(value: Any) -> Number:
    return value if isinstance(value, (int, float, str)) and not isinstance(value, bool) else None


def _count(value: Any) -> int | None:
    number = whole(_scalar(value))
    return number if number >= 0 else None
