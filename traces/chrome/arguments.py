"""Arguments of operators and collectives, from the text the profiler wrote to records."""

from typing import Any, Final

import msgspec

from traces.chrome.fields import CollectiveFields, whole
from traces.remembered import remembered
from traces.trace import CollectiveArgs, OpInputs

_GROUPS_CACHED: Final = 1_024
_MOST_DIGITS: Final = 9


def collective_args(args: CollectiveFields) -> CollectiveArgs:
    """What stands beside a collective; sizes and ranks below zero count as not stated."""
    size = whole(args.group_size)
    inward, outward = whole(args.in_elements), whole(args.out_elements)
    start, stride = whole(args.group_start), whole(args.group_stride)
    sequence, source, target = (whole(one) for one in (args.sequence, args.source_rank, args.target_rank))
    return CollectiveArgs(
        name=args.collective or "",
        group="" if args.group is None else str(args.group),
        group_description=args.group_description or "",
        group_size=size if size > 0 else None,
        ranks=_ranks(args.group_ranks or ""),
        rank_start=start if start >= 0 else None,
        rank_stride=stride if stride > 0 else None,
        dtype=args.dtype or "",
        in_elements=inward if inward >= 0 else None,
        out_elements=outward if outward >= 0 else None,
        sequence=sequence if sequence >= 0 else None,
        source_rank=source if source >= 0 else None,
        target_rank=target if target >= 0 else None,
        uneven=_uneven(args.in_split, args.out_split),
    )


def op_inputs(dims: bytes, types: bytes, values: bytes, strides: bytes) -> OpInputs:
    """Inputs of an operator from four JSON lists; what is no list counts as empty."""
    shapes = _json_list(dims)
    return OpInputs(
        _shapes(shapes), _strings(types), _strings(values), _shapes(_json_list(strides)), _shape_lists(shapes)
    )


@remembered(_GROUPS_CACHED)
def _ranks(text: str) -> tuple[int, ...]:
    """Ranks of "[0, 1]"; () where the profiler shortened the list."""
    parts = [part.strip() for part in text.strip("[] ").split(",")]
    return tuple(map(int, parts)) if all(part.isdecimal() and len(part) <= _MOST_DIGITS for part in parts) else ()


def _uneven(*splits: str | None) -> bool | None:
    """Whether a list like "[3, 5]" holds different sizes; "[]" means equal ones. None without a list.

    A list the profiler shortened tells by what is left of it.
    """
    lists = [text for text in splits if text is not None]
    sizes = ({part.strip() for part in text.strip("[] ").split(",")} - {"", "..."} for text in lists)
    return any(len(distinct) > 1 for distinct in sizes) if lists else None


def _shapes(listed: list[Any]) -> tuple[tuple[int, ...], ...]:
    """Shapes of the inputs; an input that is a list of tensors, or none, counts as ()."""
    return tuple(
        tuple(shape) if isinstance(shape, list) and all(type(size) is int for size in shape) else () for shape in listed
    )


def _shape_lists(listed: list[Any]) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Shapes of the tensors of each input that is a list of them, () for the others; () where none is a list."""
    lists = tuple(
        _shapes(one) if isinstance(one, list) and one and all(isinstance(shape, list) for shape in one) else ()
        for one in listed
    )
    return lists if any(lists) else ()


def _strings(text: bytes) -> tuple[str, ...]:
    return tuple(item if isinstance(item, str) else "" for item in _json_list(text))


def _json_list(text: bytes) -> list[Any]:
    try:
        parsed = msgspec.json.decode(text if text.isascii() else text.decode("utf-8", "replace")) if text else []
    except msgspec.DecodeError:
        return []
    return parsed if isinstance(parsed, list) else []
