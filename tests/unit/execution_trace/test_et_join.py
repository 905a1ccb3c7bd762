"""A Kineto trace completed by the execution trace of the same process."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.execution_trace.et_examples import (
    Node,
    groups_node,
    node,
    number,
    tensor,
    tensors,
    text,
    trace_of_nodes,
)
from tests.unit.traces.trace_examples import Event, annotation, external, kernel, launch, memcpy, op, trace_of
from traces.execution_trace.join import ExecutionTrace, join, match
from traces.summary import summarise
from traces.trace import CollectiveArgs, GroupConfig, Trace

PROCESS = 100  # of the host events that trace_examples writes
NONE = ("GenericList[]", [], [])


def called(number_: int) -> dict[str, Any]:
    return {"Record function id": number_}


def traced(*events: Event, **outer: Any) -> Trace:
    return trace_of(*events, kernel("nvjet_tst", 500, 5), **outer)


def calls(*nodes: Node, pid: int | None = PROCESS) -> ExecutionTrace:
    return trace_of_nodes(*nodes, pid=pid)


def all_reduce(record_id: int, *, rank: int = 0, size: int = 2, elements: int = 64) -> Node:
    inputs = (tensors([elements]), number(7), ("Tuple[String,String]", [[], []], ["0", "default_pg"]), number(rank))
    tail = (text("allreduce"), NONE, NONE, number(0), number(1), number(size))
    return node(record_id, "record_param_comms", *inputs, *tail, outputs=(tensors([elements]),))


def told(trace: Trace, part: str) -> bool:
    return any(part in warning for warning in trace.warnings)


LINEAR = node(7, "aten::linear", tensor([4, 8]), tensor([16, 8]))
RELU = node(9, "aten::relu", tensor([4, 16]))
EVENTS = (op("aten::linear", 1, 5, **called(7)), op("aten::relu", 8, 2, **called(9)))


def test_shapes_go_to_the_operators_of_the_same_id_and_name() -> None:
    joined = join(traced(*EVENTS), calls(LINEAR, RELU))
    assert {joined.name(row): inputs.dims for row, inputs in joined.inputs.items()} == {
        "aten::linear": ((4, 8), (16, 8)),
        "aten::relu": ((4, 16),),
    }
    assert joined.warnings[-1] == (
        "et.json: 2 of 2 host operators were joined by Record function id; it added inputs to 2 of them, arguments to "
        "0 events of collectives, and 0 process groups"
    )


def test_an_id_with_another_name_is_not_joined_and_told() -> None:
    joined = join(traced(*EVENTS), calls(LINEAR, node(9, "aten::gelu", tensor([3]))))
    assert [joined.name(row) for row in joined.inputs] == ["aten::linear"]
    assert told(joined, "1 operators have the id of a call of another name and were not joined")


def test_shapes_the_trace_has_are_kept_and_differences_told() -> None:
    recorded = op("aten::linear", 1, 5, **called(7), **{"Input Dims": [[2, 8], [16, 8]], "Input type": ["a", "b"]})
    joined = join(traced(recorded), calls(LINEAR))
    assert [inputs.dims for inputs in joined.inputs.values()] == [((2, 8), (16, 8))]
    assert told(joined, "1 operators have other input shapes there; the trace's were kept")


def test_a_profile_that_recorded_shapes_lacks_none() -> None:
    joined = join(traced(*EVENTS, record_shapes=1), calls(LINEAR, RELU))
    assert joined.inputs == {}
    assert told(joined, "it added inputs to 0 of them")


def test_a_collective_states_its_arguments_on_the_host_and_on_the_kernel_it_launched() -> None:
    trace = trace_of(
        op("record_param_comms", 1, 9, **called(7)),
        launch(1, 2),
        launch(2, 4),
        launch(3, 6),
        launch(4, 30),
        kernel("ncclDevKernel_Generic", 10, 5, stream=20, correlation=1),
        kernel("void at::native::vectorized_elementwise_kernel<4>", 16, 5, stream=20, correlation=2),
        memcpy(22, 3, stream=20, correlation=3),
        kernel("ncclDevKernel_Generic", 40, 5, stream=20, correlation=4),
    )
    joined = join(trace, calls(all_reduce(7)))
    found = {joined.name(row): int(joined.start_ns[row]) for row in joined.collectives}
    assert found == {"record_param_comms": 1_000, "ncclDevKernel_Generic": 10_000}
    assert {args.name for args in joined.collectives.values()} == {"allreduce"}
    lines = {(line.collective, line.group): line.message_bytes for line in summarise([joined]).collectives}
    assert lines[("all_reduce", "0")] == 64 * 4


def test_a_kernel_that_names_its_operator_by_external_id_needs_no_launch() -> None:
    trace = trace_of(
        op("record_param_comms", 1, 9, **called(7), **external(31)),
        kernel("ncclDevKernel_Generic", 10, 5, **external(31)),
    )
    assert len(join(trace, calls(all_reduce(7))).collectives) == 2


def test_arguments_the_trace_has_are_kept_and_differences_told() -> None:
    stated = {"Collective name": "allreduce", "In msg nelems": 32, "Group size": 2}
    joined = join(traced(op("record_param_comms", 1, 9, **called(7), **stated)), calls(all_reduce(7)))
    assert [args.in_elements for args in joined.collectives.values()] == [32]
    assert told(joined, "1 collectives have other arguments there; the trace's were kept")


def test_groups_world_size_and_rank_come_where_the_trace_has_none() -> None:
    groups = groups_node({"pg_name": "0", "pg_desc": "default_pg", "ranks": [], "group_size": 2})
    given = calls(groups, LINEAR, all_reduce(8, rank=1))
    joined = join(traced(*EVENTS), given).metadata
    assert joined.groups == (GroupConfig("0", "default_pg", 2, (0, 1)),)
    assert (joined.rank, joined.world_size) == (1, 2)
    assert joined.world_size_basis == "process groups of the execution trace"


def test_groups_the_trace_has_are_kept_and_differences_told() -> None:
    info = {"world_size": 4, "pg_config": [{"pg_name": "0", "pg_desc": "mine", "pg_size": 4, "ranks": [0, 1, 2, 3]}]}
    given = calls(groups_node({"pg_name": "0", "ranks": [], "group_size": 2}), LINEAR)
    joined = join(traced(*EVENTS, distributedInfo=info), given)
    assert joined.metadata.groups == (GroupConfig("0", "mine", 4, (0, 1, 2, 3)),)
    assert joined.metadata.world_size == 4
    assert told(joined, "1 process groups have another size there; the trace's was kept")


def test_annotations_are_joined_like_operators() -> None:
    trace = traced(annotation("nccl:all_reduce", 1, 5, **called(7)))
    assert len(join(trace, calls(node(7, "nccl:all_reduce", tensor([64])))).inputs) == 1


def test_before_2023_the_external_id_was_the_record_id_and_counts_if_the_names_agree() -> None:
    events = [op(f"aten::op{one}", one, 1, **external(one)) for one in range(1, 21)]
    nodes = [node(one, f"aten::op{one}", tensor([one])) for one in range(1, 21)]
    joined = join(traced(*events), calls(*nodes))
    assert len(joined.inputs) == 20
    assert told(joined, "20 of 20 host operators were joined by External id")
    shifted = [op(f"aten::op{one}", one, 1, **external(one + 1 if one > 3 else one)) for one in range(1, 20)]
    assert match(traced(*shifted), calls(*nodes)) == 0
    assert join(traced(*shifted), calls(*nodes)).inputs == {}


def test_match_is_the_share_that_agrees() -> None:
    trace = traced(*EVENTS)
    assert match(trace, calls(LINEAR, RELU)) == 1
    assert match(trace, calls(LINEAR, node(9, "aten::gelu"))) == 0.5
    assert match(trace, calls(node(70, "aten::linear"))) == 0
    assert match(trace_of(kernel("k", 1, 2)), calls(LINEAR)) == 0


def test_a_companion_of_one_step_matches_a_trace_of_many() -> None:
    events = [op("aten::linear", one, 1, **called(one)) for one in range(1, 11)]
    assert match(traced(*events), calls(*(node(one, "aten::linear") for one in (4, 5)))) == 1


def test_ranks_run_the_same_operators_so_the_process_decides() -> None:
    trace = traced(*EVENTS)
    assert trace.metadata.process_id == PROCESS
    mine, other = calls(LINEAR, RELU), calls(LINEAR, RELU, pid=PROCESS + 1)
    assert (match(trace, mine), match(trace, other)) == (1, 0)
    joined = join(trace, other)
    assert joined.inputs == {}
    assert told(joined, "et.json was not joined: it is of process 101, the trace of process 100")


def test_in_containers_processes_are_alike_so_the_rank_decides() -> None:
    trace = traced(*EVENTS, distributedInfo={"rank": 1, "world_size": 2})
    assert match(trace, calls(LINEAR, RELU, all_reduce(50, rank=1))) == 1
    assert match(trace, calls(LINEAR, RELU, all_reduce(50, rank=0))) == 0


def test_where_neither_is_stated_that_is_told() -> None:
    assert told(join(traced(*EVENTS), calls(LINEAR, pid=None)), "(neither process nor rank could be compared)")


@pytest.mark.parametrize("given", [calls(node(3, "aten::other")), calls(node(7, "aten::other")), calls(RELU)])
def test_what_has_nothing_in_common_leaves_the_trace_as_it_is(given: ExecutionTrace) -> None:
    trace = traced(EVENTS[0])
    joined = join(trace, given)
    assert (joined.inputs, joined.collectives, joined.metadata) == (trace.inputs, trace.collectives, trace.metadata)
    assert told(joined, "no host operator of the trace has the id and name of one of its calls")


def test_what_the_companion_had_to_say_stands_in_the_trace() -> None:
    given = replace(calls(LINEAR), warnings=("the file breaks off",))
    assert "et.json: the file breaks off" in join(traced(*EVENTS), given).warnings


def test_arguments_stay_what_they_are_on_the_way_through() -> None:
    joined = join(traced(op("record_param_comms", 1, 9, **called(7))), calls(all_reduce(7)))
    stated = CollectiveArgs("allreduce", "0", "default_pg", 2, dtype="float", in_elements=64, out_elements=64)
    assert list(joined.collectives.values()) == [replace(stated, rank_start=0, rank_stride=1, sequence=7, uneven=False)]
