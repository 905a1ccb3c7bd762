"""A job of many ranks made of shifted copies of the real two-rank pair of the sample folder, with faults planted.

The two files are of ranks 0 and 1 of one training job of 128, thinned to a part of their events. Of the ten collectives
left in each, five are the same in both: they end together. Even ranks here are copies of the one file and odd ranks of
the other, several windows long. The five set the pace: between two of them a copy's events keep their distances, up to
a little jitter, and at each the ranks of a group wait for the last one, then transfer as long as the real pair did. The
other five of a file, whose partners were thinned away, are left out. The five get a group and a number, as today's
profilers write them; the numbers have gaps where one is left out.

Times are microseconds, as in the files.
"""

import gzip
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from traces.collectives import communications
from traces.naming import classify
from traces.read import read_trace

FILES: Final = ("sampled_rank-0.json.gz", "sampled_rank-1.json.gz")
SAME_END_US: Final = 1_000
MS: Final = 1_000.0
JITTER: Final = 0.005
NEAR: Final = 8
"""Ranks of an expert-parallel group; data-parallel ones take every eighth rank."""
SHARE_BYTES: Final = 16 << 20
"""What each rank gives to an all-gather, as its operator shows."""


@dataclass(frozen=True)
class Planted:
    """slow: rank -> factor on the time between collectives. late: rank -> idle before each. links: group -> factor.

    skew: (group, idle) before the all-to-all of a window on one rank of a group, another one in each window.
    clock_us: rank -> how far its clock is ahead.
    """

    slow: dict[int, float] = field(default_factory=dict)
    late: dict[int, float] = field(default_factory=dict)
    links: dict[str, float] = field(default_factory=dict)
    skew: tuple[str, float] | None = None
    clock_us: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Collective:
    """One collective kernel of a file. number: which one of its kind it is in the job, over both files."""

    kind: str
    start: float
    end: float
    message_bytes: int | None
    number: int = 0


@dataclass(frozen=True)
class Half:
    """One file of the pair: its timed events, its collectives by start, and the five it shares with the other."""

    events: list[dict[str, Any]]
    collectives: dict[float, Collective]
    shared: tuple[Collective, ...]


@dataclass(frozen=True)
class Pair:
    """Both files, and the window they have in common."""

    halves: tuple[Half, Half]
    begin: float
    end: float


def read_pair(folder: Path) -> Pair:
    """Read the two files, and number their collectives together."""
    found = [_collectives(folder / name) for name in FILES]
    same = [(a, b) for a in found[0] for b in found[1] if a.kind == b.kind and abs(a.end - b.end) < SAME_END_US]
    assert len(same) == 5, "five of ten are in both files"
    first = {b: a for a, b in same}
    numbers: dict[Collective, int] = {}
    counts: Counter[str] = Counter()
    for one in sorted({*found[0], *(b for b in found[1] if b not in first)}, key=lambda one: one.end):
        counts[one.kind] += 1
        numbers[one] = counts[one.kind]

    def numbered(one: Collective) -> Collective:
        return Collective(one.kind, one.start, one.end, one.message_bytes, numbers[first.get(one, one)])

    events = [_events(folder / name) for name in FILES]
    halves = [
        Half(
            events[side],
            {one.start: numbered(one) for one in found[side]},
            tuple(numbered(pair[side]) for pair in same),
        )
        for side in (0, 1)
    ]
    everything = [one for listed in events for one in listed]
    return Pair(
        (halves[0], halves[1]),
        min(one["ts"] for one in everything),
        max(one["ts"] + one["dur"] for one in everything),
    )


def _events(path: Path) -> list[dict[str, Any]]:
    listed = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return [one for one in listed if one["ph"] == "X" and one["cat"] != "Trace"]


def _collectives(path: Path) -> list[Collective]:
    (trace,) = read_trace(path)
    return [
        Collective(
            one.collective, int(trace.start_ns[one.row]) / 1_000, int(trace.end_ns[one.row]) / 1_000, one.message_bytes
        )
        for one in communications(trace, classify(trace))
    ]


# the run ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PairJob:
    """Where the shared collectives of each rank fall: starts and ends of shape [ranks, windows, five].

    begins: start of each window on each rank, and the end of the last.
    """

    pair: Pair
    planted: Planted
    starts: np.ndarray
    ends: np.ndarray
    begins: np.ndarray

    @property
    def world(self) -> int:
        return len(self.starts)


def group_of(kind: str, rank: int) -> str:
    """The group in which a rank does collectives of one kind."""
    return {"all_to_all": f"ep_{rank // NEAR}", "all_reduce": f"dp_{rank % NEAR}", "all_gather": "world"}[kind]


def ranks_of(group: str, world: int) -> tuple[int, ...]:
    name, _, number = group.partition("_")
    if name == "ep":
        return tuple(range(int(number) * NEAR, (int(number) + 1) * NEAR))
    return tuple(range(int(number), world, NEAR)) if name == "dp" else tuple(range(world))


def run(pair: Pair, world: int, windows: int, planted: Planted, seed: int) -> PairJob:
    """Set the pace: every rank takes its own time to each shared collective, waits for its group, and transfers."""
    luck = np.random.default_rng(seed)
    shared = [half.shared for half in pair.halves]
    count = len(shared[0])
    transfers = [min(a.end, b.end) - max(a.start, b.start) for a, b in zip(*shared, strict=True)]
    starts, ends = np.zeros((world, windows, count)), np.zeros((world, windows, count))
    begins = np.zeros((world, windows + 1))
    now = np.full(world, pair.begin)
    for window in range(windows):
        begins[:, window] = now
        before = np.full(world, pair.begin)
        for place in range(count):
            kind = shared[0][place].kind
            own = np.array([shared[rank % 2][place].start - before[rank] for rank in range(world)])
            came = now + own * _pace(planted, world, luck)
            came += np.array([planted.late.get(rank, 0.0) for rank in range(world)])
            if planted.skew is not None and kind == "all_to_all":
                came[ranks_of(planted.skew[0], world)[window % NEAR]] += planted.skew[1]
            for group in {group_of(kind, rank) for rank in range(world)}:
                members = list(ranks_of(group, world))
                end = came[members].max() + transfers[place] * planted.links.get(group, 1.0) * luck.normal(1, 0.02)
                now[members] = end
            starts[:, window, place], ends[:, window, place] = came, now
            before = np.array([shared[rank % 2][place].end for rank in range(world)])
        now = now + (pair.end - before) * _pace(planted, world, luck)
    begins[:, windows] = now
    return PairJob(pair, planted, starts, ends, begins)


def _pace(planted: Planted, world: int, luck: np.random.Generator) -> np.ndarray:
    return luck.normal(1, JITTER, world) * np.array([planted.slow.get(rank, 1.0) for rank in range(world)])


# the files ----------------------------------------------------------------------------------------------------------


def write_pair_job(job: PairJob, folder: Path) -> list[Path]:
    """One gzip Kineto file a rank."""
    paths = []
    for rank in range(job.world):
        path = folder / f"rank{rank:03}.json.gz"
        path.write_bytes(gzip.compress(json.dumps(document_of(job, rank)).encode(), 1))
        paths.append(path)
    return paths


def document_of(job: PairJob, rank: int) -> dict[str, Any]:
    """The file of one rank: its half of the pair, once a window, every time moved to where it falls in this job."""
    half = job.pair.halves[rank % 2]
    times = np.array([[one["ts"], one["ts"] + one["dur"]] for one in half.events], dtype=np.float64)
    events: list[dict[str, Any]] = []
    for window in range(job.starts.shape[1]):
        moved = _moved(job, rank, window, times) + job.planted.clock_us.get(rank, 0.0)
        for one, (start, end) in zip(half.events, moved.round(3).tolist(), strict=True):
            if _is_alone(one, half):
                continue
            args = _args(job, one, rank, window)
            events.append(
                {
                    **one,
                    "name": _step_name(one["name"], window),
                    "ts": start,
                    "dur": round(end - start, 3),
                    "args": args,
                }
            )
    return {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": job.world},
        "traceEvents": events,
    }


def _moved(job: PairJob, rank: int, window: int, times: np.ndarray) -> np.ndarray:
    """Times of the pair in this window of this rank: linear between the shared collectives.

    What runs beside a collective goes on at its own pace from the collective's start, faster where that is shorter.
    """
    there, here = [job.pair.begin], [float(job.begins[rank, window])]
    starts, ends = job.starts[rank, window].tolist(), job.ends[rank, window].tolist()
    for one, start, end in zip(job.pair.halves[rank % 2].shared, starts, ends, strict=True):
        beside = start + min(one.end - one.start, end - start)
        there += [one.start, one.end - 1, one.end]
        here += [start, beside, end]
    return np.interp(times, [*there, job.pair.end], [*here, float(job.begins[rank, window + 1])])


def _args(job: PairJob, event: dict[str, Any], rank: int, window: int) -> dict[str, Any]:
    """The event's own arguments, ids apart from those of other windows, and what a profiler says of a collective."""
    args = dict(event.get("args", {}))
    for name in ("correlation", "External id"):
        if name in args:
            args[name] += window * 100_000_000
    half = job.pair.halves[rank % 2]
    one = half.collectives.get(event["ts"]) if event["cat"] == "kernel" and event["name"].startswith("nccl") else None
    if one is None:
        return args
    group = group_of(one.kind, rank)
    ranks = ranks_of(group, job.world)
    a_window = max(
        other.number for each in job.pair.halves for other in each.collectives.values() if other.kind == one.kind
    )
    elements = (one.message_bytes or SHARE_BYTES) // 4
    return args | {
        "Collective name": one.kind,
        "In msg nelems": elements,
        "Out msg nelems": elements * (len(ranks) if one.kind == "all_gather" else 1),
        "Group size": len(ranks),
        "dtype": "Float",
        "Process Group Name": group,
        "Process Group Description": {"e": "EXPERT_PARALLEL_GROUP", "d": "DATA_PARALLEL_GROUP"}.get(
            group[0], "default_pg"
        ),
        "Process Group Ranks": f"[{', '.join(map(str, ranks))}]",
        "Seq": one.number + window * a_window,
    }


def _is_alone(event: dict[str, Any], half: Half) -> bool:
    """Whether it is a collective kernel that only this file holds."""
    found = half.collectives.get(event["ts"]) if event["cat"] == "kernel" and event["name"].startswith("nccl") else None
    return found is not None and found not in half.shared


def _step_name(name: str, window: int) -> str:
    """Steps of later windows count on."""
    head, mark, number = name.partition("ProfilerStep#")
    return f"{mark}{int(number) + 2 * window}" if mark and not head and number.isdecimal() else name
