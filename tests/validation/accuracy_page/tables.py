"""Markdown tables and the figures in their cells."""

from collections.abc import Iterable, Iterator, Sequence

from agents.evaluation.reports import ErrorFigures, Rate

NONE = "–"
MARK_UP = frozenset("\\`*_[]<>|~#")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Lines of a table: words to the left, figures to the right."""
    given = [tuple(row) for row in rows]
    yield f"| {' | '.join(heads)} |"
    figures = [bool(given) and all(_is_figure(row[place]) for row in given) for place in range(len(heads))]
    yield f"|{'|'.join('--:' if is_figure else '---' for is_figure in figures)}|"
    yield from (f"| {' | '.join(row)} |" for row in given)


def errors(found: ErrorFigures) -> tuple[str, ...]:
    """n, MAPE, median, bias, share in the interval, its width."""
    return (
        str(found.n),
        percent(found.mape),
        percent(found.median_error),
        percent(found.bias, signed=True),
        percent(found.coverage_80),
        percent(found.width_80),
    )


def rate(found: Rate) -> str:
    """A rate with its interval."""
    if found.rate is None or found.low is None or found.high is None:
        return NONE
    return f"{percent(found.rate)} ({100 * found.low:.0f} to {100 * found.high:.0f})"


def percent(fraction: float | None, *, signed: bool = False) -> str:
    """A fraction in per cent."""
    return NONE if fraction is None else f"{100 * fraction:{'+' if signed else ''}.1f} %"


def escaped(words: str) -> str:
    """Words of a file as the text of a cell: no mark-up of theirs counts."""
    return " ".join("".join(f"\\{one}" if one in MARK_UP else one for one in words).split())


def _is_figure(words: str) -> bool:
    return words == NONE or words[:1].isdigit() or words[:1] in ("+", "-")
