"""Sizes of collectives, what a link carries of them, and what the profiler says beside them."""

import numpy as np
import pytest

from tests.unit.traces.trace_examples import annotation, external, kernel, launch, op, trace_of
from traces.collectives import Communication, communications
from traces.messages import bus_bytes, element_bytes, fills_a_link, operand_bytes, pattern_of
from traces.naming import classify
from traces.rank import rank_parts
from traces.summary_types import CollectiveTime
from traces.trace import OpInputs, Trace

MIB = 1 << 20
ALL_REDUCE = {
    "Collective name": "allreduce",
    "In msg nelems": 4 * MIB,
    "Out msg nelems": 4 * MIB,
    "Group size": 4,
    "dtype": "BFloat16",
    "Process Group Name": "tp",
}

DECLARED = {"rank": 4, "pg_config": [{"pg_name": "tp", "pg_desc": "TP", "pg_size": 4, "ranks": [4, 5, 6, 7]}]}


def found_in(trace: Trace) -> tuple[Communication, ...]:
    return communications(trace, classify(trace))


def lines(trace: Trace) -> tuple[CollectiveTime, ...]:
    return rank_parts(trace).summary.collectives


@pytest.mark.parametrize(
    ("collective", "ranks", "factor"),
    [
        ("all_reduce", 2, 1.0),
        ("all_reduce", 8, 1.75),
        ("all_gather", 8, 0.875),
        ("reduce_scatter", 4, 0.75),
        ("all_to_all", 4, 0.75),
        ("broadcast", 8, 1.0),
        ("reduce", 8, 1.0),
        ("send", 2, 1.0),
        ("recv", 2, 1.0),
        ("collective_permute", 2, 1.0),
    ],
)
def test_bus_factors_of_nccl_tests(collective: str, ranks: int, factor: float) -> None:
    assert bus_bytes(collective, 1_000, ranks) == 1_000 * factor


def test_what_no_factor_is_known_for() -> None:
    assert bus_bytes("expert_dispatch", 1_000, 8) is None
    assert bus_bytes("all_reduce", 1_000, 1) is None
    assert pattern_of("barrier") is None


@pytest.mark.parametrize(
    ("spelling", "size"),
    [
        ("Float", 4), ("float", 4), ("Double", 8), ("Half", 2), ("c10::Half", 2), ("BFloat16", 2), ("c10::BFloat16", 2),
        ("Float8_e4m3fn", 1), ("Float8_e5m2", 1), ("Float8_e4m3fnuz", 1), ("Float8_e5m2fnuz", 1), ("Float8_e8m0fnu", 1),
        ("Float4_e2m1fn_x2", 1), ("Byte", 1), ("Char", 1), ("Short", 2), ("Int", 4), ("Long", 8), ("Bool", 1),
        ("UInt16", 2), ("UInt32", 4), ("UInt64", 8), ("QInt8", 1), ("QInt32", 4), ("ComplexFloat", 8),
        ("ComplexDouble", 16), ("long int", 8), ("unsigned char", 1), ("signed char", 1), ("short int", 2),
        ("c10::complex<float>", 8), ("ncclFloat16", 2), ("ncclBfloat16", 2), ("ncclFloat32", 4), ("ncclInt64", 8),
        ("ncclUint8", 1), ("ncclFloat8e4m3", 1), ("ncclHalf", 2), ("ncclInt", 4),
    ],
)  # fmt: skip
def test_element_sizes_as_profilers_spell_them(spelling: str, size: int) -> None:
    assert element_bytes(spelling) == size


@pytest.mark.parametrize("spelling", ["", "Undefined", "TensorList", "Scalar", "nccl"])
def test_types_without_a_size(spelling: str) -> None:
    assert element_bytes(spelling) is None


def test_a_message_fills_a_link_by_its_share_for_each_rank() -> None:
    sizes = np.array([2 * MIB, 4 * MIB, 64 * MIB])
    assert fills_a_link(sizes, 8).tolist() == [False, True, True]
    assert fills_a_link(sizes, 256).tolist() == [False, False, True]


def test_an_operator_shows_the_message_by_its_largest_tensor() -> None:
    both = OpInputs(((8, 64), (64,)), ("c10::BFloat16", "c10::BFloat16"))
    assert operand_bytes(both, "all_gather", 8) == 8 * 64 * 2
    alone = OpInputs(((64,),), ("c10::BFloat16",))
    assert operand_bytes(alone, "all_reduce", 8) == 128
    assert operand_bytes(alone, "all_gather", 8) == 8 * 128, "its own share is all that it takes"
    assert operand_bytes(alone, "all_gather", None) is None


def test_a_message_larger_than_any_memory_counts_as_not_stated() -> None:
    (line,) = lines(trace_of(kernel("nccl", 0, 100, **{**ALL_REDUCE, "In msg nelems": 2**62})))
    assert (line.message_bytes, line.bus_bytes_per_s) == (None, None)
    assert operand_bytes(OpInputs(((2**40, 2**20),), ("float",)), "all_reduce", 8) is None


def test_bus_bandwidth_of_one_line() -> None:
    (line,) = lines(trace_of(*(kernel("ncclDevKernel_Generic", at, 100, stream=9, **ALL_REDUCE) for at in (0, 500))))
    assert line.message_bytes == 2 * 8 * MIB
    assert line.bus_bytes_per_s == pytest.approx(8 * MIB * 1.5 / 100e-6)


def test_collectives_on_the_stream_that_computes() -> None:
    """A helper kernel on the communication stream makes no compute stream of it."""
    computing = [kernel("nvjet", at, 50, stream=7) for at in (0, 200)]
    on_it = kernel("cross_device_reduce_1stage", 100, 30, stream=7)
    beside = [kernel("ncclDevKernel_AllReduce_x", at, 40, stream=9) for at in (0, 200)]
    helper = kernel("void at::native::vectorized_elementwise_kernel", 300, 1, stream=9)
    (line,) = lines(trace_of(*computing, on_it, *beside, helper))
    assert (line.collective, line.total_ns, line.on_compute_stream_ns) == ("all_reduce", 110_000, 30_000)


def test_a_kernel_without_what_its_operator_states() -> None:
    """Older profilers copy sizes to the kernel, and leave the number and the ranks with the operator."""
    more = {"Seq": 12, "Process Group Ranks": "[0, 2, 4, 6]"}
    trace = trace_of(
        op("record_param_comms", 0, 10, **external(5), **{**ALL_REDUCE, **more}),
        launch(1, 2, **external(5)),
        kernel("ncclDevKernel_AllReduce_x", 20, 5, correlation=1, **external(5), **ALL_REDUCE),
    )
    (one,) = found_in(trace)
    assert one.args is not None
    assert (one.args.sequence, one.args.ranks, one.message_bytes) == (12, (0, 2, 4, 6), 8 * MIB)


def ranks_of(**args: object) -> tuple[int, ...]:
    """Ranks of the group of one kernel."""
    log = rank_parts(trace_of(kernel("nccl", 0, 5, **{**ALL_REDUCE, **args}), distributedInfo=DECLARED)).collective_log
    assert log is not None
    return log.groups[0].ranks


def test_ranks_of_a_group_whose_list_is_shortened() -> None:
    shortened = {"Process Group Ranks": "[0, 4, ..., 252]", "Global rank start": 0, "Global rank stride": 4}
    assert ranks_of(**{"Group size": 64, **shortened}) == tuple(range(0, 256, 4))


def test_ranks_a_file_declares_for_a_group() -> None:
    assert ranks_of() == (4, 5, 6, 7)
    assert ranks_of(**{"Process Group Name": "another"}) == ()


def test_a_list_of_ranks_longer_than_any_job_is_not_made() -> None:
    huge = {"Group size": 10**6, "Global rank start": 0, "Global rank stride": 1, "Process Group Name": "another"}
    assert ranks_of(**huge) == ()


@pytest.mark.parametrize(
    ("in_split", "out_split", "uneven"),
    [("[]", "[]", False), ("[4, 4]", "[4, 4]", False), ("[4, 8]", "[6, 6]", True), (None, None, None)],
)
def test_splits_of_an_all_to_all(in_split: str | None, out_split: str | None, uneven: bool | None) -> None:
    splits = {} if in_split is None else {"In split size": in_split, "Out split size": out_split}
    trace = trace_of(kernel("nccl", 0, 100, stream=9, **{**ALL_REDUCE, "Collective name": "all_to_all"}, **splits))
    (one,) = found_in(trace)
    assert one.args is not None
    assert one.args.uneven is uneven
    (line,) = lines(trace)
    assert line.message_bytes == 8 * MIB
    assert (line.bus_bytes_per_s is None) == (uneven is not False)
    told = ("1 of 1 all-to-alls do not state equal splits: their bus bandwidth is not known",)
    assert rank_parts(trace).warnings == (told if uneven is not False else ())


def test_sender_and_receiver_by_arguments() -> None:
    send = {**ALL_REDUCE, "Collective name": "send", "Dst Rank": 12}
    (one,) = found_in(trace_of(kernel("ncclDevKernel_SendRecv", 0, 5, **send)))
    assert (one.collective, one.source, one.target) == ("send", None, 12)


def test_sender_and_receiver_by_annotation() -> None:
    """The annotation counts within the group; the list of ranks says who that is."""
    args = {**ALL_REDUCE, "Collective name": "recv", "Process Group Ranks": "[3, 7, 11, 15]"}
    trace = trace_of(
        annotation("nccl:recv 2<-1", 0, 10),
        launch(1, 2),
        kernel("ncclDevKernel_SendRecv", 20, 5, correlation=1, **args),
    )
    (one,) = found_in(trace)
    assert (one.source, one.target) == (7, 11)
