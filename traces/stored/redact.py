"""Take every foreign word out of a summary: what is left are numbers and the words of our own published vocabulary.

Text is cut into identifiers (letters, digits, underscores) and these into runs of letters. An identifier stays where
every run is in `words.txt`, the words of this package's own messages, patterns and fields; otherwise it becomes a
pseudonym, `x1`, `x2`, ..., the same one wherever it stands, digits and all. A file name becomes `file1`, `file2`, ...
as a whole, as it may hold an address or a date. So no name, of a file, kernel, operator, process group or host,
survives, and equal names stay equal.

The device name stays: without it the chip is not known and nothing can be projected. Sizes and times stay, as they are
what the answer is made of: shapes can tell which model was run, and a reader of the redacted summary can learn that.
"""

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

import msgspec

from projector.specs.record import Record
from traces.summary_types import TraceSummary

_IDENTIFIER: Final = re.compile(r"\w+")
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_KEPT: Final = (("implied", "chip_name", "value"),)
_REDACTED: Final = "names in this summary are redacted"


@cache
def vocabulary() -> frozenset[str]:
    """Words that may stay, in lower case."""
    return frozenset(files("traces.stored").joinpath("words.txt").read_text("ascii").split())


def redact(summary: TraceSummary) -> TraceSummary:
    """The summary without foreign words, and with a warning that says so. Redacting it again changes nothing."""
    if _REDACTED in summary.warnings:
        return summary
    masked = _Masks(summary.files).walk(summary, ())
    masked["warnings"] = [_REDACTED, *masked["warnings"]]
    return TraceSummary.model_validate_json(msgspec.json.encode(masked))


def _is_ours(annotation: Any) -> bool:
    """Whether a field holds words of a fixed list alone: they stay, also where a file is called like a part of one."""
    if get_origin(annotation) in (Union, UnionType, tuple):
        return all(one in (None, type(None), Ellipsis) or _is_ours(one) for one in get_args(annotation))
    return get_origin(annotation) is Literal


class _Masks:
    """Pseudonyms in order of first appearance."""

    def __init__(self, files: Sequence[str]) -> None:
        named = {name: f"file{number}" for number, name in enumerate(files, 1) if name}
        # the longest first, as one name may be a part of another
        self._files = sorted(named.items(), key=lambda item: (-len(item[0]), item[0]))
        self._given: dict[str, str] = {}

    def walk(self, value: Any, path: tuple[str, ...]) -> Any:
        """`value` as JSON takes it, with every text masked; keys too, but for the field names of records."""
        if isinstance(value, str):
            return value if path in _KEPT else self.text(value)
        if isinstance(value, Record):
            return {
                name: item if _is_ours(type(value).model_fields[name].annotation) else self.walk(item, (*path, name))
                for name, item in value
            }
        if isinstance(value, (list, tuple)):
            return [self.walk(item, path) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self.walk(item, path) for key, item in value.items()}
        return value

    def text(self, text: str) -> str:
        """`text` with file names, and identifiers that are not made of known words, replaced."""
        for name, pseudonym in self._files:
            text = text.replace(name, pseudonym)
        return _IDENTIFIER.sub(self._identifier, text)

    def _identifier(self, match: re.Match[str]) -> str:
        identifier = match[0]
        if identifier.isascii() and all(run.lower() in vocabulary() for run in _LETTERS.findall(identifier)):
            return identifier
        return self._given.setdefault(identifier, f"x{len(self._given) + 1}")
