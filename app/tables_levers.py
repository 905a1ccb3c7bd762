"""The table of `shardwise levers`."""

from app.schemas_levers import LeversAnswer
from app.tables_parts import LEFT, bullets, console, heading, table
from app.wording import plain


def show_levers_of(answer: LeversAnswer) -> None:
    """Fields that may be moved with their values, then those that cannot matter with the reason."""
    out = console()
    heading(out, f"{plain(answer.model)} on {answer.chips} x {answer.chip}, {answer.phase}")
    offered = [one for one in answer.fields if not one.inert_because]
    rows = [(one.field, one.lever, _values(one.values, one.default), "yes" if one.numerics else "") for one in offered]
    headers = ("field", "lever", "values (* default)", "changes results")
    out.print(table(headers, rows, (LEFT,) * len(headers)))
    bullets(out, "Inert here", [f"{one.field}: {one.inert_because}" for one in answer.fields if one.inert_because])
    if answer.inert_in_plan is not None:
        known = {one.field for one in answer.fields if one.inert_because}
        also = [f"{one.field}: {one.because}" for one in answer.inert_in_plan if one.field not in known]
        bullets(out, "Inert beside the other fields of this plan", also)


def _values(values: tuple[object, ...], default: object) -> str:
    return ", ".join(f"{_shown(value)}*" if value == default else _shown(value) for value in values)


def _shown(value: object) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)
