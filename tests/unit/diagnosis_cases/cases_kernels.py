"""Cases in which kernels fill the window: what limits them is arithmetic on their shapes, beside an H100's roofs."""

from collections.abc import Callable

from gpu_rank import Rank
from micro_case import Case, Label, kineto_traces

COMPUTE = Label("compute", ("compute_throughput",))
HBM = Label("memory", ("hbm_bandwidth",))
FLASH = "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t>>(Params)"
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 10, false>(int)"
FILL = "void at::native::vectorized_elementwise_kernel<8, at::native::FillFunctor<c10::BFloat16>>(int)"
ADAM = "void at::native::multi_tensor_apply_kernel<at::native::FusedAdamMathFunctor<float, 4>>(int)"
GATHER = "void at::native::indexSelectLargeIndex<c10::BFloat16, long, unsigned int, 2, 2, -2, true>(int)"


def one(name: str, arithmetic: str, label: Label, fill: Callable[[Rank], None], adversarial: str = "") -> Case:
    """A case of one rank."""

    def traces(factor: int, seed: int | None):  # type: ignore[no-untyped-def]
        rank = Rank()
        fill(rank)
        return kineto_traces([(rank.events, rank.outer)], factor, seed)

    return Case(name, arithmetic, label, traces, adversarial)


def many(times: int, *adds: Callable[[Rank], object]) -> Callable[[Rank], None]:
    """The adds in order, over and over."""

    def fill(rank: Rank) -> None:
        for _ in range(times):
            for add in adds:
                add(rank)

    return fill


def _two_streams(rank: Rank) -> None:
    for _ in range(20):
        start = rank.gemm(200, 4096, 4096, 4096)
        rank.add("nvjet_tst_192x192", start, 200, 8, "aten::mm", ([4096, 4096], [4096, 4096]), 40.0, True, {})


def _warm_up(rank: Rank) -> None:
    """A first step of 10 ms with 1 ms of work, then five of 1 ms that are busy for 950 us."""
    begin = rank.at
    rank.gemm(1000, 4096, 4096, 4096)
    rank.idle(9000)
    rank.step(0, begin, 10_000)
    for number in range(1, 6):
        begin = rank.at
        for _ in range(5):
            rank.gemm(190, 4096, 4096, 4096)
        rank.idle(50)
        rank.step(number, begin, 1000)


CASES = (
    one(
        "large GEMMs",
        "2 * 4096^3 = 137 GFLOP over 3 * 4096^2 * 2 = 101 MB is 1,365 FLOP/byte > 295; 30 kernels back to back: 100 %.",
        Label("compute", ("compute_throughput",), ambiguous=False),
        many(30, lambda r: r.gemm(200, 4096, 4096, 4096)),
    ),
    one(
        "GEMMs and some pointwise work",
        "Each round 700 us of GEMM (1,365 FLOP/byte) and 300 us of a product of vectors (1/6 FLOP/byte): 70 to 30.",
        Label("compute", ("compute_throughput",), ambiguous=False),
        many(20, lambda r: r.gemm(700, 8192, 4096, 8192), lambda r: r.pointwise(300, 150_000_000)),
    ),
    one(
        "long attention",
        "S = 8192, D = 128: 4 S^2 D FLOP a head over 4 S D values of 2 bytes = S / 2 = 4,096 FLOP/byte > 295; 77 % of "
        "the time, the rest GEMMs above the ridge too.",
        COMPUTE,
        many(
            20,
            lambda r: r.kernel(
                FLASH,
                2000,
                "aten::_scaled_dot_product_flash_attention",
                *[[1, 32, 8192, 128]] * 3,
                [],
                [],
                values=["", "", "", "0.", "False"],
            ),
            lambda r: r.gemm(600, 8192, 4096, 8192),
        ),
    ),
    one(
        "batched products",
        "64 products of 1024^3: 2 * 1024^3 FLOP over 3 * 1024^2 * 2 bytes = 341 FLOP/byte > 295, the whole window.",
        COMPUTE,
        many(30, lambda r: r.kernel("nvjet_tst_bmm", 250, "aten::bmm", [64, 1024, 1024], [64, 1024, 1024])),
    ),
    one(
        "two streams of GEMMs side by side",
        "Each pair covers the same 200 us: the union is the window, though summed times are twice it.",
        COMPUTE,
        _two_streams,
    ),
    one(
        "a warm-up step that says nothing of the job",
        "Steps 1 to 5 are 950 of 1,000 us of GEMMs. Step 0 is ten times longer (warm-up) and idle for 9 of its 10 ms: "
        "with it the window would be 61 % idle.",
        COMPUTE,
        _warm_up,
        "warm-up",
    ),
    one(
        "decode of batch 1",
        "m = 1: 2 * 8192^2 = 134 MFLOP over 2 * 8192^2 = 134 MB is 1 FLOP/byte < 295; GEMMs all the time.",
        Label("memory", ("hbm_bandwidth",), ambiguous=False),
        many(40, lambda r: r.gemm(50, 1, 8192, 8192)),
        "decode of batch 1",
    ),
    one(
        "decode of batch 16",
        "m = 16: 16 uses of each weight of 2 bytes, at most 16 FLOP/byte < 295.",
        HBM,
        many(40, lambda r: r.gemm(55, 16, 8192, 8192)),
        "decode of batch 1",
    ),
    one(
        "narrow products of a low-rank adapter",
        "8192 x 8192 by 8192 x 8: 2 * 8192 * 8192 * 8 FLOP over 2 * 8192^2 bytes = 8 FLOP/byte < 295. A GEMM, yet HBM.",
        HBM,
        many(30, lambda r: r.gemm(60, 8192, 8192, 8)),
    ),
    one(
        "pointwise work under a full duty cycle",
        "600 us of products of vectors (1/6 FLOP/byte) and 400 us of GEMMs (1,365): HBM leads by 20 points.",
        Label("memory", ("hbm_bandwidth",), ambiguous=False),
        many(20, lambda r: r.pointwise(600, 300_000_000), lambda r: r.gemm(400, 8192, 4096, 4096)),
    ),
    one(
        "softmax",
        "65 % in a softmax, which reads and writes each value: no operator of a row is used twice from HBM.",
        HBM,
        many(
            20,
            lambda r: r.kernel(SOFTMAX, 650, "aten::_softmax", [8, 32, 1024, 1024]),
            lambda r: r.gemm(350, 4096, 4096, 8192),
        ),
    ),
    one(
        "the optimizer's update",
        "700 us of Adam, which reads and writes every state once, against 300 us of GEMMs.",
        HBM,
        many(20, lambda r: r.kernel(ADAM, 700, "aten::_fused_adamw_"), lambda r: r.gemm(300, 4096, 4096, 8192)),
    ),
    one(
        "embedding rows",
        "75 % in a gather of rows, which computes nothing.",
        HBM,
        many(
            20,
            lambda r: r.kernel(GATHER, 750, "aten::index_select"),
            lambda r: r.gemm(250, 4096, 4096, 4096),
        ),
    ),
    one(
        "padding",
        "72 % in kernels that fill tensors with a constant: they write every byte once and compute nothing.",
        HBM,
        many(20, lambda r: r.kernel(FILL, 720, "aten::constant_pad_nd"), lambda r: r.gemm(280, 4096, 4096, 4096)),
        "padding-like pointwise",
    ),
    one(
        "padding in many small fills",
        "Twenty fills of 40 us to each GEMM of 300 us: 800 of 1,100 us write zeros.",
        HBM,
        many(
            4,
            *[lambda r: r.kernel(FILL, 40, "aten::fill_")] * 20,
            lambda r: r.gemm(300, 4096, 4096, 8192),
        ),
        "padding-like pointwise",
    ),
)
