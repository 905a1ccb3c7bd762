"""A proposal's trail as a table: from what it is compared with to the plan, step by step."""

from collections.abc import Sequence

from rich.table import Table

from agents.proposal_parts import TrailPoint, TrailStep
from app.tables_parts import LEFT, RIGHT, table
from app.wording import change, gb, ms, plain


def trail_table(trail: Sequence[TrailStep]) -> Table:
    """One row a step; the first row is where the trail starts."""
    rows = [_row("start", trail[0].before), *(_row(plain(step.title), step.after) for step in trail)]
    return table(("step by step", "step time [ms]", "memory [GB]", "gain so far"), rows, (LEFT, RIGHT, RIGHT, RIGHT))


def _row(name: str, point: TrailPoint) -> tuple[str, ...]:
    return name, ms(point.step_time_s), gb(point.memory_bytes), change(point.gain_frac)
