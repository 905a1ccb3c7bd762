"""From layouts to whole plans, all at once or block by block, and how much of the choices a bound leaves."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from projector.search.menu import Search
from projector.search.rows import Rows, keep, length
from projector.search.serving import NARROWINGS as SERVING_NARROWINGS
from projector.search.serving import serving_layouts, serving_rows
from projector.search.training import NARROWINGS as TRAINING_NARROWINGS
from projector.search.training import training_layouts, training_rows
from projector.specs.plan import Phase
from projector.specs.plan_batch import PlanBatch

# So many plans at once take near the least time a plan: their columns stay in the cache, and what a call costs whatever
# it projects is a sixth of it (1,000 to 64,000 were compared on a dense model and on one with experts).
PLANS_AT_ONCE = 4096
FIRST_LAYOUTS = 16
# whatever those before yielded: plans a layout vary widely, and memory must not
MOST_LAYOUTS = 256


@dataclass(frozen=True)
class Growth:
    """How the plans of a phase grow: its layouts, what is crossed with them, and what is left out when bounded."""

    layouts: Callable[[Search, int], Rows]
    rows: Callable[[Search, Rows, int, int | None], Rows | None]
    narrowings: tuple[str, ...]


GROWTHS: Mapping[Phase, Growth] = {
    "training": Growth(training_layouts, training_rows, TRAINING_NARROWINGS),
    "serving": Growth(serving_layouts, serving_rows, SERVING_NARROWINGS),
}


def bounded_rows(search: Search, growth: Growth, most: int) -> tuple[Rows, int]:
    """Every row at once, and how many narrowings it took to come to at most `most`; all of them where none suffices."""
    for narrowed in range(len(growth.narrowings)):
        rows = growth.rows(search, growth.layouts(search, narrowed), narrowed, most)
        if rows is not None:
            return rows, narrowed
    narrowed = len(growth.narrowings)
    rows = growth.rows(search, growth.layouts(search, narrowed), narrowed, None)
    assert rows is not None, "no bound was given"
    return rows, narrowed


def fewest_narrowings(search: Search, growth: Growth, most: int) -> int | None:
    """How many narrowings leave at most `most` rows; None where not even all of them do. Rows are counted, not kept."""
    return next(
        (
            narrowed
            for narrowed in range(len(growth.narrowings) + 1)
            if not _passes(row_blocks(search, growth, narrowed, PLANS_AT_ONCE), most)
        ),
        None,
    )


def row_blocks(search: Search, growth: Growth, narrowed: int, rows_at_once: int) -> Iterator[Rows]:
    """The rows of a space in their order, about rows_at_once of them a block: whole layouts, at least one."""
    layouts = growth.layouts(search, narrowed)
    start, many = 0, FIRST_LAYOUTS
    while start < length(layouts):
        some = np.zeros(length(layouts), dtype=np.bool_)
        some[start : start + many] = True
        rows = growth.rows(search, keep(layouts, some), narrowed, None)
        assert rows is not None, "no bound was given"
        yield rows
        start += many
        many = min(max(1, many * rows_at_once // max(length(rows), 1)), 2 * many, MOST_LAYOUTS)


def even_blocks(batches: Iterable[PlanBatch], size: int) -> Iterator[PlanBatch]:
    """The same plans in the same order, `size` to a batch, the last one up to half as many again; none is empty."""
    waiting: list[PlanBatch] = []
    for batch in batches:
        waiting.append(batch)
        held = sum(len(one) for one in waiting)
        if held >= 2 * size:
            joined = PlanBatch.concat(waiting)
            whole = held - size - held % size
            for start in range(0, whole, size):
                yield joined.take(np.arange(start, start + size))
            waiting = [joined.take(np.arange(whole, held))]
    if not waiting:
        return
    # a few plans left over cost a call of their own nearly as much as many
    left = PlanBatch.concat(waiting)
    cut = size if 2 * len(left) > 3 * size else 0
    for rows in (np.arange(cut), np.arange(cut, len(left))):
        if rows.size:
            yield left.take(rows)


def _passes(blocks: Iterator[Rows], most: int) -> bool:
    total = 0
    return any((total := total + length(rows)) > most for rows in blocks)
