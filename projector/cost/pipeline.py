"""Pipeline: from the time of a micro-batch on each stage to the time of a step, by the order a schedule works in."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from projector.cost.pipeline_stages import Index, Run
from projector.graph.columns import Column


@dataclass(frozen=True)
class StageSeconds:
    """Seconds of one micro-batch on stages of one kind (columns).

    ahead_s, back_s    forward pass; recompute and backward pass, without what weight_s has
    weight_s           gradients of weights that run apart from the backward pass; 0 where the schedule does not split
    first_ahead_s, first_back_s, last_ahead_s, last_back_s   of the first and of the last chunk on the device, all of it
                       with one chunk
    hop_ahead_s, hop_back_s    until a result is on the next device, beside what of it stands in the passes already
    """

    ahead_s: Column
    back_s: Column
    weight_s: Column
    first_ahead_s: Column
    first_back_s: Column
    last_ahead_s: Column
    last_back_s: Column
    hop_ahead_s: Column
    hop_back_s: Column

    @property
    def total_s(self) -> Column:
        """Seconds the device is taken."""
        return self.ahead_s + self.back_s + self.weight_s


@dataclass(frozen=True)
class PipelineTime:
    """Seconds of the pipelined part of a step, and the part of it the busiest device waits.

    busiest: number of the device that takes longest, the first of equals
    """

    total_s: Column
    bubble_s: Column
    busiest: Index


def longest_path_s(
    kinds: Sequence[StageSeconds],
    runs: Sequence[Run],
    pp: Column,
    virtual_stages: Column,
    micro_batches: Column,
) -> Column:
    """A step of m micro-batches over p stages of any length: the longest of these paths, one a stage k.

        T_k = before_k + m (F_k + B_k + W_k) + fill_k + drain_k + after_k

    F, B, W: forward, backward and separate weight-gradient time of a micro-batch. Stage k starts when its predecessors
    have passed the first micro-batch on, and then works without a pause, save that it waits for the first gradient
    (fill) and for the last one (drain) as long as the way to the end of the pipeline and back outlasts its other work:

        S_k = sum over i > k of F_i + B_i,   before_k = sum over i < k of F_i,   after_k = sum over i < k of B_i
        1F1B          fill = max(0, S_k - (p - k - 1) F_k),   drain = max(0, S_k - (p - k - 1) B_k)
        ZB-H1         drain = max(0, S_k - (p - k - 1) (B_k + W_k)). Of the weight gradients k + 1 are left when the
                      last B is done; while it goes to the stages before, they too have theirs left:
                      after_k = max over i <= k of (sum over i <= j < k of B_j + (i + 1) W_i) - (k + 1) W_k
        interleaved   before_k and after_k in first chunks, S_k in last ones and against 2 (p - k - 1) of them; to fill
                      and drain comes what turns from chunk to chunk take beyond p passes of the device's own

    Fewer than p - k micro-batches wait once, not twice. Hops between devices that nothing hides stand in every sum. For
    equal stages the bubbles are (p - 1) (F + B), over v chunks where interleaved (Narayanan et al. 2021,
    arXiv:2104.04473, section 2.2), and (p - 1) (F + B - W) (Qi et al. 2023, arXiv:2401.10241, section 2.3).
    Against an event simulation of the schedules (test_pipeline_simulation.py) exact for 1F1B unless every stage has
    another length, and for the others with equal stages; else at most 3 % too short while chunks differ by up to 6 %.
    Cost: two evaluations a run of equal stages, columns over plans (inside a run T_k is convex in k: its ends decide).
    """
    order = tuple((run.length, _chosen(kinds, run)) for run in runs)
    line = _Line(pp, virtual_stages, micro_batches, _Sums.none(pp).passed_all(order, virtual_stages))
    before, waiting_s = _Sums.none(pp), np.full_like(micro_batches, -np.inf)
    longest_s = waiting_s
    for length, stage in order:
        for steps in (np.zeros_like(length), np.maximum(length - 1, 0.0)):
            here = before.passed(stage, steps, virtual_stages)
            left_s = (np.minimum(here.stages, micro_batches - 1) + 1) * stage.weight_s
            waiting_s = np.where(length > 0, np.maximum(waiting_s, left_s - here.first_back_s), waiting_s)
            path_s = line.path_s(here, stage) + here.first_back_s + waiting_s - left_s
            longest_s = np.where(length > 0, np.maximum(longest_s, path_s), longest_s)
        before = before.passed(stage, length, virtual_stages)
    return longest_s


def over_busiest(device_s: Sequence[Column], longest_s: Column, micro_batches: Column) -> PipelineTime:
    """A step as its busiest device spends it; device_s: seconds of a micro-batch on each device that differs."""
    totals_s = np.stack(device_s)
    busiest = np.argmax(totals_s, axis=0)
    work_s = micro_batches * np.take_along_axis(totals_s, busiest[np.newaxis], axis=0)[0]
    bubble_s = np.maximum(longest_s - work_s, 0.0)
    return PipelineTime(work_s + bubble_s, bubble_s, busiest)


def _chosen(kinds: Sequence[StageSeconds], run: Run) -> StageSeconds:
    """Seconds of the kind of stage a run consists of, plan by plan."""
    columns = {}
    for field in fields(StageSeconds):
        column = getattr(kinds[0], field.name)
        for number, kind in enumerate(kinds[1:], start=1):
            column = np.where(run.kind == number, getattr(kind, field.name), column)
        columns[field.name] = column
    return StageSeconds(**columns)


@dataclass(frozen=True)
class _Sums:
    """What a micro-batch spends on so many stages in a row, hops behind each included.

    ahead_s, back_s in all chunks; first_*, last_* in the first and in the last chunk of each stage
    """

    stages: Column
    ahead_s: Column
    back_s: Column
    first_ahead_s: Column
    first_back_s: Column
    last_ahead_s: Column
    last_back_s: Column

    @classmethod
    def none(cls, pp: Column) -> "_Sums":
        """Before the first stage."""
        return cls(*(np.zeros_like(pp) for _ in fields(cls)))

    def passed(self, stage: StageSeconds, times: Column, chunks: Column) -> "_Sums":
        """Behind so many more stages of this kind."""
        return _Sums(
            stages=self.stages + times,
            ahead_s=self.ahead_s + times * (stage.ahead_s + chunks * stage.hop_ahead_s),
            back_s=self.back_s + times * (stage.back_s + chunks * stage.hop_back_s),
            first_ahead_s=self.first_ahead_s + times * (stage.first_ahead_s + stage.hop_ahead_s),
            first_back_s=self.first_back_s + times * (stage.first_back_s + stage.hop_back_s),
            last_ahead_s=self.last_ahead_s + times * (stage.last_ahead_s + stage.hop_ahead_s),
            last_back_s=self.last_back_s + times * (stage.last_back_s + stage.hop_back_s),
        )

    def passed_all(self, order: Sequence[tuple[Column, StageSeconds]], chunks: Column) -> "_Sums":
        """Behind all of these stages."""
        sums = self
        for length, stage in order:
            sums = sums.passed(stage, length, chunks)
        return sums


@dataclass(frozen=True)
class _Line:
    """A pipeline and what a micro-batch spends on all of its stages."""

    pp: Column
    chunks: Column
    micro_batches: Column
    whole: _Sums

    def path_s(self, before: _Sums, stage: StageSeconds) -> Column:
        """before_k + m (F_k + B_k + W_k) + fill_k + drain_k of a stage behind `before`."""
        wait_s = np.where(self.chunks > 1, self._wait_interleaved_s(before, stage), self._wait_s(before, stage))
        return before.first_ahead_s + self.micro_batches * stage.total_s + wait_s

    def _there_and_back_s(self, before: _Sums, stage: StageSeconds) -> Column:
        """S_k, in last chunks."""
        there_s = self.whole.last_ahead_s - before.last_ahead_s - stage.last_ahead_s - stage.hop_ahead_s
        back_s = self.whole.last_back_s - before.last_back_s - stage.last_back_s - stage.hop_back_s
        return there_s + back_s

    def _wait_s(self, before: _Sums, stage: StageSeconds) -> Column:
        behind, away_s = self.pp - before.stages - 1, self._there_and_back_s(before, stage)
        fill_s = np.maximum(away_s - behind * stage.ahead_s, 0.0)
        drain_s = np.maximum(away_s - behind * (stage.back_s + stage.weight_s), 0.0)
        shorter_s = np.minimum(stage.ahead_s, stage.back_s)
        once_s = np.maximum(away_s - (self.micro_batches - 1) * shorter_s, 0.0)
        wait_s: Column = np.where(self.micro_batches > behind + 1, fill_s + drain_s, once_s)
        return wait_s

    def _wait_interleaved_s(self, before: _Sums, stage: StageSeconds) -> Column:
        p, m = self.pp, self.micro_batches
        away_s, whole = self._there_and_back_s(before, stage), self.whole
        turns_ahead_s = whole.ahead_s - (whole.last_ahead_s - before.last_ahead_s) - before.first_ahead_s
        turns_back_s = whole.back_s - (whole.last_back_s - before.last_back_s) - before.first_back_s
        late_ahead_s = np.maximum(turns_ahead_s - p * (stage.ahead_s - stage.last_ahead_s), 0.0)
        late_back_s = np.maximum(turns_back_s - p * (stage.back_s - stage.last_back_s), 0.0)
        beside = 2 * (p - before.stages - 1)
        last = np.minimum(beside, np.minimum(p, m) - 1)
        first = np.where(m > p, beside - last, 0.0)
        other_ahead_s = last * stage.last_ahead_s + first * stage.first_ahead_s
        other_back_s = last * stage.last_back_s + first * stage.first_back_s
        fill_s = np.maximum(late_ahead_s + away_s - other_ahead_s, 0.0)
        drain_s = np.maximum(late_back_s + away_s - other_back_s, 0.0)
        once_s = late_ahead_s + late_back_s + away_s - np.minimum(other_ahead_s, other_back_s)
        wait_s: Column = np.where(m > p, fill_s + drain_s, np.maximum(once_s, 0.0))
        return wait_s
