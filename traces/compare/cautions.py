"""Why two runs may not be comparable."""

from collections.abc import Iterator, Sequence
from typing import Final

from traces.compare.types import Basis
from traces.implied_types import Inferred
from traces.measure_types import ServingPhase, ServingPhaseName
from traces.stored.redact import REDACTED, is_redacted
from traces.summary_types import TraceSummary

_SAME_JOB: Final = (
    ("chip_name", "the chip"),
    ("world_size", "the world size"),
    ("phase", "the phase"),
    ("framework", "the framework"),
    ("dtype", "the precision"),
)
_WARNINGS_SHOWN: Final = 8
_SAME_MIX_FRAC: Final = 0.05
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
    if is_redacted(before) or is_redacted(after):
        yield "names of kernels are redacted: those that were replaced are not compared"
    yield from _of_phases(before.serving_phases, after.serving_phases)
    if before.files == after.files and before == after:
        yield "both are the same summary"
    for title, summary in (("before", before), ("after", after)):
        told = [warning for warning in summary.warnings if warning != REDACTED]
        yield from (f"{title}: {warning}" for warning in told[:_WARNINGS_SHOWN])
        if len(told) > _WARNINGS_SHOWN:
            yield f"{title}: {len(told) - _WARNINGS_SHOWN} more warnings of reading are in its summary"


def _of_phases(before: Sequence[ServingPhase], after: Sequence[ServingPhase]) -> Iterator[str]:
    """Iterations of different phases, or of the same ones in another mix: the mean of all follows the mix."""
    ours, theirs = _shares(before), _shares(after)
    if ours.keys() != theirs.keys():
        told = f"{', '.join(sorted(ours)) or 'none'} before, {', '.join(sorted(theirs)) or 'none'} after"
        yield f"the serving phases differ: {told}"
    elif ours:
        phase = max(sorted(ours), key=lambda one: abs(theirs[one] - ours[one]))
        if abs(theirs[phase] - ours[phase]) > _SAME_MIX_FRAC:
            told = f"{phase} is {ours[phase]:.0%} of the iterations before, {theirs[phase]:.0%} after"
            yield f"the mix of serving phases differs: {told}; compare phase by phase"


def _shares(phases: Sequence[ServingPhase]) -> dict[ServingPhaseName, float]:
    """Share of the iterations by phase."""
    whole = sum(one.steps for one in phases)
    return {one.phase: one.steps / whole for one in phases}


def _value(inferred: Inferred[str] | Inferred[int] | None) -> str | int | None:
    return None if inferred is None else inferred.value
