"""NCCL's ranges and their payloads: message sizes, communicators and ranks of the kernels they launched."""

import struct
from pathlib import Path

import pytest
from nsys_builder import (
    MADE,
    REDUCED,
    Export,
    Value,
    describe_nccl,
    gathered,
    made,
    payload,
    reduced,
    sent,
)

from traces.collectives import communications
from traces.naming import classify
from traces.nsys.payload import Field, Layout, decoded
from traces.trace import Category, CollectiveArgs, GroupConfig, Trace

WORLD = 0xABCDEF0123456789


def nccl(export: Export, call: str, start: int, end: int, data: bytes | None = None, **more: Value) -> None:
    export.span(f"nccl{call}", start, end, domain=1, binaryData=data, **more)


def profile() -> Export:
    export = Export()
    describe_nccl(export)
    export.domain("NCCL", 1)
    return export


def told(trace: Trace) -> list[CollectiveArgs]:
    return [trace.collectives[row] for row in trace.rows(Category.KERNEL).tolist() if row in trace.collectives]


def test_a_call_outside_a_group_launches_in_its_own_range(tmp_path: Path) -> None:
    export = profile()
    nccl(export, "CommInitRank", 0, 5, made(WORLD, 8, 3))
    nccl(export, "AllReduce", 10, 30, reduced(WORLD, 1 << 20))
    export.launched("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 100, 200, 1, at=20)
    export.launched("sgemm", 200, 300, 2, at=40)
    trace = export.trace(tmp_path)
    assert told(trace) == [CollectiveArgs("AllReduce", "0xabcdef0123456789", "", 8, (), "byte", 1 << 20, 1 << 20)]
    assert trace.metadata.groups == (GroupConfig("0xabcdef0123456789", "", 8, ()),)
    (line,) = communications(trace, classify(trace))
    assert (line.collective, line.group, line.group_size, line.message_bytes) == (
        "all_reduce",
        "0xabcdef0123456789",
        8,
        1 << 20,
    )


def test_sizes_of_parts_become_sizes_of_buffers(tmp_path: Path) -> None:
    export = profile()
    nccl(export, "CommInitRank", 0, 5, made(WORLD, 4, 0))
    for index, call in enumerate(("AllGather", "ReduceScatter", "AlltoAll", "Gather", "Scatter")):
        nccl(export, call, 10 + 20 * index, 20 + 20 * index, gathered(WORLD, 100))
        export.launched("ncclDevKernel_Generic", 1000 + 10 * index, 1005 + 10 * index, index + 1, at=12 + 20 * index)
    assert [(one.in_elements, one.out_elements) for one in told(export.trace(tmp_path))] == [
        (100, 400),
        (400, 100),
        (400, 400),
        (100, 400),
        (400, 100),
    ]


def test_without_the_number_of_ranks_the_size_of_a_buffer_is_unknown(tmp_path: Path) -> None:
    export = profile()
    nccl(export, "AllGather", 10, 20, gathered(WORLD, 100))
    export.launched("ncclDevKernel_AllGather_RING_LL", 100, 200, 1, at=12)
    trace = export.trace(tmp_path)
    (args,) = told(trace)
    # what one rank sends is stated; as the larger side is not, the message is not either
    assert (args.name, args.group_size, args.in_elements, args.out_elements) == ("AllGather", None, None, None)
    assert any("the message size of 1 NCCL kernels is not known" in one for one in trace.warnings)


@pytest.mark.parametrize(("ranks", "size"), [(8, 2**64 - 1), (8, 2**46), (2**20, 2**29)])
def test_an_impossible_size_is_no_size(tmp_path: Path, ranks: int, size: int) -> None:
    export = profile()
    nccl(export, "CommInitRank", 0, 5, made(WORLD, ranks, 0))
    nccl(export, "AllGather", 10, 20, gathered(WORLD, size))
    export.launched("ncclDevKernel_AllGather_RING_LL", 100, 200, 1, at=12)
    (args,) = told(export.trace(tmp_path))
    assert (args.group_size, args.in_elements, args.out_elements) == (ranks, None, None)


def test_a_negative_size_is_no_size(tmp_path: Path) -> None:
    export = profile()
    for row in export.rows["NVTX_PAYLOAD_SCHEMA_ENTRIES"]:
        if row["name"] == "Message size [bytes]":
            row["type"] = 17
    nccl(export, "AllReduce", 10, 20, reduced(WORLD, 2**64 - 5))
    export.launched("ncclDevKernel_AllReduce_RING_LL", 100, 200, 1, at=12)
    assert [one.in_elements for one in told(export.trace(tmp_path))] == [None]


def test_calls_of_a_group_launch_when_the_outermost_group_ends(tmp_path: Path) -> None:
    export = profile()
    nccl(export, "GroupStart", 0, 1)
    nccl(export, "GroupStart", 2, 3)
    nccl(export, "Send", 4, 5, sent(WORLD, 300))
    nccl(export, "Recv", 6, 7, sent(WORLD, 200))
    nccl(export, "GroupEnd", 8, 9)
    nccl(export, "Send", 10, 11, sent(WORLD, 300))
    nccl(export, "GroupEnd", 20, 40)
    export.launched("ncclDevKernel_SendRecv", 100, 200, 1, at=30)
    trace = export.trace(tmp_path)
    assert told(trace) == [CollectiveArgs("", "0xabcdef0123456789", "", None, (), "byte", 600, 200)]
    (line,) = communications(trace, classify(trace))
    assert (line.collective, line.message_bytes) == ("send_recv", 600)


def test_the_operator_around_a_group_says_what_it_is_for(tmp_path: Path) -> None:
    export = profile()
    export.span("nccl:all_to_all, op_id = 3", 0, 60)
    nccl(export, "GroupStart", 2, 3)
    nccl(export, "Send", 4, 5, sent(WORLD, 300))
    nccl(export, "Recv", 6, 7, sent(WORLD, 300))
    nccl(export, "GroupEnd", 20, 40)
    export.launched("ncclDevKernel_SendRecv", 100, 200, 1, at=30)
    trace = export.trace(tmp_path)
    (line,) = communications(trace, classify(trace))
    assert (line.collective, line.message_bytes) == ("all_to_all", 300)


def test_kernels_that_share_a_group_share_no_size(tmp_path: Path) -> None:
    export = profile()
    nccl(export, "GroupStart", 0, 1)
    nccl(export, "AllReduce", 4, 5, reduced(WORLD, 300))
    nccl(export, "AllReduce", 6, 7, reduced(WORLD, 300))
    nccl(export, "GroupEnd", 20, 40)
    for index in range(2):
        export.launched("ncclDevKernel_AllReduce", 100 + index * 50, 140 + index * 50, index + 1, at=25 + index)
    assert [(one.name, one.in_elements) for one in told(export.trace(tmp_path))] == [("AllReduce", None)] * 2


def test_calls_of_several_communicators_in_one_group_tell_nothing(tmp_path: Path) -> None:
    export = profile()
    nccl(export, "GroupStart", 0, 1)
    nccl(export, "AllReduce", 4, 5, reduced(1, 300))
    nccl(export, "AllReduce", 6, 7, reduced(2, 300))
    nccl(export, "GroupEnd", 20, 40)
    export.launched("ncclDevKernel_AllReduce", 100, 140, 1, at=25)
    assert told(export.trace(tmp_path)) == []


def test_a_group_that_began_before_the_profile_tells_nothing(tmp_path: Path) -> None:
    export = profile()
    nccl(export, "GroupEnd", 20, 40)
    export.launched("ncclDevKernel_SendRecv", 100, 140, 1, at=25)
    nccl(export, "AllReduce", 50, 70, reduced(WORLD, 64))
    export.launched("ncclDevKernel_AllReduce", 200, 240, 2, at=60)
    assert [one.name for one in told(export.trace(tmp_path))] == ["AllReduce"]


def test_threads_have_groups_of_their_own(tmp_path: Path) -> None:
    export = profile()
    nccl(export, "GroupStart", 0, 1, tid=1)
    nccl(export, "AllReduce", 2, 9, reduced(WORLD, 64), tid=2)
    export.launched("ncclDevKernel_AllReduce", 200, 240, 2, at=5, tid=2)
    assert [one.in_elements for one in told(export.trace(tmp_path))] == [64]


def test_ranges_without_payloads_are_told_how_to_get_them(tmp_path: Path) -> None:
    export = profile()
    nccl(export, "AllReduce", 10, 30)
    export.launched("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 100, 200, 1, at=20)
    trace = export.trace(tmp_path)
    assert trace.collectives == {}
    assert any("--include-blobs=true" in one for one in trace.warnings)


@pytest.mark.parametrize(
    "blob",
    [
        b"\0" * 31,
        payload(REDUCED, b"\0" * 8),
        payload(MADE, struct.pack("<QQii", 1, 2, 3, 4), domain=9),
        payload(999, b"\0" * 24),
        reduced(1, 2)[:-1],
    ],
)
def test_payloads_that_do_not_agree_with_their_layout_are_counted_and_not_guessed(tmp_path: Path, blob: bytes) -> None:
    export = profile()
    nccl(export, "AllReduce", 10, 30, blob)
    export.launched("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 100, 200, 1, at=20)
    trace = export.trace(tmp_path)
    assert trace.collectives == {}
    assert "1 of 1 payloads of NCCL's ranges could not be read" in trace.warnings


def test_a_layout_described_in_two_ways_is_not_used(tmp_path: Path) -> None:
    export = profile()
    describe_nccl(export)
    nccl(export, "AllReduce", 10, 30, reduced(WORLD, 64))
    export.launched("ncclDevKernel_AllReduce", 100, 200, 1, at=20)
    assert len(told(export.trace(tmp_path))) == 1
    export.add("NVTX_PAYLOAD_SCHEMA_ENTRIES", domainId=1, schemaId=REDUCED, idx=1, type=18, name="Size", offset=8)
    folder = tmp_path / "again"
    folder.mkdir()
    trace = export.trace(folder)
    assert told(trace) == []
    assert any("1 NVTX payload layouts are described in two ways" in one for one in trace.warnings)


def test_fields_beyond_the_payload_are_left_out() -> None:
    layout = Layout(None, (Field("a", "<Q", 0), Field("b", "<i", 8), Field("c", "<Q", 12)))
    blob = struct.pack("<QQQQQi", 1, 2, 12, 0, 77, -3)
    assert decoded(blob, {(1, 2): layout}) == {"a": 77, "b": -3}


def test_payloads_are_bytes_even_where_they_are_no_text(tmp_path: Path) -> None:
    export = profile()
    nccl(export, "AllReduce", 10, 30, reduced(0xFFFEFDFC80818283, 0x80FF))
    export.launched("ncclDevKernel_AllReduce", 100, 200, 1, at=20)
    (args,) = told(export.trace(tmp_path))
    assert (args.group, args.in_elements) == ("0xfffefdfc80818283", 0x80FF)
