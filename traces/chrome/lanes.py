"""A stretch of JSON events to typed records, sorted into groups; events that nobody reads are never decoded.

Three lanes give the same. The first decodes the whole stretch in one call into a union of records told apart by
category, in which the events nobody reads have no fields: they are checked for syntax, counted and gone. Where an event
has no category, or one that is not listed here, or a value of an unexpected type, the second lane tells the group of
every event first and decodes group by group, leniently where values are odd. The third takes single events that were
parsed already, as `traces.chrome.mending` finds them in broken JSON.

Each lane goes through the syntax of every event of a stretch, so that one which was cut at a wrong place raises and is
never taken for whole events.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, Final, Literal, Union

import msgspec
from msgspec import Raw, Struct, defstruct

from traces.chrome.categories import CATEGORIES, INSTANTS, NO_WORK, Group, Kind, kind_of
from traces.chrome.fields import (
    EVENT_OF,
    Event,
    Head,
    lenient_event,
    lenient_head,
    strict_event,
    strict_events,
    strict_head,
    strict_heads,
    strict_json,
)
from traces.chrome.nesting import check_nesting, may_be_deep
from traces.limits import Limits

_FLOWS: Final = ("ac2g", "async_cpu_to_gpu", "async_gpu", "async", "fwdbwd")
_OF_2021: Final = ("Kernel", "Memcpy", "Memset", "Operator", "Runtime")
_UNION_GIVEN_UP_AFTER: Final = 4
_READ_GROUPS: Final = tuple(EVENT_OF)
_NO_CATEGORY: Final = 0xFF


@dataclass(slots=True)
class Batch:
    """Events of one stretch.

    kinds       how many there are of each kind
    events      those that are read, by group, in the order of the file
    categories  a `Category` for each of them, a byte each; 255 for those that become no rows
    odd         how many of those read had a value of an unexpected type
    """

    kinds: Counter[Kind] = field(default_factory=Counter)
    events: dict[Group, list[Any]] = field(default_factory=dict)
    categories: dict[Group, bytes] = field(default_factory=dict)
    odd: int = 0


class _Unread(Struct, gc=False):
    """An event that is only counted."""


def _record(category: str, base: type[Struct], phases: Sequence[str]) -> type[Struct]:
    """A record for the events of one category: the fields of its base, and its phase checked where some are named."""
    checked = [("ph", Literal[tuple(phases)])] if phases else []
    return defstruct(
        f"_{category}", checked, bases=(base,), tag=category, tag_field="cat", gc=False, kw_only=bool(phases)
    )


def _union() -> dict[type[Struct], Kind]:
    """The records of the first lane, and what they stand for."""
    read = {name: kind_of("X", name) for name in (*CATEGORIES, *_OF_2021)}
    made = {_record(name, EVENT_OF[kind.group], ("X",)): kind for name, kind in read.items()}
    for name in (*sorted(NO_WORK - {"trace"}), "Trace"):
        made[_record(name, _Unread, ())] = kind_of("X", name)
    for name in _FLOWS:
        made[_record(name, _Unread, ("s", "t", "f"))] = kind_of("s", name)
    made[_record("cpu_instant_event", EVENT_OF[Group.MEMORY], INSTANTS)] = kind_of("i", "cpu_instant_event")
    return made


def _category(kind: Kind) -> int:
    return _NO_CATEGORY if kind.category is None else int(kind.category)


_UNION: Final = _union()
_KINDS: Final = tuple(_UNION.values())
_CODE_OF: Final = {record: code for code, record in enumerate(_UNION)}
_CATEGORY_OF_CODE: Final = bytes(map(_category, _KINDS)).ljust(256, b"\xff")
_IN_GROUP: Final = {group: bytes(kind.group is group for kind in _KINDS).ljust(256, b"\0") for group in _READ_GROUPS}
_NOT_IN_GROUP: Final = {
    group: bytes(code for code in range(256) if not _IN_GROUP[group][code]) for group in _READ_GROUPS
}
"""Which codes of records belong to a group and which do not, as arguments of bytes.translate."""
_decode_union: Final = msgspec.json.Decoder(list[Union[tuple(_UNION)]]).decode  # type: ignore[misc]  # noqa: UP007
_decode_raws: Final = msgspec.json.Decoder(list[Raw]).decode


class Lanes:
    """Decodes the stretches of one file, and remembers which lane suits it."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._union_failed = 0

    def decode(self, text: bytes) -> Batch:
        """The events of a stretch, given as a JSON list.

        Raises `msgspec.DecodeError` where the JSON is broken or the stretch does not consist of whole objects, and
        `TraceTooLarge` for max_depth.
        """
        try:
            if may_be_deep(text, self._limits):
                raws = list(map(bytes, _decode_raws(text)))
                if not all(raw.startswith(b"{") for raw in raws):
                    raise msgspec.DecodeError("an event that is no object")
                for raw in raws:
                    check_nesting(raw, self._limits)
            if self._union_failed < _UNION_GIVEN_UP_AFTER:
                try:
                    batch = _first_lane(text)
                except msgspec.DecodeError:
                    self._union_failed += 1
                else:
                    self._union_failed = 0
                    return batch
            return _second_lane(_decode_raws(text))
        except RecursionError as fault:  # event by event it is told which one, and whether it is an event at all
            raise msgspec.DecodeError("nested too deeply to be parsed") from fault


def _first_lane(text: bytes) -> Batch:
    events = _decode_union(text)
    codes = bytes([_CODE_OF[record] for record in map(type, events)])
    batch = Batch()
    for code in set(codes):
        batch.kinds[_KINDS[code]] += codes.count(code)
    for group in {kind.group for kind in batch.kinds} - {Group.NONE}:
        batch.events[group] = list(compress(events, codes.translate(_IN_GROUP[group])))
        batch.categories[group] = codes.translate(_CATEGORY_OF_CODE, _NOT_IN_GROUP[group])
    return batch


def _second_lane(raws: Sequence[Raw]) -> Batch:
    kinds = [kind_of(head.ph, head.cat) for head in _heads(raws)]
    batch = Batch(Counter(kinds))
    categories = bytes(map(_category, kinds))
    for group in {kind.group for kind in batch.kinds} - {Group.NONE}:
        mask = bytes(kind.group is group for kind in kinds)
        batch.events[group], odd = _decoded(list(compress(raws, mask)), group)
        batch.categories[group] = bytes(compress(categories, mask))
        batch.odd += odd
    return batch


def third_lane(parsed: Sequence[Mapping[str, Any]]) -> Batch:
    """The batch of events that are parsed already."""
    batch = Batch()
    categories: dict[Group, bytearray] = {}
    for fields in parsed:
        head = lenient_head(fields)
        kind = kind_of(head.ph, head.cat)
        batch.kinds[kind] += 1
        if kind.group is not Group.NONE:
            event, odd = lenient_event(fields, kind.group)
            batch.events.setdefault(kind.group, []).append(event)
            categories.setdefault(kind.group, bytearray()).append(_category(kind))
            batch.odd += odd
    batch.categories = {group: bytes(codes) for group, codes in categories.items()}
    return batch


def _heads(raws: Sequence[Raw]) -> list[Head]:
    try:
        return strict_heads(b"[" + b",".join(raws) + b"]")
    except msgspec.DecodeError:
        return [_head(bytes(raw)) for raw in raws]


def _head(text: bytes) -> Head:
    try:
        return strict_head(text)
    except msgspec.DecodeError:
        return lenient_head(_fields(text))


def _decoded(raws: list[Raw], group: Group) -> tuple[list[Event], int]:
    """The events of one group, and how many of them were odd."""
    try:
        return strict_events[group](b"[" + b",".join(raws) + b"]"), 0
    except msgspec.DecodeError:
        pass
    odd = 0
    events: list[Event] = []
    for text in map(bytes, raws):
        try:
            event = strict_event[group](text)
        except msgspec.DecodeError:
            event, is_odd = lenient_event(_fields(text), group)
            odd += is_odd
        events.append(event)
    return events, odd


def _fields(text: bytes) -> Mapping[str, Any]:
    """An event whose syntax was checked, as a mapping; bytes that are no UTF-8 are replaced.

    Raises `msgspec.DecodeError` for what is no object.
    """
    parsed = strict_json.decode(text.decode("utf-8", "replace"))
    if not isinstance(parsed, dict):
        raise msgspec.DecodeError("an event that is no object")
    return parsed
