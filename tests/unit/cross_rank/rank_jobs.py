"""Makes the profiles of a training job of many ranks, with faults planted: what tests of ranks together are run on.

The job is a small event-driven model of what a device does. Each rank runs a program of compute and communication on
streams of its own; a collective begins on a rank when that rank comes to it and ends on all of its ranks together, its
transfer after the last of them came. Everything follows from the seed.

    job = make_job(Shape(tp=4, dp=4), Faults(slow={6: 1.3}), seed=1)
    rank_logs.crossed(job).lateness        compared in memory, no file written
    rank_files.trace_of_rank(job, 6)       as the reader sees one rank
    rank_files.write_job(job, folder)      Kineto JSON, one gzip file a rank
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

COMPUTE, TP, DP, PP = 7, 20, 24, 28
"""Streams."""

US: Final = 1_000
MS: Final = 1_000_000
MIB: Final = 1 << 20
BASE_NS: Final = 1_700_000_000_000_000_000
DEVICES_PER_NODE: Final = 8


@dataclass(frozen=True)
class Shape:
    """Degrees and sizes. Ranks are numbered tp first, then dp, then pp; the world is tp * dp * pp.

    numbered: whether collectives state their sequence number; stated: whether they state their group at all.
    """

    tp: int = 2
    dp: int = 2
    pp: int = 1
    layers: int = 4
    micro_batches: int = 1
    steps: int = 3
    layer_ns: int = 2 * MS
    tp_bytes: int = 32 * MIB
    dp_bytes: int = 64 * MIB
    pp_bytes: int = 16 * MIB
    tp_bytes_per_s: float = 360e9
    dp_bytes_per_s: float = 40e9
    jitter_frac: float = 0.02
    link_jitter_frac: float = 0.02
    numbered: bool = True
    stated: bool = True

    @property
    def world(self) -> int:
        return self.tp * self.dp * self.pp


@dataclass(frozen=True)
class Faults:
    """What is planted.

    slow: rank -> factor on its kernels. late: rank -> share of a layer's time its device idles before each layer.
    clock_ns: rank -> how far its clock is ahead. base_ns: rank -> its file's base time, taken off its times.
    links: group or (sender, receiver) -> factor on transfer times. ports: the same for all that a rank's network
    port carries. cut: rank -> (collectives missing at the beginning, at the end) of each group.
    thinned: rank -> share of collectives that are missing.
    """

    slow: dict[int, float] = field(default_factory=dict)
    late: dict[int, float] = field(default_factory=dict)
    clock_ns: dict[int, int] = field(default_factory=dict)
    base_ns: dict[int, int] = field(default_factory=dict)
    links: dict[str | tuple[int, int], float] = field(default_factory=dict)
    ports: dict[int, float] = field(default_factory=dict)
    cut: dict[int, tuple[int, int]] = field(default_factory=dict)
    thinned: dict[int, float] = field(default_factory=dict)


class Group(NamedTuple):
    name: str
    description: str
    ranks: tuple[int, ...]


Party = str | tuple[int, int]
Meeting = tuple[Party, int]


class Do(NamedTuple):
    """One thing a rank does. what: compute, collective, send, recv, wait (for the dp stream)."""

    what: str
    length: float = 0.0
    group: Group | None = None
    kind: str = ""
    size: int = 0
    peer: int = -1


class Ran(NamedTuple):
    """One kernel that ran, times in true nanoseconds."""

    name: str
    stream: int
    start_ns: int
    end_ns: int
    args: dict[str, Any]


@dataclass
class Job:
    shape: Shape
    faults: Faults
    groups: dict[str, Group]
    ran: list[list[Ran]]
    steps_ns: list[tuple[int, int]]


def make_job(shape: Shape = Shape(), faults: Faults = Faults(), seed: int = 0) -> Job:
    """Run the job."""
    groups = {group.name: group for group in _groups(shape)}
    machine = _Machine(shape, faults, groups, np.random.default_rng(seed))
    bounds = []
    for _ in range(shape.steps):
        begun = min(machine.now)
        machine.run([_step(shape, groups, rank) for rank in range(shape.world)])
        bounds.append((begun, max(machine.now)))
    return Job(shape, faults, groups, machine.ran, bounds)


def _groups(shape: Shape) -> list[Group]:
    tp, dp, pp = shape.tp, shape.dp, shape.pp
    plane = tp * dp
    found = [
        Group(f"tp_{start // tp}", "TENSOR_MODEL_PARALLEL_GROUP", tuple(range(start, start + tp)))
        for start in range(0, shape.world, tp)
    ]
    found += [
        Group(f"dp_{stage * tp + column}", "DATA_PARALLEL_GROUP", tuple(range(first, first + plane, tp)))
        for stage in range(pp)
        for column in range(tp)
        for first in [stage * plane + column]
    ]
    found += [
        Group(f"pp_{first}", "PIPELINE_MODEL_PARALLEL_GROUP", tuple(range(first, shape.world, plane)))
        for first in range(plane)
    ]
    found.append(Group("0", "default_pg", tuple(range(shape.world))))
    return [group for group in found if len(group.ranks) > 1]


def _step(shape: Shape, groups: dict[str, Group], rank: int) -> list[Do]:
    """One training step of one rank: forward and backward of its layers, gradients reduced beside the backward."""
    plane = shape.tp * shape.dp
    stage, column = rank // plane, rank % shape.tp
    tp = groups.get(f"tp_{rank // shape.tp}")
    dp = groups.get(f"dp_{stage * shape.tp + column}")
    pp = groups.get(f"pp_{rank % plane}")
    layer = shape.layer_ns

    def reduced(length: float) -> list[Do]:
        done = [Do("compute", length)]
        return [*done, Do("collective", group=tp, kind="all_reduce", size=shape.tp_bytes)] if tp else done

    program: list[Do] = []
    for _ in range(shape.micro_batches):
        program += [Do("recv", group=pp, size=shape.pp_bytes, peer=rank - plane)] if stage else []
        program += [do for _ in range(shape.layers) for do in reduced(layer)]
        program += [Do("send", group=pp, size=shape.pp_bytes, peer=rank + plane)] if stage < shape.pp - 1 else []
    for last in range(shape.micro_batches - 1, -1, -1):
        program += [Do("recv", group=pp, size=shape.pp_bytes, peer=rank + plane)] if stage < shape.pp - 1 else []
        for _ in range(shape.layers):
            program += reduced(2 * layer)
            if dp and not last:
                program.append(Do("collective", group=dp, kind="reduce_scatter", size=shape.dp_bytes))
        program += [Do("send", group=pp, size=shape.pp_bytes, peer=rank - plane)] if stage else []
    program += [Do("wait"), Do("compute", layer / 2)]
    program += [Do("collective", group=dp, kind="all_gather", size=shape.dp_bytes), Do("wait")] if dp else []
    program += [Do("collective", group=groups["0"], kind="all_reduce", size=4), Do("wait")] if shape.world > 1 else []
    return program


class _Machine:
    """Runs programs; `now` is each rank's compute stream, `free` when its other streams are next free."""

    def __init__(self, shape: Shape, faults: Faults, groups: dict[str, Group], luck: np.random.Generator) -> None:
        self.shape, self.faults, self.luck = shape, faults, luck
        self.now = [0] * shape.world
        self.ran: list[list[Ran]] = [[] for _ in range(shape.world)]
        self._free: dict[tuple[int, int], int] = defaultdict(int)
        self._came: dict[Meeting, dict[int, int]] = defaultdict(dict)
        self._held: set[Meeting] = set()
        self._counts: dict[tuple[int, Party], int] = defaultdict(int)
        self._open: dict[tuple[int, int], int] = defaultdict(int)
        self._waits: dict[int, Meeting] = {}

    def run(self, programs: list[list[Do]]) -> None:
        """Let every rank go on until all are done; a rank that waits for others is taken up again later."""
        places = [0] * len(programs)
        while any(place < len(program) for place, program in zip(places, programs, strict=True)):
            before = (list(places), len(self._held))
            for rank, program in enumerate(programs):
                while places[rank] < len(program) and self._do(rank, program[places[rank]]):
                    places[rank] += 1
            assert (places, len(self._held)) != before, "the programs of the ranks wait for each other"

    def _do(self, rank: int, do: Do) -> bool:
        """Whether it is done; a rank that has to wait asks again."""
        if do.what == "compute":
            self._compute(rank, do.length)
            return True
        if do.what == "wait":
            self.now[rank] = max(self.now[rank], self._free[rank, DP])
            return not self._open[rank, DP]
        assert do.group is not None
        if do.what == "collective":
            beside = do.group.name.startswith("dp")
            return self._meet(rank, do, do.group.name, do.group.ranks, DP if beside else TP, beside)
        pair = (rank, do.peer) if do.what == "send" else (do.peer, rank)
        return self._meet(rank, do, pair, pair, PP, do.what == "send")

    def _compute(self, rank: int, length: float) -> None:
        """Three kernels, after an idle gap where the host is late."""
        length *= max(0.0, self.luck.normal(1, self.shape.jitter_frac))
        self.now[rank] += int(length * self.faults.late.get(rank, 0.0))
        for name, part in (
            ("nvjet_gemm", 0.5),
            ("flash_fwd_kernel", 0.3),
            ("void at::native::elementwise_kernel", 0.2),
        ):
            took = int(length * self.faults.slow.get(rank, 1.0) * part)
            self._note(rank, name, COMPUTE, self.now[rank], self.now[rank] + took, {})
            self.now[rank] += took + US

    def _meet(self, rank: int, do: Do, party: Party, members: tuple[int, ...], stream: int, beside: bool) -> bool:
        """Come to a collective or message. `beside`: the compute stream goes on without waiting for its end."""
        meeting = self._waits.get(rank)
        if meeting is None:
            meeting = (party, self._counts[rank, party])
            self._counts[rank, party] += 1
            self._open[rank, stream] += 1
            self._came[meeting][rank] = self.now[rank]
            if len(self._came[meeting]) == len(members):
                self._hold(do, meeting, members, stream)
            elif not beside:
                self._waits[rank] = meeting
                return False
            return True
        if meeting not in self._held:
            return False
        del self._waits[rank]
        return True

    def _hold(self, do: Do, meeting: Meeting, members: tuple[int, ...], stream: int) -> None:
        """All came: it takes place, and those who wait for it go on at its end."""
        assert do.group is not None
        party, number = meeting
        starts = {rank: max(at, self._free[rank, stream]) for rank, at in self._came.pop(meeting).items()}
        end = max(starts.values()) + self._transfer_ns(do, party, members)
        for rank, start in starts.items():
            kind = do.kind if stream != PP else ("send" if rank == members[0] else "recv")
            args = self._args(do, kind, number, members)
            self._note(rank, KERNELS[kind], stream, start, end + round(self.luck.normal(0, US)), args)
            self._free[rank, stream] = end
            self._open[rank, stream] -= 1
            if stream == TP or kind == "recv":
                self.now[rank] = max(self.now[rank], end)
        self._held.add(meeting)

    def _transfer_ns(self, do: Do, party: Party, members: tuple[int, ...]) -> int:
        """Bus bytes over the link of the group, some latency, and what is planted."""
        count = len(members)
        factors = {"all_reduce": 2 * (count - 1) / count, "": 1.0}
        rate = self.shape.tp_bytes_per_s if str(party).startswith("tp") else self.shape.dp_bytes_per_s
        port = 1.0 if str(party).startswith("tp") else max(self.faults.ports.get(rank, 1.0) for rank in members)
        planted = self.faults.links.get(party, 1.0) * port
        bus_bytes = do.size * factors.get(do.kind, (count - 1) / count)
        return int(
            (bus_bytes / rate * 1e9 * planted + 20 * US) * max(0.1, self.luck.normal(1, self.shape.link_jitter_frac))
        )

    def _args(self, do: Do, kind: str, number: int, members: tuple[int, ...]) -> dict[str, Any]:
        """What the profiler writes beside a collective."""
        group = do.group
        if not self.shape.stated or group is None:
            return {}
        whole, part = do.size // 2, do.size // 2 // len(members)
        args: dict[str, Any] = {
            "Collective name": {"all_gather": "_allgather_base", "reduce_scatter": "_reduce_scatter_base"}.get(
                kind, kind
            ),
            "In msg nelems": part if kind == "all_gather" else whole,
            "Out msg nelems": part if kind == "reduce_scatter" else whole,
            "Group size": len(group.ranks),
            "dtype": "BFloat16",
            "In split size": "[]",
            "Out split size": "[]",
            "Process Group Name": group.name,
            "Process Group Description": group.description,
            "Process Group Ranks": f"[{', '.join(map(str, group.ranks))}]",
        }
        if kind in ("send", "recv"):
            args |= {"Dst Rank": members[1]} if kind == "send" else {"Src Rank": members[0]}
        elif self.shape.numbered:
            args["Seq"] = number + 1
        return args

    def _note(self, rank: int, name: str, stream: int, start_ns: int, end_ns: int, args: dict[str, Any]) -> None:
        self.ran[rank].append(Ran(name, stream, start_ns, max(end_ns, start_ns + 1), args))


KERNELS: Final = {
    "all_reduce": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "reduce_scatter": "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "all_gather": "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "send": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
    "recv": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
}


def recorded(job: Job, rank: int) -> list[Ran]:
    """What the profiler of a rank recorded of what it ran."""
    first, last = job.faults.cut.get(rank, (0, 0))
    luck = np.random.default_rng(rank)
    totals: dict[str, int] = defaultdict(int)
    for ran in job.ran[rank]:
        totals[ran.args.get("Process Group Name", "")] += 1
    seen: dict[str, int] = defaultdict(int)
    kept = []
    for ran in job.ran[rank]:
        name = ran.args.get("Process Group Name", "")
        seen[name] += 1
        within = first < seen[name] <= totals[name] - last and luck.random() >= job.faults.thinned.get(rank, 0.0)
        if within or ran.stream == COMPUTE:
            kept.append(ran)
    return kept
