"""Who is there: ranks that come twice, that are missing, that only a file name knows."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from projector.errors import InvalidDescription
from tests.unit.jobs.job_examples import part
from tests.unit.traces.trace_examples import kernel, op
from traces.job_ranks import rank_in_name
from traces.merge import merge_parts
from traces.rank import RankParts
from traces.summary_types import TraceSummary


def merged(parts: Sequence[RankParts]) -> TraceSummary:
    return merge_parts(parts)


def test_ranks_stand_in_order_and_the_job_says_who_is_there() -> None:
    parts = [part(f"{rank}.json", rank=rank, world=4, source=rank) for rank in (3, 0, 1)]
    summary = merged(parts)
    assert [rank.rank for rank in summary.ranks] == [0, 1, 3]
    assert summary.job.model_dump() == {
        "expected": 4,
        "present": (0, 1, 3),
        "missing_count": 1,
        "missing": (2,),
        "duplicated": (),
        "unnumbered": 0,
    }
    assert summary.warnings == ("1 of 4 ranks are not among the files: 2",)


def test_one_rank_alone_is_no_gap() -> None:
    summary = merged([part("0.json", rank=0, world=4096)])
    assert (summary.job.missing_count, len(summary.job.missing), summary.job.missing[:2]) == (4095, 64, (1, 2))
    assert summary.warnings == ()


def test_without_a_stated_world_size_nothing_is_missing() -> None:
    summary = merged([part("0.json", rank=0), part("7.json", rank=7, source=1)])
    assert (summary.job.expected, summary.job.missing_count) == (None, 0)


def test_a_rank_beyond_the_world_is_told() -> None:
    summary = merged([part("0.json", rank=0, world=2), part("5.json", rank=5, world=2, source=1)])
    assert "rank 5 is beyond the world size the files state, 2" in summary.warnings


def test_of_one_rank_at_the_same_time_the_larger_profile_counts() -> None:
    small = part("small.json", kernel("nvjet", 0, 10), rank=0)
    large = part("large.json", kernel("nvjet", 5, 10), kernel("nvjet", 20, 10), rank=0, source=1)
    for parts in ([small, large], [large, small]):
        summary = merged(parts)
        assert [rank.file for rank in summary.ranks] == ["large.json"]
        assert summary.window_ns == 25_000
        assert summary.job.duplicated == (0,)
        assert summary.warnings == (
            "rank 0 comes twice at the same time: large.json is counted, small.json (fewer events) is not",
        )


def test_of_one_rank_at_two_times_both_count() -> None:
    summary = merged([part("a.json", rank=0), part("b.json", kernel("nvjet", 50, 10), rank=0, source=1)])
    assert [rank.file for rank in summary.ranks] == ["a.json", "b.json"]
    assert summary.job.duplicated == (0,)
    assert summary.warnings == ("rank 0 has 2 profiles of different times: each is counted",)


def test_times_are_told_apart_by_the_base_a_file_adds_to_them() -> None:
    first = part("a.json", rank=0, baseTimeNanoseconds=1_000_000)
    second = part("b.json", rank=0, source=1, baseTimeNanoseconds=2_000_000)
    assert len(merged([first, second]).ranks) == 2


def test_a_profile_of_the_host_gives_way_to_one_with_a_device() -> None:
    host = part("host.json", *(op("aten::mm", at, 5) for at in range(0, 90, 10)), rank=0)
    device = part("device.json", rank=0, source=1)
    summary = merged([host, device])
    assert [rank.file for rank in summary.ranks] == ["device.json"]
    assert "host.json (no device events) is not" in summary.warnings[0]


def test_two_devices_of_one_rank_are_two() -> None:
    parts = [part("a.json", kernel("nvjet", 0, 10, device=device), rank=0) for device in (0, 1)]
    summary = merged(parts)
    assert [rank.device for rank in summary.ranks] == [0, 1]
    assert summary.job.duplicated == ()


def test_without_ranks_only_what_is_alike_to_the_nanosecond_counts_once() -> None:
    parts = [part("a.json"), part("a copy.json", source=1), part("b.json", kernel("nvjet", 0, 11), source=2)]
    summary = merged(parts)
    assert [rank.file for rank in summary.ranks] == ["a copy.json", "b.json"]
    assert summary.job.unnumbered == 2
    assert summary.warnings == ("a.json says the same as a copy.json to the nanosecond: counted once",)


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank3.json", 3),
        ("out/rank-12.Apr_03_18_51_38.1102.pt.trace.json.gz", 12),
        ("RANK_007.json", 7),
        ("worker5.1623143566756.pt.trace.json.gz", 5),
        ("trace_3.pt.trace.json.gz", 3),
        ("trace-3.json", 3),
        ("rank1/trace.json", None),
        ("rank1_rank2.json", None),
        ("step_100_rank_2.json", 2),
        ("resnet50.json", None),
        ("1623143566756.pt.trace.json", None),
        ("host_1623143566756.json", None),
        ("rank99999999.json", None),
        ("frank3.json", None),
        ("host_4242.pt.trace.json", 4242),
        ("", None),
    ],
)
def test_a_rank_in_a_name(name: str, rank: int | None) -> None:
    assert rank_in_name(name) == rank


def test_a_name_gives_a_rank_where_the_content_does_not() -> None:
    parts = [part("rank0.json"), part("rank1.json", kernel("nvjet", 0, 11), source=1)]
    summary = merged(parts)
    assert [rank.rank for rank in summary.ranks] == [0, 1]
    told = (
        "the rank of 2 files was taken from their names, as nothing inside states it: 0 of rank0.json, 1 of rank1.json"
    )
    assert summary.warnings == (told,)


def test_a_bare_number_is_a_rank_only_where_there_are_as_many_files() -> None:
    files = ("node_4242.json", "node_4243.json", "t_0.json", "t_1.json")
    parts = [part(file, kernel("nvjet", 0, 10 + at), source=at) for at, file in enumerate(files)]
    assert {rank.file: rank.rank for rank in merged(parts).ranks} == dict(zip(files, (None, None, 0, 1), strict=True))


def test_a_name_gives_no_rank_to_one_file_alone() -> None:
    assert merged([part("rank5.json")]).ranks[0].rank is None


def test_a_name_gives_no_rank_that_another_file_states() -> None:
    summary = merged([part("a.json", rank=1), part("rank1.json", kernel("nvjet", 0, 11), source=1)])
    assert [rank.rank for rank in summary.ranks] == [1, None]


def test_no_ranks_at_all() -> None:
    with pytest.raises(InvalidDescription):
        merged([])


@pytest.mark.parametrize(
    ("form", "world", "counted"), [("xplane", 8, 2), ("nsys", None, 2), ("nsys", 8, 1), ("kineto", None, 1)]
)
def test_formats_that_number_the_devices_of_a_host_repeat_numbers(form: str, world: int | None, counted: int) -> None:
    hosts = [part(f"{host}.db", kernel("nvjet", 0, 10 + host), rank=0, world=world, source=host) for host in range(2)]
    assert len(merged([replace(one, format=form) for one in hosts]).ranks) == counted
