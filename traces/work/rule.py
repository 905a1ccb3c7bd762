"""A rule: the names of an operator and its formula."""

import re
from collections.abc import Callable
from typing import NamedTuple

from traces.work.call import Call, Work

Formula = Callable[[Call], Work | None]


class Rule(NamedTuple):
    """`names` has to match a whole operator name."""

    names: re.Pattern[str]
    formula: Formula


def rules(*pairs: tuple[str, Formula]) -> tuple[Rule, ...]:
    """Rules from (pattern, formula); patterns are of our own making and run over untrusted names in linear time."""
    return tuple(Rule(re.compile(pattern), formula) for pattern, formula in pairs)
