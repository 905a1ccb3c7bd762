"""The jobs of `rank_jobs` as Kineto files, one a rank, as each rank's own clock tells the time."""

import gzip
import json
from pathlib import Path
from typing import Any, Final

from rank_jobs import BASE_NS, DEVICES_PER_NODE, US, Job, recorded

from traces.content import Content, Limits
from traces.readers import kineto
from traces.trace import Trace

HOST_AHEAD_NS: Final = 40 * US


def write_job(job: Job, folder: Path) -> list[Path]:
    """Write one gzip file a rank."""
    paths = []
    for rank in range(job.shape.world):
        path = folder / f"rank{rank}.json.gz"
        path.write_bytes(gzip.compress(json.dumps(document_of(job, rank)).encode(), 1))
        paths.append(path)
    return paths


def trace_of_rank(job: Job, rank: int) -> Trace:
    """The trace that the reader makes of one rank's file."""
    data = json.dumps(document_of(job, rank)).encode()
    (trace,) = kineto.read(Content(f"rank{rank}.json", data), Limits())
    return trace


def document_of(job: Job, rank: int) -> dict[str, Any]:
    """The Kineto file of one rank, as its own clock tells the time."""
    base = job.faults.base_ns.get(rank, BASE_NS)
    shift = BASE_NS - base + job.faults.clock_ns.get(rank, 0)
    events: list[dict[str, Any]] = []
    for number, ran in enumerate(recorded(job, rank), 1):
        start = _us(ran.start_ns + shift)
        on_device = {"device": rank % DEVICES_PER_NODE, "stream": ran.stream, "correlation": number, **ran.args}
        events.append(_event("kernel", ran.name, 0, ran.stream, start, ran.end_ns - ran.start_ns, on_device))
        launched = _us(ran.start_ns + shift - HOST_AHEAD_NS)
        events.append(_event("cuda_runtime", "cudaLaunchKernel", 1, 1, launched, 4 * US, {"correlation": number}))
    for number, (start_ns, end_ns) in enumerate(job.steps_ns, 1):
        mark = (_us(start_ns + shift), end_ns - start_ns)
        events.append(_event("user_annotation", f"ProfilerStep#{number}", 1, 1, *mark, {}))
    return {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": job.shape.world},
        "deviceProperties": [{"id": rank % DEVICES_PER_NODE, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}],
        "baseTimeNanoseconds": base,
        "traceEvents": events,
    }


def _event(
    category: str, name: str, pid: int, tid: int, start: float, length_ns: int, args: dict[str, Any]
) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": start,
        "dur": length_ns / US,
        "args": args,
    }


def _us(time_ns: int) -> float:
    return time_ns / US
