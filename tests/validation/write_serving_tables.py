"""The tables of docs/serving.md from what the projector knows: `python -m tests.validation.write_serving_tables`.

Levers with a change of each and its signs (tests/unit/projector_core/lever_rows.py), and objectives with formula, unit
and direction. A test fails where the page lags.
"""

from pathlib import Path

from projector.admissible import lever_fields
from projector.levers import LEVERS
from projector.rules.inert import INERT
from projector.specs.objective import OBJECTIVES, Objective
from tests.unit.projector_core.lever_rows import ROWS, Row

PAGE = Path(__file__).parents[2] / "docs/serving.md"


def levers_table() -> str:
    """One line a plan field that a lever of serving moves."""
    lines = [
        "| field | lever | change | on | TTFT | TPOT | memory | held | because | inert where |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    rows = {row.field: row for row in ROWS}
    lines += [_lever_line(field, rows[field]) for field in lever_fields("serving")]
    return "\n".join(lines)


def objectives_table() -> str:
    """One line an objective of serving."""
    lines = ["| objective | unit | better | meaning | formula | also called |", "|---|---|---|---|---|---|"]
    lines += [_objective_line(one) for one in OBJECTIVES if "serving" in one.phases]
    return "\n".join(lines)


def page(text: str) -> str:
    """The page with both tables between their marks."""
    for name, table in (("levers", levers_table()), ("objectives", objectives_table())):
        start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, started, rest = text.partition(start)
        _, ended, after = rest.partition(end)
        assert started, f"the page lacks {start}"
        assert ended, f"the page lacks {end}"
        text = f"{before}{start}\n{table}\n{end}{after}"
    return text


def _lever_line(field: str, row: Row) -> str:
    lever = next(one.name for one in LEVERS if field in one.fields and "serving" in one.phases)
    old = {name: row.plan.get(name, "default") for name in row.change}
    change = ", ".join(f"{name} {old[name]} to {new}" for name, new in row.change.items())
    on = f"{row.model}, {row.chip}, {row.load.input_len}/{row.load.output_len}, {row.load.concurrency} in flight"
    inert = "; ".join(dict.fromkeys(one.because for one in INERT if field in one.fields and "serving" in one.phases))
    cells = (f"`{field}`", lever, change, on, row.ttft, row.tpot, row.memory, row.held, row.why, inert)
    return f"| {' | '.join(cells)} |"


def _objective_line(one: Objective) -> str:
    better = "more" if one.direction == "maximise" else "less"
    cells = (f"`{one.name}`", one.unit, better, one.meaning, one.formula, ", ".join(one.aliases))
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
