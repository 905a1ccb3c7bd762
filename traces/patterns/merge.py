"""Patterns of the ranks of a job, put together."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

from traces.pattern_types import PatternFigure, PatternKind, PatternUnknown, SequencePattern
from traces.patterns.scene import MOST_EXAMPLES, Found, Lacking

NOTICEABLE: Final = 0.005
"""A pattern is told from this share of the windows on: step times of one run differ by more from step to step, so that
removing less shows in no measurement."""


def merged_patterns(
    ranks: Sequence[Sequence[Found | Lacking]], window_ns: int
) -> tuple[tuple[SequencePattern, ...], tuple[PatternUnknown, ...]]:
    """(patterns that could gain a noticeable share of the windows, most first; kinds no rank could be searched for)."""
    parts: defaultdict[PatternKind, list[Found]] = defaultdict(list)
    lacking: defaultdict[PatternKind, list[str]] = defaultdict(list)
    for one in (one for found in ranks for one in found):
        if isinstance(one, Found):
            parts[one.kind].append(one)
        else:
            lacking[one.kind].append(one.why)
    joined = (_joined(kind, same, window_ns) for kind, same in parts.items())
    told = sorted(
        (one for one in joined if one.exposed_ns >= NOTICEABLE * window_ns and one.exposed_ns),
        key=lambda one: (-one.exposed_ns, one.kind),
    )
    unknown = (
        PatternUnknown(kind=kind, why=min(why)) for kind, why in sorted(lacking.items()) if len(why) == len(ranks)
    )
    return tuple(told), tuple(unknown)


def _joined(kind: PatternKind, same: list[Found], window_ns: int) -> SequencePattern:
    exposed_ns = sum(one.exposed_ns for one in same)
    moved = [one.moved_bytes for one in same]
    names: Counter[str] = Counter()
    for one in same:
        names.update(dict(one.examples))
    return SequencePattern(
        kind=kind,
        occurrences=sum(one.occurrences for one in same),
        total_ns=sum(one.total_ns for one in same),
        exposed_ns=exposed_ns,
        exposed_frac=exposed_ns / window_ns if window_ns else 0.0,
        moved_bytes=None if None in moved else sum(size for size in moved if size is not None),
        certain=all(one.certain for one in same),
        basis="; ".join(sorted({one.basis for one in same})),
        examples=tuple(sorted(names, key=lambda name: (-names[name], name))[:MOST_EXAMPLES]),
        figures=_figures(same),
    )


def _figures(same: list[Found]) -> tuple[PatternFigure, ...]:
    events, event_ns = sum(one.events for one in same), sum(one.event_ns for one in same)
    messages, message_bytes = sum(one.messages for one in same), sum(one.message_bytes for one in same)
    steps, stepped = sum(one.steps for one in same), all(one.steps for one in same)
    figures = [PatternFigure(name="events", value=events, unit="count")]
    if events:
        figures.append(PatternFigure(name="mean_event", value=event_ns / events, unit="ns"))
    if messages:
        figures.append(PatternFigure(name="mean_message", value=message_bytes / messages, unit="bytes"))
    if stepped:
        occurrences = sum(one.occurrences for one in same)
        figures.append(PatternFigure(name="per_step", value=occurrences / steps, unit="count"))
    return tuple(figures)
