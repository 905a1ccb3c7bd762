"""Writes the Kineto events of one rank: kernels with the operators and launches they come from.

An H100 (989 TFLOP/s of dense bf16, 3.35 TB/s of HBM, so a ridge of 295 FLOP/byte) unless another chip is named.
Kernels queue up behind one another; the host issues each well before it runs, unless a gap says otherwise.
"""

from dataclasses import dataclass, field
from typing import Any

from micro_case import Event

H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85_017_755_648}
BF16 = "c10::BFloat16"
COMPUTE_STREAM, NCCL_STREAM = 7, 20
AHEAD_US = 40.0  # how long before its start a queued kernel is issued
JUST_BEFORE_US = 2.0


@dataclass
class Rank:
    """at: when the device's compute stream is next free. Every method returns the start of what it adds."""

    number: int = 0
    world: int = 1
    chip: dict[str, Any] | None = field(default_factory=lambda: dict(H100))
    groups: list[dict[str, Any]] = field(default_factory=list)
    at: float = 1000.0
    events: list[Event] = field(default_factory=list)
    calls: int = 0

    @property
    def outer(self) -> dict[str, Any]:
        """What a profiler writes outside of the events."""
        info = {"rank": self.number, "world_size": self.world, "backend": "nccl", "pg_config": self.groups}
        found: dict[str, Any] = {"distributedInfo": info} if self.world > 1 else {}
        return found | ({"deviceProperties": [self.chip]} if self.chip is not None else {})

    def idle(self, time_us: float) -> None:
        """Time in which the compute stream runs nothing."""
        self.at += time_us

    def kernel(
        self,
        name: str,
        time_us: float,
        operator: str = "",
        *shapes: list[int],
        ahead_us: float = AHEAD_US,
        launched: bool = True,
        values: list[str] | None = None,
        **args: Any,
    ) -> float:
        """A kernel on the compute stream, next in line. ahead_us: how long before its start the host issued it.

        values: the operator's inputs that are no tensors, as the profiler writes them, "" for those that are.
        """
        start, self.at = self.at, self.at + time_us
        self.add(name, start, time_us, COMPUTE_STREAM, operator, shapes, ahead_us, launched, args, values=values)
        return start

    def gemm(
        self, time_us: float, m: int, k: int, n: int, name: str = "nvjet_tst_128x256_64x4_NNT", **how: Any
    ) -> float:
        """aten::mm of [m, k] and [k, n] in bf16: 2 m k n FLOP, 2 (m k + k n + m n) bytes."""
        return self.kernel(name, time_us, "aten::mm", [m, k], [k, n], **how)

    def pointwise(
        self, time_us: float, elements: int, name: str = "", operator: str = "aten::mul", **how: Any
    ) -> float:
        """aten::mul of two tensors: 6 bytes an element, one FLOP."""
        name = (
            name or "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<c10::BFloat16>>(int)"
        )
        return self.kernel(name, time_us, operator, [elements], [elements], **how)

    def collective(
        self,
        kind: str,
        time_us: float,
        group: str,
        size_bytes: int = 1 << 28,
        *,
        start: float | None = None,
        stream: int = NCCL_STREAM,
        name: str = "",
        sequence: int | None = None,
        size: int = 8,
    ) -> float:
        """A collective that the compute stream waits for (start None), or one beside whatever runs at `start`."""
        begin = self.at if start is None else start
        if start is None:
            self.at += time_us
        elements = size_bytes // 2
        args: dict[str, Any] = {
            "Collective name": kind,
            "Process Group Name": group,
            "Process Group Description": group,
            "Group size": size,
            "In msg nelems": elements,
            "Out msg nelems": elements,
            "dtype": "BFloat16",
        }
        if sequence is not None:
            args |= {"Process Group Ranks": str(list(range(size))), "Seq": sequence}
        name = name or "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        self.add(name, begin, time_us, stream, "", (), AHEAD_US, True, args)
        return begin

    def copy(
        self, time_us: float, words: str = "Memcpy HtoD (Pinned -> Device)", category: str = "gpu_memcpy"
    ) -> float:
        """A copy (or memset) on the compute stream."""
        start, self.at = self.at, self.at + time_us
        self.add(words, start, time_us, COMPUTE_STREAM, "", (), AHEAD_US, True, {}, category)
        return start

    def on_host(self, name: str, start: float, time_us: float, category: str = "cpu_op", **args: Any) -> None:
        """An operator or annotation of the launching thread."""
        self.events.append(
            {"ph": "X", "cat": category, "name": name, "pid": 100, "tid": 1, "ts": start, "dur": time_us, "args": args}
        )

    def step(self, number: int, start: float, time_us: float) -> None:
        """A profiler step."""
        self.on_host(f"ProfilerStep#{number}", start, time_us, "user_annotation")

    def training(self) -> None:
        """Marks of a training step on the host: backward operators and an optimizer step, before everything else."""
        for number in range(8):
            self.on_host("autograd::engine::evaluate_function: MmBackward0", 1.0 + number, 0.5)
        self.on_host("Optimizer.step#AdamW.step", 20.0, 0.5, "user_annotation")

    def add(
        self,
        name: str,
        start: float,
        time_us: float,
        stream: int,
        operator: str,
        shapes: tuple[list[int], ...],
        ahead_us: float,
        launched: bool,
        args: dict[str, Any],
        category: str = "kernel",
        values: list[str] | None = None,
    ) -> None:
        """One device event with its launch and operator."""
        self.calls += 1
        own = {"device": 0, "stream": stream, **args}
        if launched:
            own |= {"correlation": self.calls, "External id": self.calls}
            issued = start - ahead_us
            call = {"correlation": self.calls, "External id": self.calls}
            self.on_host("cudaLaunchKernel", issued, 0.4, "cuda_runtime", **call)
            if operator:
                dims = {"Input Dims": [*shapes], "Input type": [BF16] * len(shapes)} if shapes else {}
                dims |= {"Concrete Inputs": values} if values is not None else {}
                self.on_host(operator, issued - 0.2, 0.8, **{"External id": self.calls}, **dims)
        self.events.append(
            {
                "ph": "X",
                "cat": category,
                "name": name,
                "pid": 0,
                "tid": stream,
                "ts": start,
                "dur": time_us,
                "args": own,
            }
        )
