"""ExecutionTrace: what one process ran, operator by operator, without times."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from traces.trace import CollectiveArgs, GroupConfig, Ints, OpInputs


@dataclass(frozen=True, slots=True, eq=False)
class ExecutionTrace:
    """Operator calls of one process, one entry each, in ascending order of their record function id.

    schema        as written ("1.1.1-chakra.0.0.4"; untrusted text)
    process_id    of the operating system; None where the file does not say
    record_ids    int64, > 0, each once; Kineto's "Record function id" of the same call
    name_id       int32, index into `names` (untrusted text)
    scope         int8, c10's RecordScope: 0 operator, 1 backward function, 7 user annotation; ABSENT if out of range
    thread        int32, the framework's thread number; ABSENT if out of range
    inputs        entry -> shapes, types and literals, in the spelling of the profiler; equal ones are one object
    collectives   entry -> arguments, for calls that record a collective
    groups        declared process groups
    rank          global rank, where a collective of all ranks records it
    world_size    size of the default process group
    """

    file: str
    schema: str
    process_id: int | None
    record_ids: Ints
    name_id: NDArray[np.int32]
    names: tuple[str, ...]
    scope: NDArray[np.int8]
    thread: NDArray[np.int32]
    inputs: Mapping[int, OpInputs] = field(default_factory=dict)
    collectives: Mapping[int, CollectiveArgs] = field(default_factory=dict)
    groups: tuple[GroupConfig, ...] = ()
    rank: int | None = None
    world_size: int | None = None
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.record_ids)

    def name(self, entry: int) -> str:
        """Name of one call."""
        return self.names[int(self.name_id[entry])]
