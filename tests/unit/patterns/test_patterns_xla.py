"""Patterns of XLA programs, read off the operands in the text of their operators."""

import pytest

from tests.unit.xplane.xplane_builder import PlaneBuilder, space, tpu_plane
from traces.content import Content, Limits
from traces.pattern_types import PatternKind, SequencePattern
from traces.summary import summarise
from traces.xplane.convert import traces_of
from traces.xplane.decode import decode_space

NS = 1_000
GROUP = "replica_groups={{0,1,2,3,4,5,6,7}}"
GATHER = f"%all-gather.1 = bf16[8,1024]{{1,0}} all-gather(bf16[1,1024]{{1,0}} %param.1), {GROUP}, dimensions={{0}}"
SLICE = "%dynamic-slice.2 = bf16[1,1024]{1,0} dynamic-slice(bf16[8,1024]{1,0} %all-gather.1, s32[] %index.1)"
DOT = "%convolution.9 = bf16[8,1024]{1,0} convolution(bf16[8,8]{1,0} %param.3, bf16[8,1024]{1,0} %param.4), window={}"

CATEGORIES = {
    "all-gather": "all-gather",
    "dynamic-slice": "slice",
    "slice": "slice",
    "convolution": "convolution",
    "all-to-all": "all-to-all",
    "transpose": "data formatting",
    "copy": "data formatting",
    "fusion": "loop fusion",
}


def patterns(*texts: str) -> dict[PatternKind, SequencePattern]:
    """Patterns of a core that runs these operators one after the other, 100 ns each."""
    plane: PlaneBuilder = tpu_plane(0)
    line = plane.line("XLA Ops")
    for at, text in enumerate(texts):
        name = text[1:].partition(" = ")[0]
        kind = plane.kind(text, name, hlo_category=CATEGORIES[name.rpartition(".")[0]])
        line.event(kind, 100 * at * NS, 100 * NS)
    found = summarise(traces_of(decode_space(Content("a.xplane.pb", space(plane)), Limits())))
    return {one.kind: one for one in found.patterns}


def test_a_gather_that_only_slices_take_is_told() -> None:
    told = patterns(DOT, GATHER, SLICE)["gather_then_slice"]
    assert (told.occurrences, told.total_ns, told.certain) == (1, 200, False)
    assert told.moved_bytes == 8 * 1024 * 2
    assert told.examples == ("all-gather.1", "dynamic-slice.2")


@pytest.mark.parametrize(
    "more",
    [
        ["%fusion.5 = bf16[8,1024]{1,0} fusion(bf16[8,1024]{1,0} %all-gather.1), kind=kLoop, calls=%all-gather.1"],
        [SLICE.replace("bf16[1,1024]", "bf16[2,1024]")],
    ],
    ids=["another operator takes the whole", "the slice is larger than a part"],
)
def test_a_gather_that_is_needed_is_none(more: list[str]) -> None:
    kept = [SLICE] if len(more) == 1 and "fusion" in more[0] else []
    assert "gather_then_slice" not in patterns(DOT, GATHER, *kept, *more)


def test_what_an_attribute_names_is_no_operand() -> None:
    called = "%fusion.5 = bf16[8,1024]{1,0} fusion(bf16[8,8]{1,0} %param.9), kind=kLoop, calls=%all-gather.1"
    assert "gather_then_slice" in patterns(DOT, GATHER, SLICE, called)


def all_to_all(number: int, operand: str) -> str:
    return f"%all-to-all.{number} = bf16[8,1024]{{1,0}} all-to-all(bf16[8,1024]{{1,0}} %{operand}), {GROUP}"


def test_an_all_to_all_undone_through_a_transpose_is_proved() -> None:
    turned = "%transpose.3 = bf16[8,1024]{1,0} transpose(bf16[8,1024]{1,0} %all-to-all.1), dimensions={1,0}"
    told = patterns(DOT, all_to_all(1, "param.1"), turned, all_to_all(2, "transpose.3"))
    assert (told["reshard_round_trip"].occurrences, told["reshard_round_trip"].certain) == (1, True)


def test_all_to_alls_of_other_operands_or_with_a_product_between_are_none() -> None:
    product = DOT.replace("%param.3", "%all-to-all.1")
    between = patterns(all_to_all(1, "param.1"), product, all_to_all(2, "convolution.9"))
    apart = patterns(DOT, all_to_all(1, "param.1"), all_to_all(2, "param.2"))
    assert "reshard_round_trip" not in {*between, *apart}


def test_a_parameter_gathered_twice_is_proved() -> None:
    again = GATHER.replace("%all-gather.1", "%all-gather.7")
    told = patterns(GATHER, DOT, again)["repeated_gathers"]
    assert (told.occurrences, told.total_ns, told.examples) == (1, 100, ("all-gather.7",))
    assert "repeated_gathers" not in patterns(GATHER, DOT, again.replace("%param.1", "%param.2"))


def test_data_formatting_beside_a_product_is_a_relayout() -> None:
    turned = "%copy.3 = bf16[8,1024]{0,1} copy(bf16[8,1024]{1,0} %param.4)"
    told = patterns(turned, DOT)["relayout_copies"]
    assert (told.occurrences, told.exposed_ns) == (1, 100)


def test_operators_of_one_title_in_two_programs_are_not_told_apart() -> None:
    plane = tpu_plane(0)
    line = plane.line("XLA Ops")
    texts = [GATHER, SLICE, GATHER, SLICE, DOT]
    for at, (program, text) in enumerate(zip((1, 1, 2, 2, 2), texts, strict=True)):
        name = text[1:].partition(" = ")[0]
        category = CATEGORIES[name.rpartition(".")[0]]
        line.event(plane.kind(text, name, hlo_category=category, program_id=program), 100 * at * NS, 100 * NS)
    found = summarise(traces_of(decode_space(Content("a.xplane.pb", space(plane)), Limits())))
    assert not found.patterns
