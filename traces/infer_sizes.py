"""A size read off operators: the value, how sure it is, and the operators and shapes it came from."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from traces.facts import OpCall
from traces.rules.rule import LONGEST_NAME

_NAME_SHOWN = 60
_SHAPES_SHOWN = 4


class Seen(NamedTuple):
    """One size, with its confidence (0 to 1) and its basis."""

    value: int
    confidence: float
    basis: str


def calls_of(calls: Iterable[OpCall], pattern: re.Pattern[str]) -> Iterator[OpCall]:
    """The calls of operators whose name `pattern` finds."""
    return (call for call in calls if pattern.search(call.name, 0, LONGEST_NAME))


def shown(call: OpCall, count: int = 1) -> str:
    """An operator with the shapes of its first tensors: 'aten::embedding [512, 128] [4, 64] x 2'."""
    shapes = [shape for shape in call.inputs.dims if shape][:_SHAPES_SHOWN]
    return f"{call.name[:_NAME_SHOWN]} {' '.join(str(list(shape)) for shape in shapes)} x {count:,}"


def agreed(found: Counter[int]) -> int | None:
    """The value most calls show; None where they show different ones."""
    if not found:
        return None
    value, count = found.most_common(1)[0]
    return value if 2 * count > found.total() else None
