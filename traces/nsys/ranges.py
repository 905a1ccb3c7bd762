"""What the names of NVTX ranges say: operators PyTorch marked with `emit_nvtx`, and plain annotations.

Under `torch.autograd.profiler.emit_nvtx` every operator is a range in the default domain, and its text ends in facts
about the call:
  aten::mm, seq = 12, op_id = 340, sizes = [[64, 128], [128, 32]]
(torch/csrc/profiler/util.cpp, getNvtxStr). The facts are taken off, so that one operator has one name.
"""

import re
from typing import Final, NamedTuple

import msgspec

from traces.remembered import remembered
from traces.trace import Category, OpInputs

NCCL_DOMAIN: Final = "NCCL"

_FACTS: Final = ("seq = ", "op_id = ", "sizes = ")
_TAIL: Final = re.compile(
    r"(?:seq = \d{1,20}(?:, |\Z))?(?:op_id = \d{1,20}(?:, |\Z))?(?:sizes = (?P<sizes>[\[\]\d, -]{2,65536})(?:, |\Z))?"
    r"(?:input_op_ids = [\[\]()\d, -]{0,65536})?"
)
_OPERATOR: Final = re.compile(
    r"(?!FSDP::)(?:autograd::engine::evaluate_function: )?[\w<>]{1,400}(?:::[\w<>]{1,400}){0,8}"
)
_NCCL_CALL: Final = re.compile(r"p?nccl[A-Z]\w{0,60}")
_CACHED: Final = 65_536


class Told(NamedTuple):
    """Name and category of a range, and the shapes that stood behind the name."""

    name: str
    category: Category
    sizes: str = ""


def told(text: str, domain: str) -> Told:
    """What a range is.

    domain: name of its domain, "" for the default one; it stands before the name, as in Nsight's own reports. NCCL's
    calls belong to its domain whether or not the file names that.
    """
    if domain:
        return Told(f"{domain}:{text}", Category.ANNOTATION)
    name, _, facts = text.partition(", ")
    if facts and not facts.startswith(_FACTS):
        found = [at for fact in _FACTS if (at := text.find(f", {fact}")) > 0]
        name, facts = (text[: min(found)], text[min(found) + 2 :]) if found else (text, "")
    tail = _TAIL.fullmatch(facts) if facts and name else None
    if tail is not None:
        return Told(name, Category.CPU_OP if is_operator(name) else Category.ANNOTATION, tail["sizes"] or "")
    if _NCCL_CALL.fullmatch(text):
        return Told(f"{NCCL_DOMAIN}:{text}", Category.ANNOTATION)
    return Told(text, Category.ANNOTATION)


@remembered(_CACHED)
def is_operator(name: str) -> bool:
    """Whether a name PyTorch marked is that of an operator ("aten::mm", "MmBackward0"), and not of a program's part."""
    return _OPERATOR.fullmatch(name) is not None


def nccl_call(name: str) -> str:
    """The call an NCCL range is of, without its prefix ("AllReduce"); "" for any other range."""
    domain, _, call = name.partition(":")
    if domain != NCCL_DOMAIN or _NCCL_CALL.fullmatch(call) is None:
        return ""
    return call.removeprefix("p").removeprefix("nccl")


@remembered(_CACHED)
def inputs_of(sizes: str) -> OpInputs | None:
    """Shapes of an operator's inputs, () where an input is no tensor; None where the text states none."""
    try:
        shapes = msgspec.json.decode(sizes, type=list[list[int]]) if sizes else []
    except msgspec.DecodeError:
        return None
    dims = tuple(tuple(shape) for shape in shapes)
    return OpInputs(dims, ("",) * len(dims), ("",) * len(dims)) if any(dims) else None
