"""Sequences of events that cost time, for people; and which could not be looked for, with the reason."""

from collections import defaultdict
from collections.abc import Sequence

from rich.console import Console

from agents.wording import listed
from app.tables_parts import LEFT, RIGHT, bullets, section, table
from app.wording import ns_as_ms, percent, plain, words
from traces.summary_types import PatternUnknown, SequencePattern

_EXAMPLE_CHARACTERS = 36


def show_patterns(out: Console, patterns: Sequence[SequencePattern]) -> None:
    """One line a pattern, the one that could gain most first."""
    if not patterns:
        return
    section(out, "Sequences that cost time (they may overlap)")
    rows = [
        (
            words(one.kind),
            f"{one.occurrences:,}",
            ns_as_ms(one.total_ns),
            ns_as_ms(one.exposed_ns),
            percent(one.exposed_frac),
            "yes" if one.certain else "possibly",
            plain(one.examples[0])[:_EXAMPLE_CHARACTERS] if one.examples else "",
        )
        for one in patterns
    ]
    headers = ("sequence", "count", "time [ms]", "exposed [ms]", "gain at most", "proved", "such as")
    out.print(table(headers, rows, (LEFT, *(RIGHT,) * 4, LEFT, LEFT)))


def show_unknown_patterns(out: Console, unknown: Sequence[PatternUnknown]) -> None:
    """What was not looked for, those of one reason together."""
    reasons: dict[str, list[str]] = defaultdict(list)
    for one in unknown:
        reasons[one.why].append(words(one.kind))
    bullets(out, "Sequences not looked for", [f"{listed(kinds)}: {why}" for why, kinds in reasons.items()])
