"""Which regular expressions are let near untrusted names: short, lower case, and linear enough by their form alone.

The search of Python's `re` backtracks. How far is bounded here from the pattern, without running it: the ways a match
can be attempted from one start are the product of the choices each repeat and each alternative leaves; a repeat without
a bound counts as the longest name that is looked at. Refused are more ways than `MOST_WAYS` (`MOST_WAYS_ANCHORED`
where the pattern begins with ^, for then there is only one start), repeats inside repeats, and back-references. The
bound is generous: real names come nowhere near it.
"""

import re
import warnings
from importlib import import_module
from typing import Any, Final

from traces.rules.rule import LONGEST_NAME

LONGEST_PATTERN: Final = 400
MOST_WAYS: Final = 2_000
MOST_WAYS_ANCHORED: Final = 200_000

# The parser behind `re`: the standard library offers no other way to see the structure of a pattern.
_parser: Any = import_module("re._parser")
_REPEATS: Final = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
_SINGLE: Final = frozenset({"LITERAL", "NOT_LITERAL", "ANY", "IN", "AT", "CATEGORY", "RANGE"})


def why_refused(pattern: str) -> str:
    """Why the pattern is not accepted; '' where it is."""
    if len(pattern) > LONGEST_PATTERN:
        return f"it has {len(pattern):,} characters, {LONGEST_PATTERN} are allowed"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of what a later Python will read otherwise
            re.compile(pattern)
            parsed = list(_parser.parse(pattern))
    except (re.error, OverflowError, RecursionError, Warning) as error:
        return f"it is no regular expression: {error}"
    shouted = re.sub(r"\\.", "", pattern)
    if shouted != shouted.lower():
        return "it has capital letters, and names are compared in lower case"
    try:
        ways = _sequence(parsed)
    except _Refused as refused:
        return str(refused)
    anchored = all(_anchored(branch) for branch in _branches(parsed))
    limit = MOST_WAYS_ANCHORED if anchored else MOST_WAYS
    if ways > limit:
        return f"it can be attempted in {ways:,} ways, {limit:,} are allowed: bound its repeats, such as .{{0,30}}"
    return ""


class _Refused(Exception):
    """A construct that is never accepted."""


def _sequence(items: list[Any]) -> int:
    ways = 1
    for operator, argument in items:
        ways *= _ways(str(operator), argument)
    return ways


def _ways(operator: str, argument: Any) -> int:
    if operator in _SINGLE:
        return 1
    if operator in _REPEATS:
        low, high, body = argument
        inner = _sequence(list(body))
        if inner > 1 and int(high) > 1:
            raise _Refused("it repeats what is itself repeated or a choice: write it out")
        most = min(int(high), LONGEST_NAME)
        return (most - min(int(low), most) + 1) * inner
    if operator == "BRANCH":
        return sum(_sequence(list(branch)) for branch in argument[1])
    if operator == "SUBPATTERN":
        return _sequence(list(argument[3]))
    if operator in ("ASSERT", "ASSERT_NOT"):
        return _sequence(list(argument[1]))
    raise _Refused(f"it uses {operator.lower().replace('_', ' ')}, which is not accepted")


def _branches(parsed: list[Any]) -> list[list[Any]]:
    """Alternatives of the whole pattern; re takes a common beginning out of them, which then anchors all."""
    if parsed and str(parsed[0][0]) == "BRANCH" and len(parsed) == 1:
        return [list(branch) for branch in parsed[0][1][1]]
    return [parsed]


def _anchored(branch: list[Any]) -> bool:
    return bool(branch) and str(branch[0][0]) == "AT" and str(branch[0][1]) == "AT_BEGINNING"
