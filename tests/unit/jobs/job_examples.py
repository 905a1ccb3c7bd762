"""Short ways to write the files of a job in a test."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.unit.traces.trace_examples import Event, annotation, document, kernel, launch, op
from traces.content import Content, Limits
from traces.rank import RankParts, rank_parts
from traces.readers import kineto

_ALL_REDUCE = {"Collective name": "allreduce", "Process Group Name": "0", "Group size": 4, "dtype": "Float"}


def rank_document(
    rank: int | None, *, world: int | None = None, shift: float = 0, device: int = 0, **outer: Any
) -> bytes:
    """A Kineto file of one rank: a product and an all-reduce, later and longer the higher the rank."""
    at = shift + 10 * (rank or 0)
    info = {"distributedInfo": {"rank": rank, "world_size": world}} if rank is not None else {}
    events: tuple[Event, ...] = (
        op("aten::mm", at, 4, Input_Dims=[[4, 8], [8, 8]]),
        launch(1, at + 1),
        annotation("Optimizer.step#Adam.step", at + 5, 2),
        kernel("nvjet_tst", at + 2, 10 + (rank or 0), correlation=1, device=device),
        kernel("ncclKernel_AllReduce_RING", at + 30, 4, stream=20, device=device, **_ALL_REDUCE),
    )
    return json.dumps(document(*events, **info, **outer)).encode()


def parts_of(
    file: str, *events: Event, rank: int | None = None, world: int | None = None, source: int = 0, **outer: Any
) -> list[RankParts]:
    """What one file says, device by device."""
    info = {"distributedInfo": {"rank": rank, "world_size": world}} if rank is not None else {}
    data = json.dumps(document(*events, **info, **outer)).encode()
    return [rank_parts(trace, source=source) for trace in kineto.read(Content(file, data), Limits())]


def part(file: str, *events: Event, **how: Any) -> RankParts:
    """What a file of one device says; of one product where no event is given."""
    (one,) = parts_of(file, *(events or (kernel("nvjet", 0, 10),)), **how)
    return one


def written(folder: Path, files: Mapping[str, bytes]) -> Path:
    """The folder with files of these names in it."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder
