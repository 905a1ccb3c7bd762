"""Why two runs may not be comparable."""

from collections.abc import Iterator
from typing import Final

from traces.compare.types import Basis
from traces.implied_types import Inferred
from traces.summary_types import TraceSummary

_SAME_JOB: Final = (
    ("chip_name", "the chip"),
    ("world_size", "the world size"),
    ("phase", "the phase"),
    ("framework", "the framework"),
    ("dtype", "the precision"),
)
_SHAPES: Final = ("hidden_size", "layers", "experts", "tokens", "sequence_length", "micro_batch")


def cautions(before: TraceSummary, after: TraceSummary, basis: Basis) -> tuple[str, ...]:
    """One sentence a reason; () where nothing speaks against the comparison."""
    return tuple(_cautions(before, after, basis))


def _cautions(before: TraceSummary, after: TraceSummary, basis: Basis) -> Iterator[str]:
    if basis == "window":
        yield "not both runs mark steps: whole windows are compared, which need not hold the same work"
    for title, summary in (("before", before), ("after", after)):
        for rank in summary.ranks:
            statistics = rank.step_statistics
            if statistics is not None and not statistics.conclusive:
                yield f"{title}: {statistics.why}"
                break
    if before.window.device != after.window.device:
        yield "one run has device events and the other only host operators"
    if len(before.ranks) != len(after.ranks):
        yield f"{len(before.ranks)} ranks were recorded before, {len(after.ranks)} after: means over ranks are compared"
    for field, title in _SAME_JOB:
        ours, theirs = _value(getattr(before.implied, field)), _value(getattr(after.implied, field))
        if ours is not None and theirs is not None and ours != theirs:
            yield f"{title} differs: {ours} before, {theirs} after"
    for field in _SHAPES:
        ours, theirs = getattr(before.implied.shapes, field), getattr(after.implied.shapes, field)
        if ours is not None and theirs is not None and ours != theirs:
            yield f"{field.replace('_', ' ')} on a rank differs: {ours} before, {theirs} after"
    phases = {one.phase for one in before.serving_phases}, {one.phase for one in after.serving_phases}
    if phases[0] != phases[1]:
        yield (
            f"the serving phases differ: {', '.join(sorted(phases[0])) or 'none'} before, "
            f"{', '.join(sorted(phases[1])) or 'none'} after"
        )
    if before.files == after.files and before == after:
        yield "both are the same summary"


def _value(inferred: Inferred[str] | Inferred[int] | None) -> str | int | None:
    return None if inferred is None else inferred.value
