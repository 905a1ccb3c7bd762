"""Execution traces of the sample folder with the profiles of the same runs."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from traces.content import Limits, open_content
from traces.execution_trace.join import ExecutionTrace, join, match, read_execution_trace
from traces.read import read_trace
from traces.trace import OpInputs, Trace

SHARED = Path(os.environ.get("SHARDWISE_SHARED", Path(__file__).parents[4] / "shared")) / "traces"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not SHARED.is_dir(), reason="needs the sample folder (SHARDWISE_SHARED)"),
]
RUNS = ("ddp", "fsdp2", "tp")


def trace_at(name: str) -> Trace:
    (trace,) = read_trace(SHARED / name)
    return trace


def execution_trace_at(name: str) -> ExecutionTrace:
    return read_execution_trace(open_content(SHARED / name, Limits()), Limits())


def without_decimals(inputs: OpInputs) -> OpInputs:
    """Decimals are not taken from an execution trace, which writes six digits of them."""
    return replace(inputs, values=tuple("" if "." in value else value for value in inputs.values))


@pytest.mark.parametrize("run", RUNS)
def test_each_rank_matches_its_own_and_no_other(run: str) -> None:
    traces = [trace_at(f"generated/{run}_rank{rank}.pt.trace.json.gz") for rank in (0, 1)]
    given = [execution_trace_at(f"generated/{run}_et_rank{rank}.json.gz") for rank in (0, 1)]
    assert [[match(trace, one) for one in given] for trace in traces] == [[1, 0], [0, 1]]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("rank", [0, 1])
def test_shapes_that_were_stripped_come_back_as_they_were(run: str, rank: int) -> None:
    trace = trace_at(f"generated/{run}_rank{rank}.pt.trace.json.gz")
    stripped = replace(trace, inputs={}, metadata=replace(trace.metadata, flags=()))
    joined = join(stripped, execution_trace_at(f"generated/{run}_et_rank{rank}.json.gz"))
    assert len(trace.inputs) > 100
    assert {row: joined.inputs[row] for row in trace.inputs} == {
        row: without_decimals(inputs) for row, inputs in trace.inputs.items()
    }


def test_a_pair_of_2023_joins_by_external_id() -> None:
    pair = "hta/execution_trace/benchmark_simple_add"
    trace, given = trace_at(f"{pair}_trace.json.gz"), execution_trace_at(f"{pair}_et.json.gz")
    assert match(trace, given) == 1
    assert any("36 of 36 host operators were joined by External id" in told for told in join(trace, given).warnings)


def test_two_files_that_are_no_pair_are_not_joined() -> None:
    trace, given = trace_at("param/resnet_kineto.json.gz"), execution_trace_at("param/resnet_et.json.gz")
    assert match(trace, given) == 0
    assert any("was not joined: it is of process 1734239" in told for told in join(trace, given).warnings)


@pytest.mark.parametrize(
    ("name", "schema", "calls", "collectives", "rank", "world_size"),
    [
        ("hta/execution_trace/benchmark_simple_add_et.json.gz", "1.0.1", 36, 0, None, None),
        ("param/resnet_et.json.gz", "1.1.0-chakra.0.0.4", 14_389, 21, 0, 1),
        ("param/1.1.0-chakra.0.0.4/resnet_2gpu_et.json.gz", "1.1.0-chakra.0.0.4", 14_389, 21, 1, 2),
        ("generated/fsdp2_et_rank1.json.gz", "1.1.1-chakra.0.0.4", 5_161, 0, None, 2),
    ],
)
def test_what_the_samples_hold(
    name: str, schema: str, calls: int, collectives: int, rank: int | None, world_size: int | None
) -> None:
    found = execution_trace_at(name)
    assert (found.schema, len(found), len(found.collectives)) == (schema, calls, collectives)
    assert (found.rank, found.world_size, found.warnings) == (rank, world_size, ())
