"""Names made to be hard for a regular expression: its own pieces, over and over, and never quite the whole of it."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

# The parser behind `re`: the standard library offers no other way to see the pieces of a pattern.
_parser: Any = import_module("re._parser")
_FILLERS: Final = ("a", "_", "1", " ", "(", ".")
_REPEATS: Final = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_CLASSES: Final = {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " "}
_MOST_PIECES: Final = 12


def hard_names(pattern: str, length: int) -> Iterator[str]:
    """Names of that length for a pattern: each piece repeated, with a filler between, behind another piece."""
    pieces = _pieces(pattern)[:_MOST_PIECES]
    units = [*_FILLERS, *pieces, "".join(pieces)]
    units += [piece + filler for piece in pieces for filler in ("_", "a")]
    units += [one + other for one in pieces[:4] for other in pieces[:4]]
    for unit in dict.fromkeys(units):
        yield (unit * length)[:length]
    for piece in pieces:
        for filler in _FILLERS:
            yield (piece + filler * length)[:length]


def _pieces(pattern: str) -> list[str]:
    """Runs of letters of a pattern in the order in which they stand, each once, and a letter of each class."""
    found: list[str] = []
    _walk(_parser.parse(pattern), found)
    return [piece for piece in dict.fromkeys(found) if piece]


def _walk(items: Any, found: list[str]) -> None:
    run = ""
    for operator, argument in items:
        kind = str(operator)
        if kind == "LITERAL":
            run += chr(argument)
            continue
        found.append(run)
        run = ""
        if kind in _REPEATS:
            _walk(argument[2], found)
        elif kind == "SUBPATTERN":
            _walk(argument[3], found)
        elif kind == "BRANCH":
            for branch in argument[1]:
                _walk(branch, found)
        elif kind in ("ASSERT", "ASSERT_NOT"):
            _walk(argument[1], found)
        elif kind == "IN":
            found.extend(_of_class(str(what), value) for what, value in argument)
    found.append(run)


def _of_class(kind: str, value: Any) -> str:
    if kind == "LITERAL":
        return chr(value)
    if kind == "RANGE":
        return chr(value[0])
    return _CLASSES.get(str(value), "w") if kind == "CATEGORY" else ""
