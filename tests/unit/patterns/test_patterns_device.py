"""Copies that change a layout, and idle gaps that the host makes: waits, and launches one by one."""

import pytest
from pattern_examples import BF16, CHEAP, GEMM, Event, collective, issued, kernel, op, pattern, wait

NCHW = "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(int)"


@pytest.mark.parametrize(
    "name",
    [
        NCHW,
        "batched_transpose_16x32_half",
        "void cuda::batched_transpose<512, 128, 1, 1>(unsigned char const*)",
        "input_transpose_fusion_1.kd",
        "loop_transpose_fusion",
        "triton_poi_fused_clone_transpose_view_3",
    ],
)
def test_a_layout_kernel_beside_a_matrix_kernel_is_a_relayout(name: str) -> None:
    told = pattern("relayout_copies", kernel(name, 0, 10), kernel(GEMM, 10, 50))
    assert told is not None
    assert (told.occurrences, told.exposed_ns, told.examples) == (1, 10_000, (name,))


@pytest.mark.parametrize(
    "name",
    [
        "void cuda::per_channel_cast_and_transpose<256, 128, true>(void)",
        "triton_poi_fused_add_transpose_3",
        "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw",
        "void at::native::max_pool_forward_nchw<float, float>(int)",
    ],
)
def test_a_kernel_that_does_more_than_move_is_none(name: str) -> None:
    assert pattern("relayout_copies", kernel(name, 0, 10), kernel(GEMM, 10, 50)) is None


def test_relayouts_and_fills_between_are_looked_past() -> None:
    events = [kernel(NCHW, 0, 10), kernel("SubTensorOpWithScalar1d", 10, 5), kernel(NCHW, 15, 10)]
    told = pattern("relayout_copies", *events, kernel("igemm_fwd_gtcx3_nhwc_bf16", 25, 50))
    assert told is not None
    assert told.occurrences == 2


def test_a_layout_kernel_among_cheap_ones_or_on_another_stream_is_none() -> None:
    beside = [kernel(CHEAP, 0, 10), kernel(NCHW, 10, 10), kernel(CHEAP, 20, 10), kernel(GEMM, 30, 10)]
    assert pattern("relayout_copies", *beside) is None
    assert pattern("relayout_copies", kernel(NCHW, 0, 10), kernel(GEMM, 10, 10, stream=9)) is None


def copied(around: str, types: tuple[str, str] = (BF16, BF16)) -> list[Event]:
    """A kernel of aten::copy_ called inside another operator, then a product."""
    inputs = {"Input Dims": [[64, 64], [64, 64]], "Input type": list(types)}
    return [
        op(around, -20, 8),
        op("aten::copy_", -19, 5, **inputs),
        *issued(kernel(CHEAP, 0, 10), 1, -18),
        kernel(GEMM, 10, 50),
    ]


def test_a_copy_inside_contiguous_is_a_relayout_and_a_cast_is_none() -> None:
    assert pattern("relayout_copies", *copied("aten::contiguous")) is not None
    assert pattern("relayout_copies", *copied("aten::_to_copy", ("float", BF16))) is None
    assert pattern("relayout_copies", *copied("aten::clone")) is None


def test_computation_beside_a_relayout_hides_it_and_a_collective_does_not() -> None:
    events = [kernel(NCHW, 0, 20), kernel(GEMM, 20, 50)]
    hidden = pattern("relayout_copies", *events, kernel(CHEAP, 0, 15, stream=9))
    beside = pattern("relayout_copies", *events, collective("allreduce", 0, 15, bytes_in=1 << 20, bytes_out=1 << 20))
    assert hidden is not None
    assert (hidden.total_ns, hidden.exposed_ns) == (20_000, 5_000)
    assert beside is not None
    assert beside.exposed_ns == 20_000


def waited(times: int, *, gap: float = 20, early: float = 50) -> list[Event]:
    """Kernels of 100 us, `gap` us apart, each issued after a wait that began `early` us before the end of the last."""
    events = []
    for at in range(times + 1):
        start = at * (100 + gap)
        called = start - gap / 2 if at else -5
        events += issued(kernel(GEMM, start, 100), at + 1, called)
        events.append(wait(start + 100 - early, early + 1))
    return events


def test_launches_that_wait_for_the_device_leave_gaps() -> None:
    told = pattern("host_syncs", *waited(5))
    assert told is not None
    assert (told.occurrences, told.total_ns, told.exposed_ns) == (5, 100_000, 100_000)
    assert told.examples == ("cudaStreamSynchronize",)


def test_one_long_pause_behind_a_wait_is_something_else() -> None:
    late = [*issued(kernel(GEMM, 5_000, 100), 99, 4_990)]
    told = pattern("host_syncs", *waited(5), *late)
    assert told is not None
    assert told.occurrences == 5


@pytest.mark.parametrize(
    "events",
    [waited(2), waited(5, early=-2)],
    ids=["twice", "the device had drained before the wait began"],
)
def test_few_waits_or_waits_that_cost_nothing_are_none(events: list[Event]) -> None:
    assert pattern("host_syncs", *events) is None


def test_other_calls_that_return_early_are_no_waits() -> None:
    events = [{**one, "name": "cudaEventQuery"} if one["name"] == "cudaStreamSynchronize" else one for one in waited(5)]
    assert pattern("host_syncs", *events) is None


def one_by_one(count: int, *, kernel_us: float = 5, every: float = 20, late: float = 4) -> list[Event]:
    """Kernels issued one by one, each `late` us before it begins."""
    return [
        event
        for at in range(count)
        for event in issued(kernel(CHEAP, at * every, kernel_us), at + 1, at * every - late)
    ]


def test_kernels_shorter_than_the_gaps_before_them_are_tiny() -> None:
    told = pattern("tiny_kernels", *one_by_one(21))
    assert told is not None
    assert (told.occurrences, told.exposed_ns) == (20, 20 * 15_000)


@pytest.mark.parametrize(
    "events",
    [
        one_by_one(10),
        one_by_one(21, kernel_us=12),
        one_by_one(21, late=19),
    ],
    ids=["nine gaps", "kernels longer than gaps", "issued before the device had drained"],
)
def test_few_long_or_queued_kernels_are_not(events: list[Event]) -> None:
    assert pattern("tiny_kernels", *events) is None


def test_kernels_of_one_graph_are_launched_at_once() -> None:
    kernels = [kernel(CHEAP, 20 * at, 5, correlation=1) for at in range(21)]
    launched = {"name": "cudaGraphLaunch", "args": {"correlation": 1}}
    assert pattern("tiny_kernels", *kernels, {**wait(-5, 500), **launched}) is None


def test_a_pause_breaks_a_run() -> None:
    early, late = one_by_one(8), one_by_one(8)
    for event in late:
        event["ts"] += 5_000
        event["args"] = {**event["args"], "correlation": event["args"]["correlation"] + 100}
    assert pattern("tiny_kernels", *early, *late) is None
