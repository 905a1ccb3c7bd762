"""Every generation of the schema, from a small file of our own to an ExecutionTrace."""

import numpy as np
import pytest

from projector.errors import TraceWithoutTimes
from tests.unit.execution_trace.et_examples import document, node, number, old_node, read, tensor, trace_of_nodes
from traces.content import Content, Limits
from traces.reader import all_readers
from traces.readers import pytorch_et
from traces.trace import OpInputs

LINEAR = OpInputs(dims=((4, 8), (16, 8)), types=("float", "float"), values=("", ""))


def test_schema_1_0_1_holds_everything_in_the_node() -> None:
    found = read(document(old_node(3, "aten::linear", tensor([4, 8]), tensor([16, 8])), schema="1.0.1"))
    assert (found.schema, found.process_id) == ("1.0.1", 77)
    assert found.record_ids.tolist() == [3]
    assert found.name(0) == "aten::linear"
    assert found.inputs[0] == LINEAR


@pytest.mark.parametrize("schema", ["1.0.2-chakra.0.0.4", "1.0.4-chakra.0.0.4", "1.1.0-chakra.0.0.4"])
def test_schemas_from_1_0_2_on_hold_attributes_by_name(schema: str) -> None:
    call = node(3, "aten::linear", tensor([4, 8]), tensor([16, 8]), attributes={"tid": 2, "scope": 7})
    found = trace_of_nodes(call, schema=schema)
    assert found.inputs[0] == LINEAR
    assert (found.thread.tolist(), found.scope.tolist()) == ([2], [7])


def test_schema_1_1_1_adds_strides() -> None:
    found = trace_of_nodes(node(3, "aten::add", tensor([4, 8]), number(1), strides=[[1, 4], []]))
    assert found.inputs[0].strides == ((1, 4), ())


def test_nodes_that_are_no_call_are_left_out() -> None:
    found = trace_of_nodes(node(0, "[pytorch|profiler|execution_trace|thread]"), node(5, "aten::relu", tensor([2])))
    assert found.record_ids.tolist() == [5]


def test_calls_come_in_order_of_their_record_id_each_once() -> None:
    found = trace_of_nodes(node(9, "b", tensor([2])), node(4, "a"), node(9, "again"))
    assert found.record_ids.tolist() == [4, 9]
    assert [found.name(entry) for entry in range(2)] == ["a", "b"]
    assert list(found.inputs) == [1]
    assert found.warnings == ("1 nodes repeat the record function id of another and were left out",)


def test_equal_inputs_are_one_object() -> None:
    found = trace_of_nodes(*(node(number_, "aten::relu", tensor([2], id=number_)) for number_ in (5, 6)))
    assert found.inputs[0] is found.inputs[1]


def test_columns_have_the_stated_types() -> None:
    found = trace_of_nodes(node(5, "aten::relu"))
    assert [column.dtype for column in (found.record_ids, found.name_id, found.scope, found.thread)] == [
        np.int64,
        np.int32,
        np.int8,
        np.int32,
    ]
    assert len(found) == 1


def test_a_process_that_is_not_stated_is_unknown() -> None:
    assert trace_of_nodes(node(5, "aten::relu"), pid=None).process_id is None


def test_alone_it_is_no_trace_and_says_what_it_needs() -> None:
    content = Content("et.json", document(node(5, "aten::relu")))
    assert [reader.name for reader in all_readers() if reader.claims(content)] == ["pytorch_et"]
    assert pytorch_et.READER.role == "companion"
    with pytest.raises(TraceWithoutTimes, match="1 operator calls, and not when") as refused:
        pytorch_et.read(content, Limits())
    assert (refused.value.http_status, refused.value.code) == (422, "trace_without_times")
    assert "Kineto trace of the same run" in refused.value.hint
