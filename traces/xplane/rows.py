"""Collects events into the rows of a `Trace`. Picoseconds become nanoseconds by cutting, begins and ends alike, so that
events that touch still touch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from traces.trace import ABSENT, NOT_STATED, Category, CollectiveArgs, Ints, Metadata, Trace
from traces.xplane.profile import DeviceProfile

PS_PER_NS = 1_000
_COLUMNS = 10


@dataclass(slots=True)
class Rows:
    """Growing rows of one Trace."""

    names: dict[str, int] = field(default_factory=dict)
    parts: list[Ints] = field(default_factory=list)
    collectives: list[Sequence[CollectiveArgs | None]] = field(default_factory=list)

    def name_ids(self, names: Sequence[str]) -> Ints:
        """Ids of some names."""
        return np.array([self.names.setdefault(name, len(self.names)) for name in names], dtype=np.int64)

    def add(
        self,
        begin_ps: Ints,
        end_ps: Ints,
        name_ids: Ints,
        category: Category | Ints,
        *,
        device: int = ABSENT,
        stream: int = ABSENT,
        thread: int = ABSENT,
        correlation: Ints | int = ABSENT,
        size_bytes: Ints | int = ABSENT,
        kind: Ints | int = NOT_STATED,
        collectives: Sequence[CollectiveArgs | None] = (),
    ) -> None:
        """Add events, one entry each; single values hold for all of them. `kind`: see `Trace.stated_kind`."""
        start = begin_ps // PS_PER_NS
        columns = (
            start,
            end_ps // PS_PER_NS - start,
            np.asarray(category),
            name_ids,
            np.asarray(device),
            np.asarray(stream),
            np.asarray(thread),
            np.asarray(correlation),
            np.asarray(size_bytes),
            np.asarray(kind),
        )
        self.parts.append(np.stack([np.broadcast_to(column, len(start)) for column in columns], axis=1))
        self.collectives.append(collectives or (None,) * len(start))

    def correlations(self) -> Ints:
        """Correlation ids of the events so far."""
        ids: Ints = np.unique(np.concatenate([part[:, 7] for part in self.parts]))
        stated: Ints = ids[ids != ABSENT]
        return stated

    def trace(
        self,
        *,
        format: str,
        file: str,
        metadata: Metadata,
        counts: Mapping[str, int],
        warnings: tuple[str, ...],
        profile: DeviceProfile | None,
        framework_ops: Mapping[str, int],
    ) -> Trace:
        """The rows in order of start, the longer first."""
        table = np.concatenate(self.parts) if self.parts else np.empty((0, _COLUMNS), dtype=np.int64)
        told = [args for part in self.collectives for args in part]
        order = np.lexsort((table[:, 5], table[:, 2], -table[:, 1], table[:, 0]))
        table = table[order]
        stated: NDArray[np.int8] = table[:, 9].astype(np.int8)
        return Trace(
            format=format,
            file=file,
            start_ns=np.ascontiguousarray(table[:, 0]),
            duration_ns=np.ascontiguousarray(table[:, 1]),
            category=table[:, 2].astype(np.int8),
            name_id=table[:, 3].astype(np.int32),
            device=np.ascontiguousarray(table[:, 4]),
            stream=np.ascontiguousarray(table[:, 5]),
            thread=table[:, 6].astype(np.int32),
            correlation=np.ascontiguousarray(table[:, 7]),
            external_id=np.full(len(table), ABSENT, dtype=np.int64),
            size_bytes=np.ascontiguousarray(table[:, 8]),
            names=tuple(self.names),
            collectives={row: args for row, old in enumerate(order.tolist()) if (args := told[old]) is not None},
            metadata=metadata,
            event_counts=counts,
            warnings=warnings,
            stated_kind=stated,
            profile=profile,
            framework_ops=framework_ops,
        )
