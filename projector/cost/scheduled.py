"""How long a step's pipeline takes: by formula where one is near, by the events of the schedule elsewhere."""

import numpy as np
from numpy.typing import NDArray

from projector.cost.chunk_seconds import ChunkSeconds
from projector.cost.ledger import Ledger
from projector.cost.pipeline import PipelineTime, StageSeconds, longest_path_s, over_busiest
from projector.cost.pipeline_events import Work, dualpipe, interleaved, makespan_s
from projector.cost.pipeline_stages import Index, Layout, Pipeline
from projector.cost.slot import BACK, FORWARD
from projector.graph.columns import Column

Plans = NDArray[np.intp]
# Chunks that differ by more than this leave the formula for interleaving: at 6 % it is up to 2 % too short
# (test_pipeline_simulation.py), and the error grows with the difference.
MOST_CHUNK_SPREAD = 0.06
# Micro-batches, in units of the stages, after which every schedule repeats itself.
SETTLED_INTERLEAVED, SETTLED_DUALPIPE = 4, 2
# Parts of the mean chunk that durations are rounded to where plans share events: 0.3 % of a step at most.
STEPS = 64
# Beyond so many the formulas stand in, less exact as they are: no model of a hundred layers needs more.
MOST_EVENTS = 1 << 17
# Plans timed together: what their events hold at once stays within tens of megabytes.
PLANS_AT_ONCE = 1024


def schedule_time(
    ledger: Ledger, line: Pipeline, seconds: tuple[StageSeconds, ...], micro_batches: Column
) -> PipelineTime:
    """The pipelined part of a step.

    1F1B, ZB-H1 and interleaved schedules of chunks that are nearly alike by `longest_path_s`; DualPipe, and chunks that
    differ, by `pipeline_events` over the first micro-batches and the pace of the busiest device, or the pace reached,
    over the rest. Past MOST_EVENTS, which takes hundreds of devices in a row, by the formulas all the same.
    """
    longest_s = longest_path_s(seconds, line.runs, line.pp, line.virtual_stages, micro_batches)
    passages_s = (
        (ledger.pass_s(*FORWARD), ledger.pass_s(*BACK)) if any(one.chunks_differ for one in line.layouts) else ()
    )
    for number, layout in enumerate(line.layouts):
        pp, vp = layout.split.pp, layout.split.vp
        if layout.two_way:
            plans = np.flatnonzero(line.layout_of == number)
            for part in _blocks(plans):
                longest_s[part] = _two_way_s(layout, seconds, part, micro_batches[part])
        elif layout.chunks_differ and 2 * SETTLED_INTERLEAVED * vp * pp**2 <= MOST_EVENTS:
            plans = np.flatnonzero((line.layout_of == number) & (micro_batches % line.pp == 0))
            chunks = ChunkSeconds.of(layout, passages_s, seconds, plans)
            apart = chunks.spread() > MOST_CHUNK_SPREAD
            longest_s[plans[apart]] = _interleaved_s(layout, chunks.only(apart), micro_batches[plans[apart]])
    totals_s = np.stack([kind.total_s for kind in seconds])
    device_s = [(_of(totals_s, first) + _of(totals_s, second)) / 2 for first, second in line.device_kinds]
    return over_busiest(device_s, longest_s, micro_batches)


def _of(by_kind: NDArray[np.float64], kind: Index) -> Column:
    found: Column = np.take_along_axis(by_kind, kind[np.newaxis], axis=0)[0]
    return found


def _by_count(counts: NDArray[np.int64]) -> list[tuple[int, Plans]]:
    """(micro-batches, columns that have so many), a block at a time."""
    return [(int(count), here) for count in np.unique(counts) for here in _blocks(np.flatnonzero(counts == count))]


def _blocks(plans: Plans) -> list[Plans]:
    return [plans[start : start + PLANS_AT_ONCE] for start in range(0, len(plans), PLANS_AT_ONCE)]


def _hop_s(layout: Layout, seconds: tuple[StageSeconds, ...], plans: Plans) -> Column:
    """Of a hop either way, as the first stage has it: messages are alike on all."""
    first = seconds[layout.kind_at[0]]
    hop_s: Column = (first.hop_ahead_s[plans] + first.hop_back_s[plans]) / 2
    return hop_s


def _two_way_s(layout: Layout, seconds: tuple[StageSeconds, ...], plans: Plans, micro_batches: Column) -> Column:
    """DualPipe: its first 2 p micro-batches, and every further one as long as on the busiest device.

    A forward and a backward pass that run together take as long as both: what they hide stands in the passes. Past
    MOST_EVENTS the bubble of the mean stage, (p / 2 - 1) (F&B + B - 3 W) (DeepSeek-V3, table 2), and the hops there
    and back.
    """

    def duration_s(work: Work, stage: int) -> Column:
        kind = seconds[layout.kind_at[stage]]
        parts = {
            "ahead": kind.ahead_s,
            "back": kind.back_s + kind.weight_s,
            "input": kind.back_s,
            "weight": kind.weight_s,
        }
        part_s: Column = parts[work][plans]
        return part_s

    pp, settled = layout.split.pp, SETTLED_DUALPIPE * layout.split.pp
    pace_s = np.max([seconds[a].total_s[plans] + seconds[b].total_s[plans] for a, b in layout.devices], axis=0) / 2
    if 2 * SETTLED_DUALPIPE * pp**2 > MOST_EVENTS:
        kinds, counts = np.unique(layout.kind_at, return_counts=True)
        mean = [(count / pp, seconds[kind]) for kind, count in zip(kinds, counts, strict=True)]
        each_s = [share * (one.total_s + one.back_s - 2 * one.weight_s)[plans] for share, one in mean]
        bubble_s = (pp / 2 - 1) * np.sum(each_s, axis=0) + 2 * (pp - 1) * _hop_s(layout, seconds, plans)
        bubbled_s: Column = micro_batches * pace_s + bubble_s
        return bubbled_s
    first_s = makespan_s(dualpipe(pp, settled), duration_s, _hop_s(layout, seconds, plans))
    total_s: Column = first_s + (micro_batches - settled) * pace_s
    return total_s


def _interleaved_s(layout: Layout, chunks: ChunkSeconds, micro_batches: Column) -> Column:
    """Interleaved 1F1B: its first rounds, and the others at the pace the last of these had.

    Chunks are timed in STEPS-ths of the mean one, so that plans whose chunks stand in the same proportions share their
    events; the whole is then scaled by what rounding did to the busiest device.
    """
    if not len(micro_batches):
        return micro_batches
    pp, vp, settled = layout.split.pp, layout.split.vp, SETTLED_INTERLEAVED * layout.split.pp
    unit_s, exact_s = chunks.mean_s(), np.stack([*chunks.ahead_s, *chunks.back_s, chunks.hop_s])
    rounded = np.round(STEPS * exact_s / unit_s).astype(np.int64)
    counts = np.minimum(micro_batches, settled).astype(np.int64)
    distinct, of_plan = np.unique(np.vstack([rounded, counts]), axis=1, return_inverse=True)
    alike = ChunkSeconds.from_columns(distinct[:-1] / STEPS, chunks.kind_of, chunks.devices)
    found, pace = np.zeros(distinct.shape[1]), np.zeros(distinct.shape[1])
    for count, here in _by_count(distinct[-1]):
        each = alike.only(here)
        found[here] = makespan_s(interleaved(pp, vp, count), each.duration_s, each.hop_s)
        if count == settled:
            before = makespan_s(interleaved(pp, vp, settled - pp), each.duration_s, each.hop_s)
            pace[here] = (found[here] - before) / pp
    of_plan = of_plan.reshape(-1)
    steps = found[of_plan] + np.maximum(micro_batches - settled, 0.0) * pace[of_plan]
    total_s: Column = steps * chunks.busiest_s() / alike.busiest_s()[of_plan]
    return total_s
