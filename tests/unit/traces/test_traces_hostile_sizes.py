"""Sizes no machine has, times without digits, the same file twice: told, never believed, never a crash."""

import json
from pathlib import Path

import pytest

from projector.errors import EmptyTrace, UnknownTraceFormat
from traces.read import read_traces
from traces.summary import read_summary

KERNEL = {
    "ph": "X",
    "cat": "kernel",
    "name": "gemm_kernel",
    "pid": 0,
    "tid": 7,
    "ts": 10,
    "dur": 5,
    "args": {"stream": 7},
}


def written(path: Path, *, events: list[dict[str, object]] | None = None, **outer: object) -> Path:
    path.write_text(json.dumps({"schemaVersion": 1, **outer, "traceEvents": events or [KERNEL]}))
    return path


def test_a_world_size_beyond_any_machine_is_unknown_and_said_so(tmp_path: Path) -> None:
    path = written(tmp_path / "t.json", distributedInfo={"rank": 0, "world_size": 10**18})
    summary = read_summary([path])
    assert summary.implied.world_size is None
    assert any("world size of 1e+18" in warning for warning in summary.warnings)


@pytest.mark.parametrize("field", ["ts", "dur"])
def test_times_without_a_digit_are_no_times(tmp_path: Path, field: str) -> None:
    with pytest.raises(EmptyTrace):
        read_summary([written(tmp_path / "t.json", events=[{**KERNEL, field: ""}])])


def test_the_same_bytes_twice_count_once(tmp_path: Path) -> None:
    first = written(tmp_path / "a.json")
    second = tmp_path / "b.json"
    second.write_bytes(first.read_bytes())
    summary = read_summary([first, second])
    assert len(summary.ranks) == 1
    assert "b.json has the same content as a.json: counted once" in summary.warnings


def test_errors_and_answers_use_the_given_name(tmp_path: Path) -> None:
    path = written(tmp_path / "0123abc")
    assert read_traces([path], names=["rank0.json"])[0].file == "rank0.json"
    path.write_text("nothing")
    with pytest.raises(UnknownTraceFormat, match=r"^rank0\.json is no trace format"):
        read_traces([path], names=["rank0.json"])


def test_a_name_longer_than_any_compiler_writes_is_shown_with_its_length(tmp_path: Path) -> None:
    path = written(tmp_path / "t.json", events=[{**KERNEL, "name": "k" * 1_000_000}])
    shown = read_summary([path]).top_kernels[0].name
    assert len(shown) < 5_000
    assert shown.endswith("(1,000,000 characters)")


def test_timed_events_of_an_unknown_accelerator_are_told(tmp_path: Path) -> None:
    other = {**KERNEL, "cat": "mtia_ccp_events", "name": "matmul"}
    stack = {**KERNEL, "cat": "python_function", "name": "main.py(1): main"}
    told = read_summary([written(tmp_path / "t.json", events=[KERNEL, other, other, stack])]).warnings
    assert "timed events of categories that are not known here were left out: 2 x mtia_ccp_events" in told


def test_launches_without_their_kernels_make_no_idle_time_launch_bound(tmp_path: Path) -> None:
    """As while a graph is captured: what looks idle was never meant to run."""

    def launch(at: int) -> dict[str, object]:
        return {
            **KERNEL,
            "cat": "cuda_runtime",
            "name": "cudaLaunchKernel",
            "ts": at,
            "dur": 1,
            "args": {"correlation": at},
        }

    def ran(at: int) -> dict[str, object]:
        return {**KERNEL, "ts": at + 5, "dur": 1, "args": {"stream": 7, "correlation": at}}

    launches = [launch(10 * at) for at in range(1, 101)]
    captured = read_summary([written(tmp_path / "captured.json", events=[*launches, ran(10), ran(1000)])])
    assert captured.launch_bound_frac is None
    assert any("98 of 100 kernel launches have no kernel" in warning for warning in captured.warnings)
    whole = read_summary(
        [written(tmp_path / "whole.json", events=[*launches, *(ran(10 * at) for at in range(1, 101))])]
    )
    assert whole.launch_bound_frac == 1
    assert not whole.warnings
