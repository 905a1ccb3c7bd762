"""Copies by direction, from every spelling profilers have for it."""

import pytest

from tests.unit.measures.measure_examples import Event, call, classified_cover, copy, kernel, memset, trace_of
from traces.measure_types import CopyTime
from traces.measures.copies import copies, direction_of, merged_copies, pageable_copies_told
from traces.summary import summarise


@pytest.mark.parametrize(
    ("text", "direction"),
    [
        ("Memcpy HtoD (Pinned -> Device)", "host_to_device"),
        ("Memcpy DtoH (Device -> Pageable)", "device_to_host"),
        ("Memcpy DtoD (Device -> Device)", "device_to_device"),
        ("Memcpy PtoP (Device -> Device)", "peer"),
        ("Memset (Device)", "memset"),
        ("CUDA_MEMCPY_KIND_HTOD", "host_to_device"),
        ("CUDA_MEMCPY_KIND_UVM_DTOH", "device_to_host"),
        ("CUDA_MEMCPY_KIND_ATOD", "device_to_device"),
        ("CUDA_MEMCPY_KIND_PTOP", "peer"),
        ("[CUDA memcpy Host-to-Device]", "host_to_device"),
        ("[CUDA memcpy Peer-to-Peer]", "peer"),
        ("MemcpyH2D", "host_to_device"),
        ("MemcpyD2H", "device_to_host"),
        ("MemcpyP2P", "peer"),
        ("CopyDeviceToDevice", "device_to_device"),
        ("hipMemcpyDtoHAsync", "device_to_host"),
        ("cuMemcpyHtoDAsync_v2", "host_to_device"),
        ("__amd_rocclr_fillBufferAligned", "memset"),
        ("__amd_rocclr_copyBuffer", "unknown"),
        ("CUDA_MEMCPY_KIND_HTOH", "unknown"),
        ("hipMemcpyWithStream", "unknown"),
        ("", "unknown"),
    ],
)
def test_spellings_of_directions(text: str, direction: str) -> None:
    assert direction_of(text) == direction


def lines(*events: Event) -> tuple[CopyTime, ...]:
    return copies(*classified_cover(*events))


def test_time_bytes_and_the_exposed_part_by_direction() -> None:
    found = lines(
        kernel("nvjet", 0, 20),
        copy("Memcpy HtoD (Pinned -> Device)", 15, 10, stream=9, bytes=1000),
        copy("Memcpy HtoD (Pageable -> Device)", 30, 10, bytes=500),
        copy("Memcpy DtoH (Device -> Pinned)", 35, 10, stream=9, bytes=8),
        memset(50, 2, bytes=64),
    )
    assert found == (
        CopyTime(direction="host_to_device", count=2, total_ns=20_000, exposed_ns=15_000, copied_bytes=1500),
        CopyTime(direction="device_to_host", count=1, total_ns=10_000, exposed_ns=10_000, copied_bytes=8),
        CopyTime(direction="memset", count=1, total_ns=2_000, exposed_ns=2_000, copied_bytes=64),
    )


def test_a_size_that_is_not_stated_leaves_the_sum_unknown() -> None:
    (line,) = lines(copy("Memcpy HtoD (Host -> Device)", 0, 5, bytes=10), copy("Memcpy HtoD (Host -> Device)", 9, 5))
    assert (line.count, line.copied_bytes) == (2, None)


def test_a_copy_the_runtime_makes_with_a_kernel_has_the_direction_of_its_call() -> None:
    found = lines(
        call("hipMemcpyDtoDAsync", 1, 0, 2),
        kernel("__amd_rocclr_copyBuffer", 5, 10, correlation=1),
        call("hipMemcpyWithStream", 2, 20, 2),
        kernel("__amd_rocclr_copyBuffer", 25, 4, correlation=2),
    )
    assert [(line.direction, line.total_ns) for line in found] == [("device_to_device", 10_000), ("unknown", 4_000)]


def test_no_copies() -> None:
    assert lines(kernel("nvjet", 0, 20)) == ()


def test_pageable_memory_is_called_out_where_it_matters() -> None:
    events = (kernel("nvjet", 0, 90), copy("Memcpy HtoD (Pageable -> Device)", 85, 10, stream=9))
    assert pageable_copies_told(*classified_cover(*events)) == (
        "copies of pageable host memory (1) take 10,000 ns, 10.5% of the window, 5,000 ns of it exposed: pinned memory "
        "would be faster and not block the host",
    )
    pinned = (kernel("nvjet", 0, 90), copy("Memcpy HtoD (Pinned -> Device)", 85, 10, stream=9))
    assert pageable_copies_told(*classified_cover(*pinned)) == ()
    little = (kernel("nvjet", 0, 9_000), copy("Memcpy HtoD (Pageable -> Device)", 85, 10, stream=9))
    assert pageable_copies_told(*classified_cover(*little)) == ()


def test_the_ranks_of_a_job_add_up() -> None:
    def rank(number: int, **stated: int) -> object:
        return trace_of(
            kernel("nvjet", 0, 9),
            copy("Memcpy HtoD (Pinned -> Device)", 10, 5, **stated),
            distributedInfo={"rank": number, "world_size": 2},
        )

    summary = summarise([rank(0, bytes=7), rank(1, bytes=5)])  # type: ignore[list-item]
    (line,) = summary.copies
    assert line == CopyTime(direction="host_to_device", count=2, total_ns=10_000, exposed_ns=10_000, copied_bytes=12)
    (unknown,) = merged_copies([summary.copies, (line.model_copy(update={"copied_bytes": None}),)])
    assert (unknown.count, unknown.copied_bytes) == (4, None)
