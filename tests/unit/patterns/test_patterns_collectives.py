"""Sequences of collectives: cut to a part, undone, small ones in a row, repeated in a step, alone beside kernels."""

import pytest
from pattern_examples import (
    BF16,
    CHEAP,
    GEMM,
    Event,
    annotation,
    collective,
    issued,
    kernel,
    memcpy,
    op,
    pattern,
    summary,
)

KIB, MIB = 1 << 10, 1 << 20


def copy_of(elements: int, start: float, correlation: int) -> list[Event]:
    """A kernel of aten::copy_ between two bfloat16 tensors of so many elements, launched at the very beginning."""
    at = -100.0 + 2 * correlation
    inputs = {"Input Dims": [[elements], [elements], []], "Input type": [BF16, BF16, "Scalar"]}
    return [op("aten::copy_", at, 1.5, **inputs), *issued(kernel(CHEAP, start, 10), correlation, at + 0.1)]


def all_reduce(start: float = 0, size: int = 8 * MIB) -> Event:
    return collective("allreduce", start, 100, bytes_in=size, bytes_out=size)


def test_an_all_reduce_of_which_one_part_in_eight_is_copied_is_a_reduce_scatter() -> None:
    told = pattern("gather_then_slice", all_reduce(), *copy_of(MIB // 2, 100, 1), kernel(GEMM, 110, 10))
    assert told is not None
    assert (told.occurrences, told.total_ns, told.exposed_ns, told.certain) == (1, 110_000, 110_000, False)
    assert told.moved_bytes == 8 * MIB


def test_copies_that_together_take_the_whole_are_no_slice() -> None:
    """Buckets of gradients are copied back parameter by parameter: the first may be an eighth by chance."""
    copies = [event for at in range(8) for event in copy_of(MIB // 2, 100 + 10 * at, at + 1)]
    assert pattern("gather_then_slice", all_reduce(), *copies, kernel(GEMM, 190, 10)) is None


def test_a_copy_behind_a_kernel_that_takes_the_whole_is_no_slice() -> None:
    events = [all_reduce(), kernel(GEMM, 100, 10), *copy_of(MIB // 2, 110, 1)]
    assert pattern("gather_then_slice", *events) is None


def all_to_all(start: float, sent: int, received: int, **more: object) -> Event:
    return collective("all_to_allv", start, 50, bytes_in=sent, bytes_out=received, **more)


def test_an_all_to_all_that_the_next_undoes_is_a_round_trip() -> None:
    told = pattern(
        "reshard_round_trip",
        kernel(GEMM, 0, 10),
        all_to_all(10, 6 * MIB, 4 * MIB),
        kernel(CHEAP, 60, 10),
        all_to_all(70, 4 * MIB, 6 * MIB),
        kernel(GEMM, 120, 10),
    )
    assert told is not None
    assert (told.occurrences, told.exposed_ns, told.certain) == (1, 100_000, False)


@pytest.mark.parametrize(
    "between",
    [
        [kernel(GEMM, 60, 10), all_to_all(70, 4 * MIB, 6 * MIB)],  # experts in between
        [kernel(CHEAP, 60, 10), all_to_all(70, 6 * MIB, 4 * MIB)],  # the same direction again
        [kernel(CHEAP, 60, 10), all_to_all(70, 4 * MIB, 6 * MIB, **{"Process Group Name": "2"})],
    ],
)
def test_dispatch_and_combine_or_the_same_direction_twice_are_no_round_trip(between: list[Event]) -> None:
    events = [all_to_all(10, 6 * MIB, 4 * MIB), *between]
    assert pattern("reshard_round_trip", kernel(GEMM, 0, 10), *events, kernel(GEMM, 130, 10)) is None


def test_equal_all_to_alls_show_no_direction() -> None:
    """Those of queries, keys and values follow one another like this."""
    events = [all_to_all(60 * at, 4 * MIB, 4 * MIB) for at in range(3)]
    assert pattern("reshard_round_trip", *events, kernel(GEMM, 200, 10)) is None


def small(start: float, size: int = 64 * KIB, **more: object) -> Event:
    return collective("allreduce", start, 10, bytes_in=size, bytes_out=size, **more)


def test_four_small_collectives_in_a_row_could_be_one() -> None:
    told = pattern("tiny_collectives", *(small(12 * at) for at in range(4)), kernel(GEMM, 60, 40))
    assert told is not None
    assert (told.occurrences, told.exposed_ns, told.moved_bytes) == (1, 40_000, 256 * KIB)
    assert {one.name: one.value for one in told.figures}["mean_message"] == 64 * KIB


@pytest.mark.parametrize(
    "events",
    [
        [small(12 * at) for at in range(3)],
        [small(12 * at, size=512 * KIB) for at in range(4)],
        [small(12 * at, **{"Process Group Name": str(at % 2)}) for at in range(8)],
        [event for at in range(4) for event in (small(20 * at), kernel(CHEAP, 20 * at + 10, 5))],
        [event for at in range(4) for event in (small(20 * at), memcpy(20 * at + 10, 5))],
    ],
    ids=["three", "above the knee", "two groups", "a kernel between", "a copy between"],
)
def test_small_collectives_that_cannot_be_joined_are_no_run(events: list[Event]) -> None:
    assert pattern("tiny_collectives", *events, kernel(GEMM, 200, 40)) is None


def step(number: int, start: float, sizes: list[int], name: str = "_allgather_base") -> list[Event]:
    """A profiler step of 1,000 us with one collective a size, each behind a kernel."""
    events = [annotation(f"ProfilerStep#{number}", start, 1000)]
    for at, size in enumerate(sizes):
        begin = start + 10 + 20 * at
        events += issued(kernel(GEMM, begin, 10), 1000 * number + 2 * at, begin - 5)
        events += issued(
            collective(name, begin + 10, 10, bytes_in=size // 8, bytes_out=size), 1000 * number + 2 * at + 1, begin - 4
        )
    return events


def steps(sizes: list[int], name: str = "_allgather_base") -> list[Event]:
    """Three steps, of which the last ends with its last event: cut off, and not measured."""
    return [event for number in range(3) for event in step(number, 1000 * number, sizes, name)]


FORTH = [5 * MIB, 2 * MIB, 2 * MIB, 3 * MIB]


def test_weights_gathered_forth_and_back_in_each_step_are_gathered_anew() -> None:
    told = pattern("repeated_gathers", *steps([*FORTH, *FORTH[::-1]] * 2))
    assert told is not None
    assert (told.occurrences, told.certain) == (2 * 12, False)  # three blocks of four in each whole step
    assert {one.name: one.value for one in told.figures}["per_step"] == 12


@pytest.mark.parametrize("sizes", [FORTH, [2 * MIB] * 8, [*FORTH, *FORTH, 7 * MIB]])
def test_one_pass_equal_layers_or_a_broken_sequence_are_not_gathered_anew(sizes: list[int]) -> None:
    assert pattern("repeated_gathers", *steps(sizes)) is None


def test_gradients_reduced_for_each_micro_batch_are_told() -> None:
    told = pattern("repeated_reductions", *steps(FORTH * 4, "_reduce_scatter_base"))
    assert told is not None
    assert told.occurrences == 2 * 12
    assert pattern("repeated_reductions", *steps([*FORTH, *FORTH[::-1]], "_reduce_scatter_base")) is None


def test_collectives_of_a_tensor_parallel_group_are_no_weights() -> None:
    events = steps([*FORTH, *FORTH[::-1]] * 2)
    for event in events:
        if "Collective name" in event["args"]:
            event["args"]["Process Group Description"] = "mesh_tp"
    assert pattern("repeated_gathers", *events) is None


def test_without_marked_steps_repeated_gathers_are_unknown() -> None:
    events = [event for event in steps([*FORTH, *FORTH[::-1]]) if not event["name"].startswith("ProfilerStep")]
    assert ("repeated_gathers", "the trace marks no steps") in {
        (one.kind, one.why) for one in summary(*events).patterns_unknown
    }


def queued(reduction_us: float = 100, kernel_called: float = -40, after: str = GEMM, **more: object) -> list[Event]:
    """A reduction, and behind it on another stream a kernel that was issued at `kernel_called`."""
    reduction = collective("allreduce", 0, reduction_us, bytes_in=8 * MIB, bytes_out=8 * MIB, **more)
    return [
        *issued(kernel(GEMM, -50, 50), 1, -90),
        *issued(reduction, 2, -45),
        *issued(kernel(after, reduction_us + 2, 100), 3, kernel_called),
    ]


def test_a_gradient_reduction_that_a_queued_matrix_kernel_waits_for_runs_alone() -> None:
    told = pattern("serialised_pair", *queued())
    assert told is not None
    assert (told.occurrences, told.exposed_ns, told.certain) == (1, 100_000, False)
    assert "infer" in told.basis


@pytest.mark.parametrize(
    "events",
    [
        queued(kernel_called=101),  # the host was late
        queued(after=CHEAP),  # unscaling and clipping need the gradients
        queued(**{"Process Group Description": "mesh_tp"}),  # its result is what the next kernel multiplies
        [*queued(), *issued(kernel(GEMM, 10, 80), 4, -30)],  # overlaps already
    ],
    ids=["host late", "cheap kernel", "tensor parallel", "beside a kernel"],
)
def test_a_reduction_is_not_said_to_be_alone_without_a_reason(events: list[Event]) -> None:
    assert pattern("serialised_pair", *events) is None


def gather(start: float, called: float, kernel_start: float = 0) -> list[Event]:
    """A kernel of 100 us, and a gathering of weights behind it, followed by the kernel that needs them."""
    weights = collective("_allgather_base", start, 50, bytes_in=MIB, bytes_out=8 * MIB)
    return [
        *issued(kernel(GEMM, kernel_start, 100), 1, -20),
        *issued(weights, 2, called),
        *issued(kernel(GEMM, start + 50, 100), 3, -10),
    ]


def test_weights_asked_for_before_a_kernel_and_gathered_behind_it_could_be_prefetched() -> None:
    assert pattern("serialised_pair", *gather(100, called=-15)) is not None
    assert pattern("serialised_pair", *gather(100, called=60)) is None  # asked for while the kernel ran
    assert pattern("serialised_pair", *gather(50, called=-15)) is None  # overlaps already
    busy = collective("_allgather_base", -30, 110, bytes_in=MIB, bytes_out=8 * MIB)
    assert pattern("serialised_pair", *issued(busy, 9, -60), *gather(100, called=-15)) is None  # the link was busy
