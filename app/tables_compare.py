"""`shardwise compare` for people."""

from rich.console import Console

from app import wording
from app.tables_parts import LEFT, RIGHT, bullets, console, heading, paragraph, section, table
from app.wording import change, ns_as_ms, plain, words
from traces.compare.types import Comparison, Side

_NAME_CHARACTERS = 70


def show_comparison(comparison: Comparison) -> None:
    """The verdict, then what moved where, the largest movement first."""
    out = console()
    heading(out, _headline(comparison))
    if comparison.prediction is not None:
        paragraph(out, f"Prediction: {words(comparison.prediction.verdict)}: {comparison.prediction.why}")
    bullets(out, "Read with care", comparison.cautions)
    _show_terms(out, comparison)
    section(out, "Kernels by kind, and communication")
    rows = [(words(c.kind), *_times(c.before_ns, c.after_ns)) for c in comparison.kinds]
    out.print(table(("kind", "before [ms]", "after [ms]", "change [ms]"), rows, (LEFT, RIGHT, RIGHT, RIGHT)))
    if comparison.communication:
        section(out, "Communication by axis [ms]")
        axis_rows = [
            (c.axis, *_times(c.before_ns, c.after_ns), *_times(c.before_exposed_ns, c.after_exposed_ns))
            for c in comparison.communication
        ]
        headers = ("axis", "before", "after", "change", "exposed before", "exposed after", "change")
        out.print(table(headers, axis_rows, (LEFT, *(RIGHT,) * 6)))
    if comparison.phases:
        section(out, "Serving steps, median")
        phase_rows = [(words(p.phase), _ms(p.before_median_ns), _ms(p.after_median_ns)) for p in comparison.phases]
        out.print(table(("phase", "before [ms]", "after [ms]"), phase_rows, (LEFT, RIGHT, RIGHT)))
    section(out, "Kernels that moved most (of the costliest on each side)")
    kernel_rows = [(_short(k.name), _ms(k.before_ns), _ms(k.after_ns)) for k in comparison.kernels[:10]]
    out.print(table(("name", "before [ms]", "after [ms]"), kernel_rows, (LEFT, RIGHT, RIGHT)))


def _headline(comparison: Comparison) -> str:
    spread = {True: "beyond the spread of the steps", False: "within the spread of the steps", None: "spread unknown"}
    unit = "A step" if comparison.basis == "step" else "The window"
    return (
        f"{unit} takes {ns_as_ms(round(comparison.after.time_ns))} ms instead of "
        f"{ns_as_ms(round(comparison.before.time_ns))} ms ({change(comparison.change_frac)}, "
        f"{spread[comparison.significant]})"
    )


def _show_terms(out: Console, comparison: Comparison) -> None:
    section(out, f"Where the {comparison.basis} of the mean device went")
    rows = [
        (words(term.term), *_times(term.before_ns, term.after_ns), change(term.change_of_time_frac))
        for term in comparison.terms
    ]
    rows.append(
        (
            f"= {comparison.basis}",
            *_times(comparison.before.time_ns, comparison.after.time_ns),
            change(comparison.change_frac),
        )
    )
    headers = ("part", "before [ms]", "after [ms]", "change [ms]", "of the time before")
    out.print(table(headers, rows, (LEFT, RIGHT, RIGHT, RIGHT, RIGHT)))
    for title, side in (("before", comparison.before), ("after", comparison.after)):
        paragraph(out, f"{title}: {_side(side)}")


def _side(side: Side) -> str:
    error = "" if side.error_ns is None else f", standard error {ns_as_ms(round(side.error_ns))} ms"
    names = ", ".join(side.files[:3]) + (f" and {len(side.files) - 3} more" if len(side.files) > 3 else "")
    return f"{names}; {side.ranks} ranks, {side.steps} measured steps{error}"


def _times(before_ns: float, after_ns: float) -> tuple[str, str, str]:
    moved = after_ns - before_ns
    return _ms(before_ns), _ms(after_ns), ("+" if moved > 0 else "") + _ms(moved)


def _ms(nanoseconds: float | None) -> str:
    return wording.UNKNOWN if nanoseconds is None else ns_as_ms(round(nanoseconds))


def _short(name: str) -> str:
    text = plain(name)
    return text if len(text) <= _NAME_CHARACTERS else text[: _NAME_CHARACTERS - 3] + "..."
