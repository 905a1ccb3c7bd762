"""How deep JSON text is nested, told without a parser that recurses."""

import re
from typing import Final

from traces.content import Limits

_STRINGS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKETS: Final = re.compile(rb"[\[\]{}]")


def check_nesting(text: bytes, limits: Limits) -> None:
    """Raise `TraceTooLarge` where `text` is nested deeper than max_depth; brackets inside strings do not count."""
    if text.count(b"{") + text.count(b"[") <= limits.max_depth:
        return
    depth = deepest = 0
    for bracket in _BRACKETS.findall(_STRINGS.sub(b"", text)):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    limits.check("max_depth", deepest, "nesting of an event")
