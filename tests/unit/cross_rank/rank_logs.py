"""The jobs of `rank_jobs` as collective logs, without a file and without reading: what `rank_parts` makes of them."""

from typing import Any

import numpy as np
from rank_jobs import BASE_NS, DEVICES_PER_NODE, Job, recorded

from traces.collectives import communications
from traces.cross_rank.job import CrossRank, cross_rank
from traces.cross_rank.log import CollectiveLog, collective_log
from traces.infer_mesh import described_axis
from traces.naming import classify
from traces.shares import device_cover
from traces.trace import ABSENT, Category, CollectiveArgs, Metadata, Trace


def log_of_rank(job: Job, rank: int) -> CollectiveLog:
    """The log of one rank, without a file and without reading: what `rank_parts` makes of it."""
    base = job.faults.base_ns.get(rank, BASE_NS)
    shift = BASE_NS - base + job.faults.clock_ns.get(rank, 0)
    ran = sorted(recorded(job, rank), key=lambda one: (one.start_ns, -one.end_ns, one.stream))
    names = list(dict.fromkeys(one.name for one in ran))
    count = len(ran)
    trace = Trace(
        format="kineto",
        file=f"rank{rank}.json",
        start_ns=np.array([one.start_ns + shift for one in ran], dtype=np.int64),
        duration_ns=np.array([one.end_ns - one.start_ns for one in ran], dtype=np.int64),
        category=np.full(count, Category.KERNEL, dtype=np.int8),
        name_id=np.array([names.index(one.name) for one in ran], dtype=np.int32),
        stream=np.array([one.stream for one in ran], dtype=np.int64),
        device=np.full(count, rank % DEVICES_PER_NODE, dtype=np.int64),
        thread=np.full(count, ABSENT, dtype=np.int32),
        correlation=np.full(count, ABSENT, dtype=np.int64),
        external_id=np.full(count, ABSENT, dtype=np.int64),
        size_bytes=np.full(count, ABSENT, dtype=np.int64),
        names=tuple(names),
        collectives={row: _stated(one.args) for row, one in enumerate(ran) if one.args},
        metadata=Metadata(rank=rank, world_size=job.shape.world, base_time_ns=base),
    )
    classified = classify(trace)
    found = communications(trace, classified)
    return collective_log(
        trace, found, device_cover(trace, classified), lambda one: described_axis(one.group_description) or "unknown"
    )


def _stated(args: dict[str, Any]) -> CollectiveArgs:
    return CollectiveArgs(
        name=args["Collective name"],
        group=args["Process Group Name"],
        group_description=args["Process Group Description"],
        group_size=args["Group size"],
        ranks=tuple(map(int, args["Process Group Ranks"].strip("[]").split(","))),
        dtype=args["dtype"],
        in_elements=args["In msg nelems"],
        out_elements=args["Out msg nelems"],
        sequence=args.get("Seq"),
        source_rank=args.get("Src Rank"),
        target_rank=args.get("Dst Rank"),
        uneven=False,
    )


def crossed(job: Job) -> CrossRank:
    """What the ranks of a job show together."""
    return cross_rank([(rank, log_of_rank(job, rank)) for rank in range(job.shape.world)])
