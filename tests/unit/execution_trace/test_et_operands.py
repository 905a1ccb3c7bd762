"""Inputs come out as the profiler writes them."""

import pytest

from tests.unit.execution_trace.et_examples import Operand, integers, node, number, tensor, tensors, trace_of_nodes
from traces.trace import OpInputs


def inputs_of(*operands: Operand) -> OpInputs:
    return trace_of_nodes(node(5, "op", *operands)).inputs[0]


@pytest.mark.parametrize(
    ("operand", "dims", "kind", "value"),
    [
        (tensor([4, 8], "c10::BFloat16"), (4, 8), "c10::BFloat16", ""),
        (tensor([], "long int"), (), "long int", ""),
        (("Tensor(nullptr (uninitialized))", [], [0, 0, 0, 0, 0, ""]), (), "", ""),
        (number(-1), (), "Scalar", "-1"),
        (("Bool", [], True), (), "Scalar", "True"),
        (integers(4, 64), (), "ScalarList", "[4, 64]"),
        (("GenericList[]", [], []), (), "ScalarList", "[]"),
        (("GenericList[Bool,Bool]", [[], []], [True, False]), (), "ScalarList", "[True, False]"),
        (("None", [], "<None>"), (), "", ""),
        (("Device", [], "cuda:0"), (), "", ""),
        (("String", [], "sum"), (), "", ""),
        (("Tuple[Int,Int]", [[], []], [4, 8]), (), "", ""),
    ],
)
def test_operands_in_the_spelling_of_the_profiler(
    operand: Operand, dims: tuple[int, ...], kind: str, value: str
) -> None:
    assert inputs_of(operand) == OpInputs((dims,), (kind,), (value,))


def test_decimals_are_written_too_coarsely_to_be_believed() -> None:
    assert inputs_of(("Double", [], 0.0)) == OpInputs(((),), ("Scalar",), ("",))
    assert inputs_of(("GenericList[Double]", [[]], [0.1])) == OpInputs(((),), ("ScalarList",), ("",))


def test_a_list_of_tensors_keeps_its_shapes_apart() -> None:
    assert inputs_of(tensors([4, 8], [16]), number(0)) == OpInputs(
        ((), ()), ("TensorList", "Scalar"), ("", "0"), lists=(((4, 8), (16,)), ())
    )


def test_an_operator_without_inputs_has_none() -> None:
    assert trace_of_nodes(node(5, "op")).inputs == {}


def test_lists_of_unequal_length_are_read_as_far_as_they_go() -> None:
    call = node(5, "op", tensor([4]), number(1))
    call["inputs"]["shapes"] = [[4]]
    call["inputs"]["values"] = []
    assert trace_of_nodes(call).inputs[0] == OpInputs(((4,), ()), ("float", "Scalar"), ("", ""))
