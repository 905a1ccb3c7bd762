"""Files that lack a rank, repeat one, or differ in their groups; and ranks that are late."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.traces.trace_examples import Event, document, kernel, memcpy, trace_of
from traces.summary import read_summary, summarise

ALL_REDUCE = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 64, "Out msg nelems": 64}


def written(path: Path, *events: Event, **outer: Any) -> Path:
    path.write_text(json.dumps(document(*events, **outer)))
    return path


def test_a_file_that_states_no_rank_has_none_and_is_not_called_rank_0(tmp_path: Path) -> None:
    one = written(tmp_path / "a.json", kernel("nvjet", 0, 10))
    two = written(tmp_path / "b.json", kernel("nvjet", 0, 20))
    summary = read_summary([one, two])
    assert [rank.rank for rank in summary.ranks] == [None, None]
    assert (summary.window_ns, summary.job.unnumbered, summary.job.present) == (30_000, 2, ())


def test_a_rank_of_null_or_nonsense_is_no_rank(tmp_path: Path) -> None:
    for number, info in enumerate(({"rank": None}, {"rank": "first"}, {"rank": -1}, {}, [], None)):
        path = written(tmp_path / f"job{number}x.json", kernel("nvjet", 0, 10), distributedInfo=info)
        (rank,) = read_summary([path]).ranks
        assert rank.rank is None


def test_nothing_depends_on_calls_that_were_never_made() -> None:
    """No cudaMemsetAsync, no launch, no copy of some kind: what is absent is zero, nothing is looked up and missing."""
    summary = summarise([trace_of(kernel("nvjet", 0, 10), memcpy(10, 5))])
    assert (summary.compute_ns, summary.copy_ns, summary.idle_ns) == (10_000, 5_000, 0)
    assert [copy.direction for copy in summary.copies] == ["device_to_device"]
    assert summary.launch_bound_frac is None


@pytest.mark.parametrize(
    "name",
    [
        "ncclKernel_AllReduce_RING_LL_Sum_half(ncclWorkElem)",
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclSymDevKernel_AllReduce_RSxLD_AGxST_sum_bf16(ncclSymDevArgs)",
        "mscclKernel_Sum_half_LL",
    ],
)
def test_a_straggler_is_found_whatever_its_library_calls_the_kernels(name: str) -> None:
    """Twelve steps: rank 2 computes for 1,500 us, the others for 1,000, and all end their all-reduce together."""
    args = {**ALL_REDUCE, "Process Group Name": "0", "Group size": 4}

    def events(rank: int) -> Iterator[Event]:
        compute = 1_500 if rank == 2 else 1_000
        for step in range(12):
            at = 1_600 * step
            yield kernel("nvjet", at, compute)
            yield kernel(name, at + compute, 1_600 - compute, stream=20, **args, Seq=step)

    ranks = [trace_of(*events(rank), distributedInfo={"rank": rank, "world_size": 4}) for rank in range(4)]
    found = summarise(ranks)
    assert [one.rank for one in found.lateness if one.straggler] == [2]
    assert found.skew[0].matched == 12
    assert found.skew[0].waiting_ns == 12 * 3 * 500_000


def test_ranks_whose_groups_differ_are_put_together() -> None:
    """Under tensor parallelism each rank has groups the others lack: no key is looked up that only one of them has."""

    def rank_of(rank: int) -> Any:
        tp, dp = f"tp{rank // 2}", f"dp{rank % 2}"
        return trace_of(
            kernel("nvjet", 0, 10),
            kernel(
                "ncclDevKernel_AllReduce", 10, 5, stream=20, **ALL_REDUCE, **{"Process Group Name": tp, "Group size": 2}
            ),
            kernel(
                "ncclDevKernel_AllReduce", 20, 5, stream=24, **ALL_REDUCE, **{"Process Group Name": dp, "Group size": 2}
            ),
            distributedInfo={"rank": rank, "world_size": 4},
        )

    summary = summarise([rank_of(rank) for rank in range(4)])
    assert sorted(line.group for line in summary.collectives) == ["dp0", "dp1", "tp0", "tp1"]
    assert all((line.count, line.total_ns) == (2, 10_000) for line in summary.collectives)


def test_a_send_and_a_receive_have_bytes_and_peers() -> None:
    sent = {
        **ALL_REDUCE,
        "Collective name": "send",
        "Process Group Name": "pp",
        "Group size": 2,
        "Dst Rank": 1,
        "Src Rank": 0,
    }
    received = {**sent, "Collective name": "recv"}
    ranks = [
        trace_of(
            kernel("nvjet", 0, 10),
            kernel("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 10, 4 + 2 * rank, stream=20, **args),
            distributedInfo={"rank": rank, "world_size": 2},
        )
        for rank, args in enumerate((sent, received))
    ]
    lines = {line.collective: line for line in summarise(ranks).collectives}
    assert {name: line.message_bytes for name, line in lines.items()} == {"send": 256, "recv": 256}
    assert lines["send"].bus_bytes_per_s == pytest.approx(256 / 4e-6)
    assert lines["recv"].bus_bytes_per_s == pytest.approx(256 / 6e-6)


def test_relative_times_are_told_from_absolute_ones_by_the_base_the_file_states() -> None:
    relative = trace_of(kernel("nvjet", 5, 10), baseTimeNanoseconds=1_712_195_000_000_000_000)
    absolute = trace_of(kernel("nvjet", 1_712_195_000_000_005, 10))
    assert relative.metadata.base_time_ns == 1_712_195_000_000_000_000
    assert relative.metadata.base_time_ns + int(relative.start_ns[0]) == int(absolute.start_ns[0])
    assert summarise([relative]).window_ns == summarise([absolute]).window_ns == 10_000
