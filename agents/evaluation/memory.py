"""Memory of rows that print it, and runs called out of memory."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from agents.evaluation.reports import MemoryFigures
from agents.evaluation.scored import Scored

ALL = "all"


def memory_figures(scored: Sequence[Scored]) -> tuple[MemoryFigures, ...]:
    """All rows together, then by source."""
    by_source: dict[str, list[Scored]] = defaultdict(list)
    for one in scored:
        by_source[one.case.row.source].append(one)
    return tuple(_figures(name, rows) for name, rows in ((ALL, list(scored)), *sorted(by_source.items())))


def _figures(value: str, rows: Sequence[Scored]) -> MemoryFigures:
    pairs = [
        (one.counted_bytes, one.case.row.measured.memory_bytes)
        for one in rows
        if one.counted_bytes is not None and one.case.row.measured.memory_bytes is not None
    ]
    ran = [one for one in rows if one.ran]
    failed = [one for one in rows if not one.ran]
    counts = {
        "ran": len(ran),
        "ran_called_too_large": sum(one.too_large for one in ran),
        "out_of_memory": len(failed),
        "out_of_memory_flagged": sum(one.too_large for one in failed),
    }
    if not pairs:
        return MemoryFigures(value=value, n=0, **counts)
    projected, measured = np.array(pairs, dtype=np.float64).T
    error = projected / measured - 1.0
    return MemoryFigures(
        value=value,
        n=len(pairs),
        mape=float(np.abs(error).mean()),
        median_error=float(np.median(np.abs(error))),
        bias=float(error.mean()),
        **counts,
    )
