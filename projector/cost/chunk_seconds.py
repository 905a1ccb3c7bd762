"""Seconds of the chunks of one interleaved layout, chunk by chunk."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from projector.cost.pipeline import StageSeconds
from projector.cost.pipeline_events import Work
from projector.cost.pipeline_stages import Layout
from projector.graph.columns import Column
from projector.graph.operator import Place

Index = NDArray[np.int64]


@dataclass(frozen=True)
class ChunkSeconds:
    """Forward and backward pass of the chunks that differ, and a hop; columns over plans.

    kind_of    which of the chunks that differ stands at each place of the model, [vp * pp]
    devices    for each device that differs the chunks it holds, [devices, vp]
    """

    ahead_s: tuple[Column, ...]
    back_s: tuple[Column, ...]
    hop_s: Column
    kind_of: Index
    devices: Index

    @classmethod
    def of(
        cls,
        layout: Layout,
        passages_s: Sequence[dict[Place, Column]],
        seconds: Sequence[StageSeconds],
        plans: NDArray[np.intp],
    ) -> "ChunkSeconds":
        """Chunks share the passes of their device by the compute and communication, hidden or not, of what they hold.

        passages_s: of one passage of each place, forward and back.
        """
        pp, vp = layout.split.pp, layout.split.vp
        held = layout.chunks.reshape(vp * pp, -1)
        device_at = np.tile(layout.kind_at, vp)
        _, firsts, kind_of = np.unique(
            np.column_stack([device_at, held]), axis=0, return_index=True, return_inverse=True
        )
        kind_of = kind_of.reshape(-1)
        devices = kind_of.reshape(vp, pp)[:, layout.firsts].T

        def passes(passage_s: dict[Place, Column], of_device: Sequence[Column]) -> tuple[Column, ...]:
            columns = [
                (number, passage_s[place][plans]) for number, place in enumerate(layout.places) if place in passage_s
            ]
            zero = np.zeros(len(plans))
            parts = [sum((held[first, number] * one for number, one in columns), start=zero) for first in firsts]
            whole = [np.maximum(sum((parts[kind] for kind in chunks), start=zero), 1e-30) for chunks in devices]
            at = [device_at[first] for first in firsts]
            return tuple(of_device[device] * part / whole[device] for device, part in zip(at, parts, strict=True))

        first = seconds[layout.kind_at[0]]
        return cls(
            ahead_s=passes(passages_s[0], [one.ahead_s[plans] for one in seconds]),
            back_s=passes(passages_s[1], [one.back_s[plans] for one in seconds]),
            hop_s=(first.hop_ahead_s[plans] + first.hop_back_s[plans]) / 2,
            kind_of=kind_of,
            devices=devices,
        )

    @classmethod
    def from_columns(cls, rows: NDArray[np.float64], kind_of: Index, devices: Index) -> "ChunkSeconds":
        """Of forward passes, backward passes and hops stacked in this order."""
        count = (len(rows) - 1) // 2
        return cls(tuple(rows[:count]), tuple(rows[count:-1]), rows[-1], kind_of, devices)

    def only(self, plans: NDArray[np.bool_] | NDArray[np.intp]) -> "ChunkSeconds":
        """Some of the plans, by a mask or their numbers."""
        ahead_s, back_s = (tuple(one[plans] for one in passes) for passes in (self.ahead_s, self.back_s))
        return ChunkSeconds(ahead_s, back_s, self.hop_s[plans], self.kind_of, self.devices)

    def duration_s(self, work: Work, chunk: int) -> Column:
        """As `makespan_s` asks for it."""
        passes = self.ahead_s if work == "ahead" else self.back_s
        return passes[int(self.kind_of[chunk])]

    def _both_s(self) -> list[Column]:
        return [ahead_s + back_s for ahead_s, back_s in zip(self.ahead_s, self.back_s, strict=True)]

    def spread(self) -> Column:
        """How much longer the longest chunk is than the shortest, the two ends of the model left out."""
        both_s = self._both_s()
        inner = [both_s[kind] for kind in np.unique(self.kind_of[1:-1])]
        spread: Column = np.max(inner, axis=0) / np.maximum(np.min(inner, axis=0), 1e-30) - 1
        return spread

    def mean_s(self) -> Column:
        """Of a chunk, forward and back."""
        both_s = self._both_s()
        mean_s: Column = np.mean([both_s[kind] for kind in self.kind_of], axis=0)
        return mean_s

    def busiest_s(self) -> Column:
        """Of a micro-batch on the device that takes longest."""
        both_s = self._both_s()
        totals_s = [sum((both_s[kind] for kind in chunks), start=np.zeros_like(self.hop_s)) for chunks in self.devices]
        busiest_s: Column = np.max(totals_s, axis=0)
        return busiest_s
