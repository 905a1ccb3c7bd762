"""Remedies for people: levers besides the layout, before the proposals where no layout relieves the cause."""

from collections.abc import Sequence

from rich.console import Console

from agents.remedies.remedy import Remedy
from app.tables_parts import bullets, heading, paragraph, section
from app.wording import gain_text, plain

OF_LAYOUT = " (a lever of the layout: proposals work it out)"
FIRST = "First: no layout relieves this cause"
OTHER = "Other levers"


def show_remedies(out: Console, remedies: Sequence[Remedy], *, first: bool) -> None:
    """Those that come before the proposals, or the others."""
    shown = [remedy for remedy in remedies if remedy.first == first]
    if not shown:
        return
    section(out, FIRST if first else OTHER)
    for number, remedy in enumerate(shown, start=1):
        heading(out, f"{number}. {plain(remedy.title)}{OF_LAYOUT if remedy.layout else ''}")
        paragraph(out, plain(remedy.why))
        paragraph(out, plain(remedy.condition))
        paragraph(out, f"gain: {gain_text(remedy)}; effort: {remedy.effort}; costs: {plain(remedy.costs)}")
        rests = [*remedy.evidence, *remedy.citations]
        if rests:
            paragraph(out, f"rests on {', '.join(plain(name) for name in rests)}")


def show_asks(out: Console, asks: Sequence[str]) -> None:
    """What the request lacks."""
    bullets(out, "What would decide, and was not stated", [plain(ask) for ask in asks])
