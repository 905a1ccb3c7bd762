"""How long a step's pipeline takes: by formula where one is near, by the events of the schedule elsewhere."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from projector.cost.layer_split import Counts
from projector.cost.ledger import Ledger
from projector.cost.pipeline import PipelineTime, StageSeconds, longest_path_s, over_busiest
from projector.cost.pipeline_events import Work, dualpipe, interleaved, makespan_s
from projector.cost.pipeline_stages import Index, Layout, Pipeline
from projector.cost.slot import BACK, FORWARD
from projector.graph.columns import Column

Plans = NDArray[np.intp]
Durations = Callable[[Work, int], Column]
# Chunks that differ by more than this leave the formula for interleaving: at 6 % it is up to 2 % too short
# (test_pipeline_simulation.py), and the error grows with the difference.
MOST_CHUNK_SPREAD = 0.06
# Micro-batches, in units of the stages, after which every schedule repeats itself.
SETTLED_INTERLEAVED, SETTLED_DUALPIPE = 4, 2
# Plans timed together: what their events hold at once stays within tens of megabytes.
PLANS_AT_ONCE = 1024


def schedule_time(
    ledger: Ledger, line: Pipeline, seconds: tuple[StageSeconds, ...], micro_batches: Column
) -> PipelineTime:
    """The pipelined part of a step.

    1F1B, ZB-H1 and interleaved schedules of chunks that are nearly alike by `longest_path_s`; DualPipe, and chunks that
    differ, by `pipeline_events` over the first micro-batches and the pace of the busiest device, or the pace reached,
    over the rest.
    """
    longest_s = longest_path_s(seconds, line.runs, line.pp, line.virtual_stages, micro_batches)
    for number, layout in enumerate(line.layouts):
        if layout.two_way:
            plans = np.flatnonzero(line.layout_of == number)
            for part in _blocks(plans):
                longest_s[part] = _two_way_s(layout, seconds, part, micro_batches[part])
        elif layout.chunks_differ:
            plans = np.flatnonzero((line.layout_of == number) & (micro_batches % line.pp == 0))
            chunks = _Chunks.of(layout, ledger)
            for part in _blocks(plans[chunks.spread(plans) > MOST_CHUNK_SPREAD]):
                longest_s[part] = _interleaved_s(
                    layout, chunks.durations(seconds, part), seconds, part, micro_batches[part]
                )
    totals_s = np.stack([kind.total_s for kind in seconds])
    device_s = [(_of(totals_s, first) + _of(totals_s, second)) / 2 for first, second in line.device_kinds]
    return over_busiest(device_s, longest_s, micro_batches)


def _of(by_kind: NDArray[np.float64], kind: Index) -> Column:
    found: Column = np.take_along_axis(by_kind, kind[np.newaxis], axis=0)[0]
    return found


def _blocks(plans: Plans) -> list[Plans]:
    return [plans[start : start + PLANS_AT_ONCE] for start in range(0, len(plans), PLANS_AT_ONCE)]


def _hop_s(layout: Layout, seconds: tuple[StageSeconds, ...], plans: Plans) -> Column:
    """Of a hop either way, as the first stage has it: messages are alike on all."""
    first = seconds[layout.kind_at[0]]
    hop_s: Column = (first.hop_ahead_s[plans] + first.hop_back_s[plans]) / 2
    return hop_s


def _two_way_s(layout: Layout, seconds: tuple[StageSeconds, ...], plans: Plans, micro_batches: Column) -> Column:
    """DualPipe: its first 2 p micro-batches, and every further one as long as on the busiest device.

    A forward and a backward pass that run together take as long as both: what they hide stands in the passes.
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

    settled = SETTLED_DUALPIPE * layout.split.pp
    pace_s = np.max([seconds[a].total_s[plans] + seconds[b].total_s[plans] for a, b in layout.devices], axis=0) / 2
    first_s = makespan_s(dualpipe(layout.split.pp, settled), duration_s, _hop_s(layout, seconds, plans))
    total_s: Column = first_s + (micro_batches - settled) * pace_s
    return total_s


def _interleaved_s(
    layout: Layout, duration_s: Durations, seconds: tuple[StageSeconds, ...], plans: Plans, micro_batches: Column
) -> Column:
    """Interleaved 1F1B: its first rounds, and the others at the pace the last of these had."""
    pp, vp = layout.split.pp, layout.split.vp
    settled, hop_s, found = SETTLED_INTERLEAVED * pp, _hop_s(layout, seconds, plans), np.zeros_like(micro_batches)
    for count in np.unique(np.minimum(micro_batches, settled)).astype(int):
        of_count = np.minimum(micro_batches, settled) == count
        found[of_count] = makespan_s(interleaved(pp, vp, count), duration_s, hop_s)[of_count]
    longer = micro_batches > settled
    if longer.any():
        pace_s = (found - makespan_s(interleaved(pp, vp, settled - pp), duration_s, hop_s)) / pp
        found = np.where(longer, found + (micro_batches - settled) * pace_s, found)
    return found


@dataclass(frozen=True)
class _Chunks:
    """Seconds that chunks hold, compute and communication alike, forward and back; hidden or not.

    Shares of a device's passes are read off these. held: [vp * pp, places]
    """

    layout: Layout
    held: Counts
    ahead_s: list[Column | None]
    back_s: list[Column | None]

    @classmethod
    def of(cls, layout: Layout, ledger: Ledger) -> "_Chunks":
        """Of one layout, for every plan."""
        ahead_s, back_s = ledger.pass_s(*FORWARD), ledger.pass_s(*BACK)
        held = layout.chunks.reshape(-1, layout.chunks.shape[-1])
        return cls(
            layout, held, [ahead_s.get(place) for place in layout.places], [back_s.get(p) for p in layout.places]
        )

    def _seconds(self, chunk: int, passage_s: list[Column | None], plans: Plans) -> Column:
        pairs = zip(self.held[chunk], passage_s, strict=True)
        return sum((times * one[plans] for times, one in pairs if one is not None), start=np.zeros(len(plans)))

    def spread(self, plans: Plans) -> Column:
        """How much longer the longest chunk is than the shortest, the two ends of the model left out."""
        inner = np.unique(self.held[1:-1], axis=0, return_index=True)[1] + 1
        each = [self._seconds(chunk, self.ahead_s, plans) + self._seconds(chunk, self.back_s, plans) for chunk in inner]
        spread: Column = np.max(each, axis=0) / np.maximum(np.min(each, axis=0), 1e-30) - 1
        return spread

    def durations(self, seconds: tuple[StageSeconds, ...], plans: Plans) -> Durations:
        """Forward and backward pass of each chunk, as `makespan_s` asks for them."""
        pp, vp = self.layout.split.pp, self.layout.split.vp

        def duration_s(work: Work, stage: int) -> Column:
            kind = seconds[self.layout.kind_at[stage % pp]]
            whole_s, passage_s = (kind.ahead_s, self.ahead_s) if work == "ahead" else (kind.back_s, self.back_s)
            device = [self._seconds(chunk * pp + stage % pp, passage_s, plans) for chunk in range(vp)]
            chunk_s: Column = whole_s[plans] * device[stage // pp] / np.maximum(np.sum(device, axis=0), 1e-30)
            return chunk_s

        return duration_s
