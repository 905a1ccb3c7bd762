"""What a diagnosis is made of, for people: sorts of operators, collectives, bounds of what relief gains, memory."""

from collections.abc import Sequence

from rich.console import Console

from agents.diagnosis_parts import Capacity, Category, CollectiveShare, Headroom
from app import wording
from app.tables_parts import LEFT, RIGHT, paragraph, section, table
from app.wording import percent, plain, words

MOST_CATEGORIES = 12


def show_hypothesis(out: Console, basis: str, overturned_by: str) -> None:
    """What the headline suggests, and what overturns it."""
    if basis:
        paragraph(out, f"Hypothesis: {basis}")
    if overturned_by:
        paragraph(out, f"Overturned by: {overturned_by}")


def show_categories(out: Console, categories: Sequence[Category], cover_frac: float | None) -> None:
    """The window by sort of operator."""
    if not categories:
        return
    section(out, f"By sort of operator ({percent(cover_frac)} of the window is identified)")
    rows = [
        (plain(one.name), percent(one.share_frac), _count(one.count), words(one.limiter), plain(one.basis))
        for one in categories[:MOST_CATEGORIES]
    ]
    out.print(table(("sort", "share", "count", "limiter", "says so"), rows, (LEFT, RIGHT, RIGHT, LEFT, LEFT)))
    if len(categories) > MOST_CATEGORIES:
        paragraph(out, f"{len(categories) - MOST_CATEGORIES} more are in the document (--json)")


def show_collective_shares(out: Console, collectives: Sequence[CollectiveShare]) -> None:
    """Every kind of collective, what is exposed of it and what it is held up by."""
    if not collectives:
        return
    section(out, "What holds collectives up")
    rows = [
        (
            plain(one.collective),
            one.axis,
            percent(one.exposed_frac),
            percent(one.hidden_frac),
            one.limiter,
            plain(one.basis),
        )
        for one in collectives
    ]
    headers = ("collective", "axis", "exposed", "hidden", "limiter", "says so")
    out.print(table(headers, rows, (LEFT, LEFT, RIGHT, RIGHT, LEFT, LEFT)))


def show_headroom(out: Console, headroom: Sequence[Headroom], capacity: Capacity | None) -> None:
    """The most that relief gains, and how full memory is."""
    if headroom:
        section(out, "The most that relieving one thing wholly could gain")
        rows = [
            (f"{one.scope} {words(one.name)}", percent(one.gain_frac), one.inequality, plain(one.basis))
            for one in headroom
        ]
        out.print(table(("what", "of the step", "bound", "basis"), rows, (LEFT, RIGHT, LEFT, LEFT)))
    if capacity is not None and capacity.state != "unknown":
        used = "" if capacity.used_frac is None else f", {percent(capacity.used_frac)} in use"
        paragraph(out, f"Device memory: {words(capacity.state)}{used} ({capacity.source}: {capacity.basis})")


def _count(count: int | None) -> str:
    return wording.UNKNOWN if count is None else f"{count:,}"
