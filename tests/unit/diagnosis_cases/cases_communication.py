"""Cases with collectives: only what no kernel hides counts, whichever stream it is on, and the axis names the cause."""

from collections.abc import Callable

from cases_kernels import many, one
from gpu_rank import COMPUTE_STREAM, Rank
from micro_case import Case, Label, kineto_traces

from projector.specs.bottleneck import Cause

GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SCATTER = "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SEND = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
TP, DP = "TENSOR_MODEL_PARALLEL_GROUP", "DATA_PARALLEL_GROUP"


def exposed(*causes: Cause, ambiguous: bool | None = None) -> Label:
    return Label("communication", causes, ambiguous)


def square(rank: Rank) -> float:
    """A GEMM far above the ridge."""
    return rank.gemm(300, 4096, 4096, 8192)


def _hidden(part_us: float) -> Callable[[Rank], None]:
    """Each GEMM of 1,000 us, and beside it a collective of part_us that ends before it does."""

    def fill(rank: Rank) -> None:
        for _ in range(20):
            start = rank.gemm(1000, 8192, 8192, 4096)
            rank.collective("allreduce", part_us, DP, start=start + 10)

    return fill


def _half_hidden(rank: Rank) -> None:
    """GEMM of 480 us; a collective of 800 us begins 280 us after it does: 200 us are hidden, 600 exposed."""
    for _ in range(20):
        start = rank.gemm(480, 8192, 8192, 2048)
        rank.collective("allreduce", 800, DP, start=start + 280)
        rank.at = start + 1080


def _margin(rank: Rank) -> None:
    """GEMM of 480 us, then 520 us of exposed all-reduce: a lead of 4 points."""
    for _ in range(20):
        rank.gemm(480, 8192, 8192, 2048)
        rank.collective("allreduce", 520, DP)


def _ranks(name: str, arithmetic: str, label: Label, computes_us: tuple[float, ...], adversarial: str = "") -> Case:
    """Ranks that compute so long each of ten rounds of a millisecond, then meet in an all-reduce that ends together."""

    def traces(factor: int, seed: int | None):  # type: ignore[no-untyped-def]
        files = []
        size = len(computes_us)
        group = {"pg_name": DP, "pg_desc": DP, "pg_size": size, "ranks": list(range(size))}
        for number, compute_us in enumerate(computes_us):
            rank = Rank(number, size, groups=[group])
            for round_number in range(10):
                rank.at = 1000.0 + 1000 * round_number
                rank.gemm(compute_us, int(4 * compute_us), 8192, 8192)  # 537 TFLOP/s, 365 FLOP/byte or more
                rank.collective("allreduce", 1000 - compute_us, DP, 1 << 26, sequence=round_number, size=size)
            files.append((rank.events, rank.outer))
        return kineto_traces(files, factor, seed)

    return Case(name, arithmetic, label, traces, adversarial)


CASES = (
    one(
        "tensor-parallel all-reduces",
        "Rounds of 300 us of GEMM and 600 us of all-reduce in the tensor-parallel group that the GEMMs wait for: 67 %.",
        exposed("exposed_tp", ambiguous=False),
        many(20, square, lambda r: r.collective("allreduce", 600, TP)),
    ),
    one(
        "gradient all-reduces",
        "The same in the data-parallel group.",
        exposed("exposed_dp", ambiguous=False),
        many(20, square, lambda r: r.collective("allreduce", 600, DP)),
    ),
    one(
        "gathers and scatters of sharded weights",
        "Rounds of 300 us of GEMM, 400 of all-gather, 300 of reduce-scatter in one sharding group: 70 % exposed.",
        exposed("exposed_dp"),
        many(
            20,
            square,
            lambda r: r.collective("all_gather_into_tensor_base", 400, "mesh_fsdp", name=GATHER),
            lambda r: r.collective("reduce_scatter_tensor_base", 300, "mesh_fsdp", name=SCATTER),
        ),
    ),
    one(
        "exchanges with experts",
        "Rounds of 300 us of GEMM and 2 x 300 us of all-to-all in the expert group: 67 % exposed.",
        exposed("exposed_ep"),
        many(20, square, *[lambda r: r.collective("all_to_allv", 300, "EXPERT_MODEL_PARALLEL_GROUP", name=SEND)] * 2),
    ),
    one(
        "keys passed around a ring",
        "Rounds of 300 us of GEMM and 500 us of sends in the context-parallel group: 62 % exposed.",
        exposed("exposed_cp"),
        many(20, square, lambda r: r.collective("send", 500, "CONTEXT_PARALLEL_GROUP", name=SEND)),
    ),
    one(
        "stage transfers",
        "Rounds of 300 us of GEMM and 500 us of receives in the pipeline group, which occupy the device: 62 % exposed.",
        exposed("exposed_pp"),
        many(20, square, lambda r: r.collective("recv", 500, "PIPELINE_MODEL_PARALLEL_GROUP", name=SEND)),
    ),
    one(
        "two axes, neither with half of it",
        "Of 650 us exposed 220 are tensor, 215 data and 215 expert parallel: 65 %, no axis has half.",
        exposed("exposed_communication"),
        many(
            20,
            square,
            lambda r: r.collective("allreduce", 220, TP),
            lambda r: r.collective("allreduce", 215, DP),
            lambda r: r.collective("all_to_allv", 215, "EXPERT_MODEL_PARALLEL_GROUP", name=SEND),
        ),
    ),
    one(
        "a library kernel without arguments",
        "No argument names group or size: 600 of 900 us are in kernels of the collective library all the same.",
        exposed("exposed_communication"),
        many(20, square, lambda r: r.kernel("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", 600)),
    ),
    one(
        "an inference engine's own all-reduce",
        "Rounds of 100 us of GEMM and 300 us of cross_device_reduce kernels: 75 % exposed, group not named.",
        exposed("exposed_communication", "exposed_tp"),
        many(
            20,
            lambda r: r.gemm(100, 2048, 8192, 2048),
            lambda r: r.kernel("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)", 300),
        ),
    ),
    one(
        "many small messages",
        "Rounds of 100 us of GEMM and 10 x 25 us of all-reduces of 16 KiB: 71 % exposed, 16 KiB < 256 KiB.",
        exposed("latency_bound_collectives"),
        many(
            20,
            lambda r: r.gemm(100, 2048, 4096, 4096),
            *[lambda r: r.collective("allreduce", 25, TP, 16_384)] * 10,
        ),
    ),
    one(
        "all-reduces on the compute stream",
        "They cannot overlap: rounds of 300 us of GEMM and 500 us of all-reduce, one after the other: 62 % exposed.",
        exposed("exposed_tp"),
        many(20, square, lambda r: r.collective("allreduce", 500, TP, stream=COMPUTE_STREAM)),
        "all-reduce on the compute stream",
    ),
    one(
        "nothing but collectives",
        "No kernel computes: all of the window is exposed communication.",
        exposed("exposed_dp"),
        many(30, lambda r: r.collective("allreduce", 500, DP)),
        "comm-only trace",
    ),
    one(
        "nothing but collectives, no group named",
        "The same with kernels of the library that carry no arguments.",
        exposed("exposed_communication"),
        many(30, lambda r: r.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 500)),
        "comm-only trace",
    ),
    one(
        "collectives wholly under compute",
        "The collective runs 900 us from 10 us after the start of each GEMM of 1,000 us: none of it is exposed.",
        Label("compute", ("compute_throughput",), ambiguous=False),
        _hidden(900),
        "hidden collectives",
    ),
    one(
        "collectives hidden but for a little",
        "They run 1,000 us from 10 us after each GEMM's start and the next GEMM starts as the first ends: exposed only "
        "after the last one, 10 us of 20 ms.",
        Label("compute", ("compute_throughput",), ambiguous=False),
        _hidden(1000),
        "hidden collectives",
    ),
    one(
        "collectives half hidden",
        "Of each 1,080 us: GEMM 480, collective 800, of which 200 beside the GEMM. Exposed 600 / 1,080 = 55.6 %, "
        "compute 44.4 %: 11 points.",
        exposed("exposed_dp", ambiguous=False),
        _half_hidden,
        "hidden collectives",
    ),
    one(
        "communication and compute within the margin",
        "480 us of GEMM against 520 us exposed: 4 points, below the 10 that make a verdict certain.",
        exposed("exposed_dp", ambiguous=True),
        _margin,
        "mixed within the margin",
    ),
    one(
        "HBM and arithmetic within the margin",
        "470 us of products of vectors against 530 us of GEMM above the ridge: 6 points.",
        Label("compute", ("compute_throughput",), ambiguous=True),
        many(20, lambda r: r.pointwise(470, 230_000_000), lambda r: r.gemm(530, 8192, 8192, 2048)),
        "mixed within the margin",
    ),
    _ranks(
        "three ranks wait for the fourth in all-reduces",
        "Each round of 1,000 us rank 0 computes 950, the others 200: exposed (50 + 3 x 800) / 4,000 = 61 % to 39 %. "
        "The all-reduce can only run in the last 50 us: of 2,450 us exposed 2,250 are waiting.",
        exposed("imbalance"),
        (950, 200, 200, 200),
        "NCCL kernels that wait for a slow peer",
    ),
    _ranks(
        "seven ranks wait for the eighth",
        "Rank 3 computes 900 of 1,000 us, the others 100: exposed (100 + 7 x 900) / 8,000 = 80 %, 7 x 800 of it waits.",
        exposed("imbalance"),
        (100, 100, 100, 900, 100, 100, 100, 100),
        "NCCL kernels that wait for a slow peer",
    ),
    _ranks(
        "ranks that are even",
        "Both compute 350 of 1,000 us and reduce for 650: nobody waits, the link is busy.",
        exposed("exposed_dp"),
        (350, 350),
    ),
    _ranks(
        "two ranks that disagree",
        "Rank 0 computes 900 of 1,000 us, rank 1 300: exposed (100 + 700) / 2,000 = 40 %, compute 60 %. Rank 0 alone "
        "is compute, rank 1 alone communication: the sum is compute, and not certain.",
        Label("compute", ("compute_throughput",), ambiguous=True),
        (900, 300),
        "two ranks that disagree",
    ),
)
