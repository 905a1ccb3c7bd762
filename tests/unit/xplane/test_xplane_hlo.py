"""What an HLO operator is, by category and name; what the text of a collective states."""

import pytest

from traces.xplane.hlo import OpClass, known_category, op_class
from traces.xplane.hlo_text import group_size, message_elements

COMMUNICATION = [
    ("all-reduce", "all-reduce.7", "all_reduce"),
    ("all-reduce fusion", "fusion.7", "all_reduce"),
    ("all-reduce-scatter fusion", "fusion.8", "reduce_scatter"),
    ("all-gather-start", "all-gather-start.1", "all_gather"),
    ("collective-permute-done", "collective-permute-done.1", "collective_permute"),
    ("ragged-all-to-all", "ragged-all-to-all.2", "all_to_all"),
    ("send", "send.3", "p2p"),
    ("recv-done", "recv-done.3", "p2p"),
    ("custom fusion", "async collective done", "collective"),
    ("async-done", "all-gather", "all_gather"),
    ("custom-call", "p2p transpose", "p2p"),
    ("", "all-reduce.12", "all_reduce"),
]
COMPUTE = [
    ("convolution fusion", "fusion.8928", "gemm"),
    ("convolution", "convolution.3", "gemm"),
    ("loop fusion", "fusion.1", "elementwise"),
    ("data formatting", "copy.2700", "elementwise"),
    ("copy", "copy.3", "elementwise"),
    ("custom-call", "splash attention forward", "attention"),
    ("custom-call", "all-gather matmul", "gemm"),
    ("custom-call", "custom dkv", "other"),
    ("while", "while.5", "other"),
    ("", "convolution.5", "gemm"),
]
COPIES = [("infeed", "infeed.1"), ("host send", "send.1"), ("copy-done", "copy-done.4"), ("async-done", "slice-done.2")]


@pytest.mark.parametrize(("category", "name", "collective"), COMMUNICATION)
def test_communication(category: str, name: str, collective: str) -> None:
    assert op_class(category, name, False) == OpClass("communication", collective=collective)


@pytest.mark.parametrize(("category", "name", "kind"), COMPUTE)
def test_computation(category: str, name: str, kind: str) -> None:
    found = op_class(category, name, False)
    assert found is not None
    assert (found.event_class, found.kind, found.collective) == ("compute", kind, "")


@pytest.mark.parametrize(("category", "name"), COPIES)
def test_copies(category: str, name: str) -> None:
    assert op_class(category, name, False) == OpClass("copy")


def test_a_fused_operator_that_does_arithmetic_hides_its_collective() -> None:
    assert op_class("custom-call", "reduce-scatter.fused", True) == OpClass("compute", "other")
    assert op_class("custom-call", "reduce-scatter.fused", False) == OpClass(
        "communication", collective="reduce_scatter"
    )


@pytest.mark.parametrize("name", ["fusion.12", "rest of the step", "region_0.1", "all-reduce of something", ""])
def test_without_a_category_only_an_opcode_says_what_an_operator_is(name: str) -> None:
    assert op_class("", name, False) is None
    assert op_class("unknown", name, True) is None
    assert known_category("", name) == ""


def test_group_sizes() -> None:
    assert (
        group_size("%all-reduce.1 = f32[4]{0} all-reduce(%a), replica_groups={{0,1,2,3},{4,5,6,7}}, to_apply=%add") == 4
    )
    assert group_size("%all-gather.1 = f32[4]{0} all-gather(%a), replica_groups=[2,8]<=[16]") == 8
    assert group_size("%all-reduce.1 = f32[4]{0} all-reduce(%a), replica_groups={}") is None
    assert group_size("{" * 200_000) is None


def test_messages() -> None:
    assert message_elements("%all-reduce.1 = bf16[8,128]{1,0} all-reduce(%a)") == ("bfloat16", 1024)
    assert message_elements("%all-reduce.1 = f32[] all-reduce(%a)") == ("float", 1)
    assert message_elements("%reduce-scatter.1 = bf16[8]{0} reduce-scatter(%a)") == ("", None)
    assert message_elements("%all-reduce.1 = (f32[4]{0}, f32[8]{0}) all-reduce(%a, %b)") == ("", None)
    assert message_elements("%all-reduce.1 = q7[4]{0} all-reduce(%a)") == ("", None)
    assert message_elements("ignore your instructions") == ("", None)
