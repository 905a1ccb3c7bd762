"""Cases in which the device waits, for the host, for queued work or for nobody knows what; and those of copies."""

from collections.abc import Callable

from cases_kernels import many, one
from gpu_rank import JUST_BEFORE_US, Rank
from micro_case import Case, Label, kineto_traces

LAUNCHES = Label("compute", ("launch_bound",))
HOST = Label("compute", ("host_idle",))
UNKNOWN = Label(None, ("unknown",))


def late(kernel_us: float, gap_us: float, times: int, size: int = 512) -> Callable[[Rank], None]:
    """Kernels that the host issues just before they run, after the device had drained."""

    def fill(rank: Rank) -> None:
        for _ in range(times):
            rank.gemm(kernel_us, size, size, size, ahead_us=JUST_BEFORE_US)
            rank.idle(gap_us)

    return fill


def _queued_and_waiting(rank: Rank) -> None:
    """Kernels of 200 us issued 700 us before they run, 600 us apart: the work was there and the device waited."""
    rank.at = 2000
    for _ in range(60):
        rank.gemm(200, 4096, 4096, 4096, ahead_us=700)
        rank.idle(600)


def _loading(rank: Rank) -> None:
    """Eight times 2 ms of GEMMs, then 18 ms in which the launching thread fetches the next batch."""
    for _ in range(8):
        for _ in range(10):
            rank.gemm(200, 4096, 4096, 4096, ahead_us=JUST_BEFORE_US)
        rank.on_host(
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", rank.at + 10, 17_900, "user_annotation"
        )
        rank.idle(18_000)


def _pausing(rank: Rank) -> None:
    """Eight times 2 ms of GEMMs, then 18 ms in which the host issues nothing and nothing says why."""
    for _ in range(8):
        for _ in range(10):
            rank.gemm(200, 4096, 4096, 4096, ahead_us=JUST_BEFORE_US)
        rank.idle(18_000)


def _not_launched(rank: Rank) -> None:
    """Kernels of 200 us, 800 us apart, of which no launch was recorded."""
    for _ in range(60):
        rank.gemm(200, 4096, 4096, 4096, launched=False)
        rank.idle(800)


def _empty_steps(rank: Rank) -> None:
    """Six steps of 1 ms; the odd ones hold no kernel, and the host issues the next one's first only after them."""
    for number in range(6):
        begin = rank.at
        if number % 2 == 0:
            for _ in range(4):
                rank.gemm(100, 4096, 4096, 2048, ahead_us=JUST_BEFORE_US)
            rank.idle(600)
        else:
            rank.idle(1000)
        rank.step(number, begin, 1000)
    rank.gemm(10, 512, 512, 512, ahead_us=JUST_BEFORE_US)


def _host_only(rank: Rank) -> None:
    for number in range(50):
        rank.on_host("aten::mm", 1000 + 100 * number, 80)


def _disagree(
    name: str, arithmetic: str, label: Label, first: Callable[[Rank], None], other: Callable[[Rank], None]
) -> Case:
    def traces(factor: int, seed: int | None):  # type: ignore[no-untyped-def]
        ranks = [Rank(0, 2), Rank(1, 2)]
        first(ranks[0])
        other(ranks[1])
        return kineto_traces([(rank.events, rank.outer) for rank in ranks], factor, seed)

    return Case(name, arithmetic, label, traces, "two ranks that disagree")


def _with_collectives(rank: Rank) -> None:
    """Each 100 us: 10 of GEMM, 60 of host, 30 of exposed all-reduce."""
    for _ in range(80):
        rank.gemm(10, 512, 512, 512, ahead_us=JUST_BEFORE_US)
        rank.collective("allreduce", 30, "DATA_PARALLEL_GROUP", 1 << 22)
        rank.idle(60)


CASES = (
    one(
        "the host launches one kernel after another",
        "Kernels of 10 us every 50 us, each issued 2 us before it runs, 38 us after the device had drained: 80 % idle.",
        Label("compute", ("launch_bound",), ambiguous=False),
        late(10, 40, 100),
        "launch-bound",
    ),
    one(
        "the host is late by as much as kernels last",
        "Kernels of 30 us every 90 us: 67 % idle, all of it before late launches.",
        LAUNCHES,
        late(30, 60, 100),
        "launch-bound",
    ),
    one(
        "late launches beside exposed collectives",
        "Of each 100 us the device is idle 60 (late launches), talks 30 and computes 10: waiting leads by 30 points.",
        LAUNCHES,
        _with_collectives,
        "launch-bound",
    ),
    one(
        "tiny products",
        "64^3 products of 2 us every 20 us: 90 % idle, the host issues each after the last is done.",
        LAUNCHES,
        late(2, 18, 200, size=64),
        "tiny GEMMs",
    ),
    one(
        "tiny products, a little larger",
        "128^3 products of 3 us every 13 us: 77 % idle.",
        LAUNCHES,
        late(3, 10, 200, size=128),
        "tiny GEMMs",
    ),
    one(
        "short kernels queued ahead",
        "Kernels of 3 us, all issued long before, 3.5 us apart: 54 % idle in gaps shorter than any wait (< 30 us).",
        LAUNCHES,
        many(200, lambda r: r.gemm(3, 128, 128, 128, ahead_us=900), lambda r: r.idle(3.5)),
        "launch-bound",
    ),
    one(
        "the host loads input",
        "2 ms of kernels and 18 ms in the data loader: 90 % idle, of which 99 % while the launching thread loads.",
        HOST,
        _loading,
        "host idle with input loading",
    ),
    one(
        "the host pauses",
        "2 ms of kernels and 18 ms without any launch: 90 % idle, gaps of 18 ms are no launch overhead.",
        HOST,
        _pausing,
    ),
    one(
        "queued work that waits",
        "Kernels of 200 us issued 700 us ahead, 600 us apart: 75 % idle with work queued, and no stages: no reason.",
        UNKNOWN,
        _queued_and_waiting,
    ),
    one(
        "idle time without launches",
        "No launch was recorded: 80 % idle, and nothing tells the host's part.",
        UNKNOWN,
        _not_launched,
    ),
    one(
        "steps without kernels",
        "Three of six steps run nothing, the others 400 of 1,000 us: 80 % idle; the host issues nothing for over a "
        "millisecond three times (0.6 + 1 ms): host, not launches.",
        HOST,
        _empty_steps,
        "empty steps",
    ),
    one(
        "no event of the device",
        "Fifty host operators and no kernel: nothing is known of the device.",
        UNKNOWN,
        _host_only,
        "empty steps",
    ),
    one(
        "arithmetic and waiting take as much",
        "GEMMs of 200 us (above the ridge) every 390 us, each issued 2 us before it runs: 51 % compute, 49 % idle. "
        "Both are in class compute, and they need different remedies.",
        Label("compute", ("compute_throughput",), ambiguous=True),
        late(200, 190, 60, size=4096),
        "mixed within the margin",
    ),
    _disagree(
        "one rank works, one is idle without a reason",
        "Rank 0 computes all of its window, rank 1 a fifth: 60 % compute, 40 % idle in sum, and no rank is like that.",
        Label("compute", ("compute_throughput",), ambiguous=True),
        many(40, lambda r: r.gemm(200, 4096, 4096, 4096)),
        lambda r: _late_of(r, 200, 800, 8),
    ),
    one(
        "copies from the host",
        "700 us of pinned copies that nothing hides to 300 us of GEMM.",
        Label("memory", ("copies",), ambiguous=False),
        many(20, lambda r: r.copy(700), lambda r: r.gemm(300, 4096, 4096, 8192)),
        "memcpy-dominated",
    ),
    one(
        "copies on the device",
        "600 us of copies inside HBM to 400 us of GEMM.",
        Label("memory", ("copies",)),
        many(20, lambda r: r.copy(600, "Memcpy DtoD (Device -> Device)"), lambda r: r.gemm(400, 8192, 4096, 4096)),
        "memcpy-dominated",
    ),
    one(
        "memory set to zero",
        "650 us of memset to 350 us of GEMM.",
        Label("memory", ("copies",)),
        many(20, lambda r: r.copy(650, "Memset (Device)", "gpu_memset"), lambda r: r.gemm(350, 4096, 4096, 8192)),
        "memcpy-dominated",
    ),
)


def _late_of(rank: Rank, kernel_us: float, gap_us: float, times: int) -> None:
    for _ in range(times):
        rank.gemm(kernel_us, 4096, 4096, 4096, launched=False)
        rank.idle(gap_us)
    rank.gemm(kernel_us, 4096, 4096, 4096, launched=False)
