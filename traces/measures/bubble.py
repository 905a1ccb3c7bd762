"""Pipeline bubble of one rank: time in which it computes nothing because another stage is not done."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from projector.breakdown import Axis
from traces import intervals
from traces.collectives import Communication
from traces.facts import Facts
from traces.implied_types import Inferred
from traces.intervals import EMPTY, Intervals
from traces.launches import GapCauses
from traces.measure_types import PipelineBubble
from traces.shares import Cover, union_of
from traces.summary_types import RankSummary, StepShares

_POINT_TO_POINT: Final = frozenset({"send", "recv", "send_recv"})
_AMONG_ALL: Final = frozenset(
    {"all_reduce", "reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "gather", "scatter", "barrier"}
)
_MOST_UNKNOWN: Final = 0.1

# torch.distributed.pipelining: "Forward 3" of single-stage schedules, "PP:0F3" (stage, forward, micro-batch) of others
_FORWARD: Final = re.compile(r"Forward (\d{1,6})|PP:\d{1,6}F(\d{1,6})")
_PAIR: Final = "1F1B"  # DualPipe: the forward pass of one micro-batch beside the backward pass of another


def pipeline_bubble(
    facts: Facts,
    cover: Cover,
    causes: GapCauses,
    steps: Sequence[StepShares],
    stages: Inferred[int] | None,
    axis_of: Callable[[Communication], Axis],
) -> PipelineBubble | None:
    """Time inside the measured steps in which no compute runs and a stage waits for another, as far as a rank shows it.

    Of each step, between its first and its last event that is compute or a transfer between stages:
      | transfers - compute |              a recv kernel occupies the device while it waits
      + | idle with the next work queued |   cause "dependency" of `launches.gap_causes`; the rest is the host's
    A transfer is a send or recv of a group along pp; of groups the trace does not name where it has pp > 1.

    None where there are no transfers and pp is not known to exceed 1, and where it cannot be told
    (`bubble_unknown_told`).
    """
    transfers, basis = _transfers(facts, stages, axis_of)
    measured = [step for step in steps if step.role == "measured"]
    if basis is None or _why_unknown(causes, measured):
        return None
    ends = causes.gaps[:, 1]
    waiting = intervals.merge(ends - causes.dependency_ns, ends)
    exposed = intervals.subtract(transfers, cover.compute)
    active = intervals.union(cover.compute, transfers)
    exposed_ns = idle_ns = 0
    for step in measured:
        inside = intervals.clip(active, step.start_ns, step.end_ns)
        if not len(inside):
            continue
        first, last = int(inside[0, 0]), int(inside[-1, 1])
        exposed_ns += intervals.length(intervals.clip(exposed, first, last))
        idle_ns += intervals.length(intervals.clip(waiting, first, last))
    depth = _stages(facts, stages, axis_of)
    count = _micro_batches(facts, len(steps))
    return PipelineBubble(
        bubble_ns=exposed_ns + idle_ns,
        idle_ns=idle_ns,
        window_ns=max(sum(step.window_ns for step in measured), 1),
        stages=depth,
        micro_batches=count,
        ideal_frac=ideal_frac(depth, count),
        basis=f"{basis}, over {len(measured)} measured steps",
    )


def ideal_frac(stages: int | None, micro_batches: int | None) -> float | None:
    """Share of a 1F1B step that p stages and m micro-batches leave empty at best: (p - 1) / (m + p - 1)."""
    if stages is None or micro_batches is None:
        return None
    return (stages - 1) / (micro_batches + stages - 1)


def bubble_unknown_told(
    facts: Facts,
    causes: GapCauses,
    steps: Sequence[StepShares],
    stages: Inferred[int] | None,
    axis_of: Callable[[Communication], Axis],
) -> tuple[str, ...]:
    """A warning where the job has pipeline stages and their bubble cannot be told."""
    why = _why_unknown(causes, [step for step in steps if step.role == "measured"])
    if not why or _transfers(facts, stages, axis_of)[1] is None:
        return ()
    return (f"the job has pipeline stages, and {why}: the pipeline bubble is not known",)


def bubble_s_of_step(ranks: Iterable[RankSummary]) -> float | None:
    """Seconds of idle pipeline bubble in a measured step, the mean over steps and ranks; None unless every rank says.

    Waiting inside a recv kernel is exposed communication, not idle time, so it is no part of this.
    """
    idle_ns = steps = 0
    for rank in ranks:
        if rank.bubble is None:
            return None
        idle_ns += rank.bubble.idle_ns
        steps += sum(step.role == "measured" for step in rank.steps)
    return idle_ns / steps / 1e9 if steps else None


def _transfers(
    facts: Facts, stages: Inferred[int] | None, axis_of: Callable[[Communication], Axis]
) -> tuple[Intervals, str | None]:
    """(times of transfers between stages, what says that there are stages); no basis: nothing says so."""
    deep = stages is not None and stages.value > 1
    rows = []
    for one in facts.communications:
        axis = axis_of(one)
        unnamed = deep and axis == "unknown" and not one.group_description and one.collective in _POINT_TO_POINT
        if (axis == "pp" and one.collective not in _AMONG_ALL) or unnamed:
            rows.append(one.row)
    if rows:
        times = union_of(facts.trace, np.array(rows, dtype=np.int64))
        return times, "exposed transfers between stages, and idle time with the next work queued"
    if deep:
        return EMPTY, "idle time with the next work queued; no transfer between stages is in the trace"
    return EMPTY, None


def _why_unknown(causes: GapCauses, measured: Sequence[StepShares]) -> str:
    """Why the bubble of these steps cannot be told; '' where it can."""
    if not measured:
        return "the trace marks no whole step"
    unexplained = intervals.merge(causes.gaps[:, 1] - causes.unknown_ns, causes.gaps[:, 1])
    unknown_ns = sum(intervals.length(intervals.clip(unexplained, step.start_ns, step.end_ns)) for step in measured)
    if unknown_ns > _MOST_UNKNOWN * sum(step.window_ns for step in measured):
        return "the trace does not show what the device waits for"
    return ""


def _stages(facts: Facts, stages: Inferred[int] | None, axis_of: Callable[[Communication], Axis]) -> int | None:
    if stages is not None:
        return stages.value
    sizes = {one.group_size for one in facts.communications if one.group_size and axis_of(one) == "pp"}
    return sizes.pop() if len(sizes) == 1 else None


def _micro_batches(facts: Facts, steps: int) -> int | None:
    """Micro-batches of a step, as schedules mark them; None where none does."""
    numbers = {match[1] or match[2] for name in facts.annotations if (match := _FORWARD.fullmatch(name)) is not None}
    if numbers:
        return len(numbers)
    pairs = facts.annotations.get(_PAIR, 0)
    return pairs // steps if pairs and steps and pairs % steps == 0 else None
