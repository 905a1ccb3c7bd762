"""The measures of one rank together, as its summary holds them."""

from collections.abc import Callable
from dataclasses import dataclass

from projector.breakdown import Axis
from traces.collectives import Communication
from traces.facts import Facts
from traces.implied_types import Inferred
from traces.launches import gap_causes, launch_bound_frac, thinned_told
from traces.measure_types import CopyTime, IdleSplit, PipelineBubble, ServingPhase, StepStatistics
from traces.measures.bubble import bubble_unknown_told, pipeline_bubble
from traces.measures.copies import copies, pageable_copies_told
from traces.measures.idle import idle_split, idle_times, one_long_gap, step_idle_split
from traces.measures.serving import serving_phases
from traces.measures.step_statistics import step_roles, step_statistics, steps_left_out
from traces.shares import Cover, time_shares
from traces.steps import find_steps
from traces.summary_types import StepShares


@dataclass(frozen=True, slots=True)
class RankMeasures:
    """Fields of `RankSummary` and `RankParts` of the same names; warnings to tell with them."""

    launch_bound_frac: float | None
    idle: IdleSplit | None
    step_idle: IdleSplit | None
    steps: tuple[StepShares, ...]
    step_statistics: StepStatistics | None
    copies: tuple[CopyTime, ...]
    bubble: PipelineBubble | None
    serving_phases: tuple[ServingPhase, ...]
    warnings: tuple[str, ...]


def measure_rank(
    facts: Facts, cover: Cover, stages: Inferred[int] | None, axis_of: Callable[[Communication], Axis]
) -> RankMeasures:
    """All measures of one trace. stages: pipeline stages the trace implies; axis_of: of its communications.

    Without device events there is no idle split, no copy and no bubble.
    """
    trace, classified, links = facts.trace, facts.classified, facts.classified.links
    found = find_steps(trace, links)
    steps = tuple(
        StepShares(
            name=step.name,
            start_ns=step.start_ns,
            end_ns=step.end_ns,
            role=role,
            **time_shares(cover.clipped(step.start_ns, step.end_ns)).model_dump(),
        )
        for step, role in zip(found.windows, step_roles(found.marks, found.windows), strict=True)
    )
    causes = gap_causes(trace, links, cover.idle) if len(links.rows) else None
    times = idle_times(trace, links, causes) if causes else None
    warnings = steps_left_out(steps)
    if causes is not None:
        warnings += thinned_told(trace, links)
        warnings += one_long_gap(causes, cover.end_ns - cover.start_ns)
        warnings += pageable_copies_told(trace, classified, cover)
        warnings += bubble_unknown_told(facts, causes, steps, stages, axis_of)
    return RankMeasures(
        launch_bound_frac=launch_bound_frac(causes) if causes else None,
        idle=idle_split(times) if times else None,
        step_idle=step_idle_split(times, steps) if times else None,
        steps=steps,
        step_statistics=step_statistics(found.marks, steps),
        copies=copies(trace, classified, cover),
        bubble=pipeline_bubble(facts, cover, causes, steps, stages, axis_of) if causes else None,
        serving_phases=serving_phases(trace, links),
        warnings=warnings,
    )
