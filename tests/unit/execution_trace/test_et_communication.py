"""Collectives and process groups of an execution trace."""

import pytest

from tests.unit.execution_trace.et_examples import (
    Node,
    Operand,
    groups_node,
    integers,
    node,
    number,
    old_node,
    tensor,
    tensors,
    text,
    trace_of_nodes,
)
from traces.trace import CollectiveArgs, GroupConfig

NONE: Operand = ("GenericList[]", [], [])
DEFAULT_GROUP: Operand = ("Tuple[String,String]", [[], []], ["0", "default_pg"])


def collective(name: str, rank: int, *, size: int = 4, tensor_list: Operand | None = None, **attributes: int) -> Node:
    given = tensor_list or tensors([1024], kind="c10::BFloat16")
    tail = (NONE, NONE, number(0), number(1), number(size))
    inputs = (given, number(7), DEFAULT_GROUP, number(rank), text(name), *tail)
    return node(50 + rank, "record_param_comms", *inputs, outputs=(given,), attributes=attributes)


def only_collective(*nodes: Node) -> CollectiveArgs:
    (found,) = trace_of_nodes(*nodes).collectives.values()
    return found


def test_schema_1_1_0_states_the_collective_as_attributes() -> None:
    stated = {
        "collective_name": "_allgather_base",
        "dtype": "BFloat16",
        "in_msg_nelems": 256,
        "out_msg_nelems": 1024,
        "global_rank_start": 1,
        "global_rank_stride": 4,
        "pg_name": "3",
        "pg_desc": "mesh_dp",
        "pg_size": 4,
    }
    assert only_collective(node(5, "record_param_comms", attributes=stated)) == CollectiveArgs(
        name="_allgather_base",
        group="3",
        group_description="mesh_dp",
        group_size=4,
        dtype="BFloat16",
        in_elements=256,
        out_elements=1024,
        rank_start=1,
        rank_stride=4,
    )


def test_without_attributes_the_inputs_state_it() -> None:
    assert only_collective(collective("allreduce", 2)) == CollectiveArgs(
        name="allreduce",
        group="0",
        group_description="default_pg",
        group_size=4,
        dtype="BFloat16",
        in_elements=1024,
        out_elements=1024,
        rank_start=0,
        rank_stride=1,
        sequence=7,
        uneven=False,
    )


def test_schema_1_0_2_names_groups_by_address_which_their_list_explains() -> None:
    gathered: Operand = ("GenericList[GenericList[Tensor(float),Tensor(float)]]", [[[[8]], [[8]]]], [[]])
    inputs = (tensors([8]), number(12), number(82149104), number(0), text("all_gather"), NONE, NONE, number(2))
    group = {"pg_name": "0", "backend_id": 82149104, "ranks": [], "group_size": 2}
    found = only_collective(groups_node(group), node(9, "record_param_comms", *inputs, outputs=(gathered,)))
    assert (found.group, found.group_size, found.in_elements, found.out_elements) == ("0", 2, 8, 16)


def test_schema_1_0_1_knows_no_group() -> None:
    inputs = (tensor([64]), number(5), number(94594108284448), number(1), text("all_to_allv"))
    splits = (integers(40, 24), integers(32, 32))
    found = only_collective(old_node(9, "record_param_comms", *inputs, *splits, outputs=(tensor([64]),)))
    assert (found.name, found.group, found.group_size, found.in_elements) == ("all_to_allv", "", None, 64)
    assert found.uneven is True


@pytest.mark.parametrize("name", ["wait", "init", "startCoalescing", "end_coalesced"])
def test_marks_that_move_no_data_are_no_collectives(name: str) -> None:
    assert trace_of_nodes(collective(name, 0)).collectives == {}


@pytest.mark.parametrize(("name", "source", "target"), [("send", None, 14), ("recv", 14, None)])
def test_a_send_names_its_peer_and_borrows_no_sequence(name: str, source: int | None, target: int | None) -> None:
    tail = (NONE, NONE, number(2), number(4), number(8))  # ranks 2, 6, 10, 14, ...
    call = node(5, "record_param_comms", tensors([9]), number(7), DEFAULT_GROUP, number(3), text(name), *tail)
    found = only_collective(call)
    assert (found.source_rank, found.target_rank, found.sequence) == (source, target, None)


def test_sends_count_for_themselves_where_they_say_so() -> None:
    counted: Operand = ("Tuple[Int,Bool]", [[], []], [31, True])
    tail = (NONE, NONE, number(0), number(1), number(8))
    call = node(5, "record_param_comms", tensors([9]), counted, DEFAULT_GROUP, number(3), text("send"), *tail)
    assert only_collective(call).sequence == 31


def test_a_group_without_ranks_is_of_all_of_them() -> None:
    found = trace_of_nodes(
        groups_node(
            {"pg_name": "0", "pg_desc": "default_pg", "ranks": [], "group_size": 4},
            {"pg_name": "1", "pg_desc": "mesh_tp", "ranks": [2, 3], "group_size": 2},
        )
    )
    assert found.groups == (
        GroupConfig("0", "default_pg", 4, (0, 1, 2, 3)),
        GroupConfig("1", "mesh_tp", 2, (2, 3)),
    )
    assert found.world_size == 4


@pytest.mark.parametrize(
    "listed", ["no list", "[{]", '[{"pg_name": "0"}]', '[{"pg_name": "0", "group_size": 99999999999}]', "[1]"]
)
def test_groups_that_make_no_sense_are_none(listed: str) -> None:
    assert trace_of_nodes(node(1, "## process_group:init ##", text(listed))).groups == ()


def test_sizes_no_machine_has_are_not_stated() -> None:
    found = only_collective(collective("allreduce", 2, tensor_list=tensors([2**60]), size=2**40))
    assert (found.in_elements, found.group_size) == (None, None)
    assert only_collective(collective("allreduce", 2, in_msg_nelems=2**60)).in_elements is None


def test_the_rank_is_what_collectives_of_all_ranks_record() -> None:
    assert trace_of_nodes(collective("allreduce", 2), collective("broadcast", 0)).rank == 2


def test_a_broadcast_records_its_root_which_is_no_rank_of_the_process() -> None:
    assert trace_of_nodes(collective("broadcast", 0)).rank is None


def test_ranks_that_disagree_are_told() -> None:
    found = trace_of_nodes(collective("allreduce", 2), collective("barrier", 3))
    assert found.rank is None
    assert any("2 different ranks" in warning for warning in found.warnings)
