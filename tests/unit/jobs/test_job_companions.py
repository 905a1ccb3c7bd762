"""Execution traces among the files of a job: joined with the trace of their process, told where they have none."""

import json
from pathlib import Path
from typing import Any

import pytest

from projector.errors import TraceError, TraceWithoutTimes
from tests.unit.execution_trace.et_examples import document as execution_document
from tests.unit.execution_trace.et_examples import node, tensor
from tests.unit.jobs.job_examples import written
from tests.unit.traces.trace_examples import document, kernel, op
from traces.read import read_traces
from traces.summary import read_summary

NAMES = ("aten::mm", "aten::add", "aten::mul")


def kineto(rank: int, process: int) -> bytes:
    ids: list[dict[str, Any]] = [{"Record function id": number} for number in (5, 6, 7)]
    host = [op(name, 10 * at, 5, **ids[at]) for at, name in enumerate(NAMES)]
    for event in host:
        event["pid"] = process
    info = {"rank": rank, "world_size": 2}
    return json.dumps(document(*host, kernel("nvjet", rank, 9), distributedInfo=info)).encode()


def execution(process: int) -> bytes:
    nodes = (node(5 + at, name, tensor((2, 3)), tensor((3, 4))) for at, name in enumerate(NAMES))
    return execution_document(*nodes, pid=process)


def test_each_is_joined_with_the_trace_of_its_own_process(tmp_path: Path) -> None:
    files = {f"et_rank{rank}.json": execution(70 + rank) for rank in range(2)}
    files |= {f"kineto_rank{rank}.json": kineto(rank, 70 + rank) for rank in range(2)}
    folder = written(tmp_path, files)
    traces = read_traces([folder])
    assert [trace.file for trace in traces] == ["kineto_rank0.json", "kineto_rank1.json"]
    assert [len(trace.inputs) for trace in traces] == [3, 3]
    assert all(
        f"et_rank{rank}.json: 3 of 3 host operators were joined" in trace.warnings[0]
        for rank, trace in enumerate(traces)
    )
    summary = read_summary([folder])
    assert len(summary.ranks) == 2
    assert not any("match no trace" in warning for warning in summary.warnings)


def test_of_many_only_those_of_the_rank_in_the_name_are_tried(tmp_path: Path) -> None:
    files = {f"et_rank{rank}.json": execution(70 + rank) for rank in range(6)}
    folder = written(tmp_path, {**files, "kineto_rank1.json": kineto(1, 71)})
    summary = read_summary([folder])
    told = (
        "5 execution traces match no trace of the job and were not used: et_rank0.json, et_rank2.json, et_rank3.json, "
    )
    assert any(warning == told + "et_rank4.json, ..." for warning in summary.warnings)


def test_one_that_is_of_another_process_is_not_used(tmp_path: Path) -> None:
    folder = written(tmp_path, {"et.json": execution(99), "kineto.json": kineto(0, 70)})
    (trace,) = read_traces([folder])
    assert trace.warnings == ("1 execution traces match no trace of the job and were not used: et.json",)
    assert not trace.inputs


def test_a_broken_one_is_left_out_or_sinks_the_job_where_it_was_named(tmp_path: Path) -> None:
    broken = execution(70).replace(b'"nodes": [', b'"nodes": [{{{')[:-200]
    folder = written(tmp_path, {"et.json": broken, "kineto.json": kineto(0, 70)})
    (told,) = (told for told in read_summary([folder]).warnings if "et.json" in told)
    assert told.endswith("; it was left out")
    with pytest.raises(TraceError, match=r"et\.json"):
        read_summary([folder / "et.json", folder / "kineto.json"])


def test_alone_it_has_no_times(tmp_path: Path) -> None:
    folder = written(tmp_path, {"a.json": execution(70), "b.json": execution(71)})
    for paths in ([folder / "a.json"], [folder]):
        with pytest.raises(TraceWithoutTimes):
            read_summary(paths)
