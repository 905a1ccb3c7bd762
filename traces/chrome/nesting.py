"""How deep JSON text is nested, told without a parser that recurses."""

import re
from typing import Final

from traces.limits import Limits

# A string that is not closed reaches to the end: it matches too, so that no quote in it is tried as a beginning.
_STRINGS: Final = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_BRACKETS: Final = re.compile(rb"[\[\]{}]")
_ALL_BUT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_PAIRS: Final = (b"[]", b"{}")


def may_be_deep(text: bytes, limits: Limits) -> bool:
    """Whether any of the values in `text` may be nested deeper than max_depth; False is certain but for one thing.

    Innermost pairs of brackets are taken away, a layer of each kind a round, until nothing changes; what is left then
    are brackets in strings. Those can hide a nesting only where they are arranged to, and in that case the parser's own
    limit of recursion holds.
    """
    brackets = text.translate(None, _ALL_BUT_BRACKETS)
    layers, before = 0, -1
    while brackets and len(brackets) != before and layers <= limits.max_depth:
        before = len(brackets)
        for pair in _PAIRS:
            brackets = brackets.replace(pair, b"")
            layers += 1
    return layers + len(brackets) > limits.max_depth


def check_nesting(text: bytes, limits: Limits) -> None:
    """Raise `TraceTooLarge` where `text` is nested deeper than max_depth; brackets inside strings do not count."""
    if text.count(b"{") + text.count(b"[") <= limits.max_depth:
        return
    depth = deepest = 0
    for bracket in _BRACKETS.findall(_STRINGS.sub(b"", text)):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    limits.check("max_depth", deepest, "nesting of an event")
