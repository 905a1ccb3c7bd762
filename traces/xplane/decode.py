"""XSpace protobuf (`*.xplane.pb`) to columns.

The schema in short (https://github.com/openxla/xla, tsl/profiler/protobuf/xplane.proto):
  XSpace  planes 1, errors 2, warnings 3, hostnames 4
  XPlane  id 1, name 2, lines 3, event_metadata 4 (map), stat_metadata 5 (map), stats 6
  XLine   id 1, name 2, timestamp_ns 3, events 4, display_name 11
  XEvent  metadata_id 1, offset_ps 2 | num_occurrences 5, duration_ps 3, stats 4
  XStat   metadata_id 1, and one of double 2, uint64 3, int64 4, text 5, bytes 6, reference 7 (a stat_metadata's name)
  XEventMetadata  name 2, display_name 4, stats 5;  XStatMetadata  name 2
Only the stats that are used further on are kept.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from projector.errors import CorruptTrace, EmptyTrace
from traces.content import Content, Limits
from traces.trace import ABSENT, Ints
from traces.xplane.space import LATEST_PS, LONGEST_PS, Kind, Line, Plane, Space, Span, Texts, join_texts
from traces.xplane.stats import Stats, read_stats
from traces.xplane.wire import DELIMITED, Fields, WireFault, read_fields

KIND_STATS: Final = frozenset(
    {
        "hlo_category",
        "tf_op",
        "program_id",
        "flops",
        "bytes_accessed",
        "memory_access_breakdown",
        "dcn_collective_info",
        "Hlo Proto",
    }
)
"""Stats of event metadata that are kept."""

EVENT_INTS: Final = (
    "correlation_id",
    "device_offset_ps",
    "device_duration_ps",
    "group_id",
    "step_num",
    "program_id",
    "device_ordinal",
    "flops",
    "bytes_accessed",
    "input_size",
    "network_transport_latency_us",
)
EVENT_TEXTS: Final = (
    "hlo_op",
    "hlo_module",
    "tf_op",
    "memcpy_details",
    "memset_details",
    "Memset_details",
    "graph_key",
    "buffer_sizes",
)

_EVENTS_AT_ONCE: Final = 1 << 18
_PS_PER_NS: Final = 1_000
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}".encode()
_MANY_REPLACEMENTS: Final = 8


def decode_space(content: Content, limits: Limits) -> Space:
    """Decode a whole file.

    Raises `CorruptTrace` (with the offset) where the bytes are no XSpace, are cut off, or went through a text
    conversion; `EmptyTrace` where it holds no plane; `TraceTooLarge` above `limits.max_events`.
    """
    if content.truncated:
        raise CorruptTrace(f"{content.file}: the gzip stream ends early", hint="copy the file again")
    try:
        return _space(content, limits)
    except WireFault as fault:
        raise _corrupt(content, fault) from fault


def _corrupt(content: Content, fault: WireFault) -> CorruptTrace:
    if content.data.count(_REPLACEMENT) > _MANY_REPLACEMENTS:
        return CorruptTrace(
            f"{content.file} is an XPlane protobuf whose bytes a conversion to text replaced ({fault})",
            hint="copy the file in binary mode",
        )
    return CorruptTrace(
        f"{content.file} is an XPlane protobuf that is cut off or damaged: {fault} of {len(content.data):,}",
        hint="copy the file again, or profile once more",
    )


def _space(content: Content, limits: Limits) -> Space:
    data = content.data
    fields = _message(data, Span(0, len(data)))
    spans = _spans(fields, 1)
    limits.check("max_devices", len(spans), f"number of planes in {content.file}")
    if not spans:
        raise EmptyTrace(f"{content.file} holds no plane", hint="profile at least one whole step")
    told = [_text(data, span) for number in (2, 3) for span in _spans(fields, number)]
    warnings = [f"the profiler said: {text[:200]!r}" for text in told[:10]]
    seen = 0
    planes = []
    for span in spans:
        plane, events = _plane(data, span, limits, seen, warnings)
        seen += events
        planes.append(plane)
    origin, planes = _on_one_clock(planes, warnings)
    return Space(
        producer="xplane",
        file=content.file,
        planes=tuple(planes),
        origin_ns=origin,
        hostnames=tuple(_text(data, span) for span in _spans(fields, 4)),
        data=data,
        warnings=tuple(warnings),
    )


def _plane(data: bytes | bytearray, span: Span, limits: Limits, seen: int, warnings: list[str]) -> tuple[Plane, int]:
    """One plane, and how many events it has."""
    fields = _message(data, span)
    name = _last_text(data, fields, 2)
    keys, entries = _map(data, fields, 5)
    stat_names = dict(zip(keys, _texts_of(data, entries, 2, len(keys)), strict=True))
    ids, kinds = _kinds(data, fields, stat_names)
    heads = [_message(data, line) for line in _spans(fields, 3)]
    events = sum(int(((head.number == 4) & (head.wire == DELIMITED)).sum()) for head in heads)
    limits.check("max_events", seen + events, "number of events")
    lines = [_line(data, head, ids, len(kinds), stat_names, name, warnings) for head in heads]
    own = fields.of(6, DELIMITED)
    stats = read_stats(data, own.start, own.end).values(np.zeros(len(own.start), np.int64), 1, stat_names, None)[0]
    plane_id = int(fields.last_word(1, 1)[0])
    return Plane(plane_id, name, stats, (*kinds, Kind("(an event without metadata)")), tuple(lines)), events


def _kinds(data: bytes | bytearray, plane: Fields, stat_names: Mapping[int, str]) -> tuple[Ints, list[Kind]]:
    """Event metadata of a plane: their ids, ascending, and the kinds in the same order."""
    keys, inner = _map(data, plane, 4)
    own = inner.of(5, DELIMITED)
    stats = read_stats(data, own.start, own.end).values(own.owner, len(keys), stat_names, KIND_STATS)
    names, shown = _texts_of(data, inner, 2, len(keys)), _texts_of(data, inner, 4, len(keys))
    kinds = {key: Kind(*parts) for key, parts in zip(keys, zip(names, shown, stats, strict=True), strict=True)}
    ids = sorted(kinds)
    return np.array(ids, dtype=np.int64), [kinds[key] for key in ids]


def _line(
    data: bytes | bytearray,
    head: Fields,
    ids: Ints,
    kinds: int,
    stat_names: Mapping[int, str],
    plane: str,
    warnings: list[str],
) -> Line:
    events = head.of(4, DELIMITED)
    pieces = [
        _events(data, events.start[at : at + _EVENTS_AT_ONCE], events.end[at : at + _EVENTS_AT_ONCE], stat_names)
        for at in range(0, len(events.start), _EVENTS_AT_ONCE)
    ]
    name = _last_text(data, head, 2) or _last_text(data, head, 11)
    columns = np.concatenate([piece[0] for piece in pieces]) if pieces else np.empty((0, 4), dtype=np.int64)
    metadata_id, begin, duration, aggregated = columns.T
    place = np.minimum(np.searchsorted(ids, metadata_id), max(len(ids) - 1, 0))
    kind = np.where(ids[place] == metadata_id, place, kinds) if len(ids) else np.full(len(metadata_id), kinds)
    line = Line(
        id=int(head.last_word(1, 1)[0]),
        name=name,
        timestamp_ns=int(head.last_word(3, 1)[0]),
        kind=kind.astype(np.int64),
        begin_ps=np.ascontiguousarray(begin),
        duration_ps=np.ascontiguousarray(duration),
        ints=_joined_ints(pieces),
        texts=_joined_texts(pieces),
    )
    unusable = (begin < -LATEST_PS) | (begin > LATEST_PS) | (duration < 0) | (duration > LONGEST_PS)
    wrong = unusable | (aggregated != 0)
    if not wrong.any():
        return line
    warnings.append(
        f"{int(wrong.sum()):,} events on line {name[:60]!r} of {plane[:60]!r} have no usable time and were dropped"
    )
    return line.where(~wrong)


Piece = tuple[Ints, dict[str, Ints], dict[str, Texts]]


def _events(data: bytes | bytearray, starts: Ints, ends: Ints, stat_names: Mapping[int, str]) -> Piece:
    """Columns (metadata id, begin, duration, whether it is a sum of many) of some events, and their stats by name."""
    fields = read_fields(data, starts, ends)
    count = len(starts)
    columns = np.stack([fields.last_word(number, count) for number in (1, 2, 3, 5)], axis=1)
    own = fields.of(4, DELIMITED)
    stats = read_stats(data, own.start, own.end)
    if not len(stats.name_id):
        return columns, {}, {}
    ints, texts = _event_stats(stats, own.owner, count, stat_names)
    return columns, ints, texts


def _event_stats(
    stats: Stats, owner: Ints, count: int, stat_names: Mapping[int, str]
) -> tuple[dict[str, Ints], dict[str, Texts]]:
    ints, texts = {}, {}
    present = set(np.unique(stats.name_id).tolist())
    for stat_id in sorted(present):
        name = stat_names.get(stat_id, "")
        if name in EVENT_INTS:
            ints[name] = stats.int_column(stat_id, owner, count)
        elif name in EVENT_TEXTS:
            texts[name] = stats.text_column(stat_id, owner, count, stat_names)
    return ints, texts


def _joined_ints(pieces: list[Piece]) -> dict[str, Ints]:
    found = {}
    for name in {name for _, ints, _ in pieces for name in ints}:
        parts = [ints.get(name, np.full(len(columns), ABSENT)) for columns, ints, _ in pieces]
        found[name] = np.concatenate(parts)
    return found


def _joined_texts(pieces: list[Piece]) -> dict[str, Texts]:
    names = {name for _, _, texts in pieces for name in texts}
    return {name: join_texts([(texts.get(name), len(columns)) for columns, _, texts in pieces]) for name in names}


def _on_one_clock(planes: list[Plane], warnings: list[str]) -> tuple[int, list[Plane]]:
    """Begins counted from one origin, the earliest line; lines a day or more off it never had their clock set."""
    stamps = [line.timestamp_ns for plane in planes for line in plane.lines if len(line)]
    if not stamps:
        return 0, planes
    middle = sorted(stamps)[len(stamps) // 2]
    near = [stamp for stamp in stamps if abs(stamp - middle) * _PS_PER_NS <= LONGEST_PS]
    origin = min(near)
    if len(near) < len(stamps):
        warnings.append(f"{len(stamps) - len(near)} lines start more than a day away from the others and were dropped")
    return origin, [
        replace(plane, lines=tuple(_shifted(line, origin) for line in plane.lines if _is_near(line, middle)))
        for plane in planes
    ]


def _is_near(line: Line, middle: int) -> bool:
    return bool(len(line)) and abs(line.timestamp_ns - middle) * _PS_PER_NS <= LONGEST_PS


def _shifted(line: Line, origin: int) -> Line:
    return replace(line, begin_ps=line.begin_ps + (line.timestamp_ns - origin) * _PS_PER_NS)


def _message(data: bytes | bytearray, span: Span) -> Fields:
    return read_fields(data, np.array([span.start], dtype=np.int64), np.array([span.end], dtype=np.int64))


def _spans(fields: Fields, number: int) -> list[Span]:
    mine = fields.of(number, DELIMITED)
    return [Span(start, end) for start, end in zip(mine.start.tolist(), mine.end.tolist(), strict=True)]


def _text(data: bytes | bytearray, span: Span) -> str:
    return data[span.start : span.end].decode("utf-8", "replace")


def _last_text(data: bytes | bytearray, fields: Fields, number: int) -> str:
    spans = _spans(fields, number)
    return _text(data, spans[-1]) if spans else ""


def _texts_of(data: bytes | bytearray, fields: Fields, number: int, messages: int) -> list[str]:
    """Text field `number` of each of a set of messages."""
    found = [""] * messages
    mine = fields.of(number, DELIMITED)
    for owner, start, end in zip(mine.owner.tolist(), mine.start.tolist(), mine.end.tolist(), strict=True):
        found[owner] = _text(data, Span(start, end))
    return found


def _map(data: bytes | bytearray, plane: Fields, number: int) -> tuple[list[int], Fields]:
    """Keys of a map field, and the fields of its values; owner is the index of the entry."""
    entries = plane.of(number, DELIMITED)
    inner = read_fields(data, entries.start, entries.end)
    keys = inner.last_word(1, len(entries.start))
    start, end = entries.end.copy(), entries.end.copy()
    values = inner.of(2, DELIMITED)
    start[values.owner], end[values.owner] = values.start, values.end
    return keys.tolist(), read_fields(data, start, end)
