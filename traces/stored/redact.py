"""Take every foreign word out of a summary: what is left are numbers and the words of our own published vocabulary.

Text is cut into identifiers (letters, digits, underscores, and all that is not ASCII) and these into runs of letters.
An identifier stays where every run is in `words.txt`, the words of this package's own messages, patterns and fields;
otherwise it becomes a pseudonym, `x1`, `x2`, ..., the same one wherever it stands, digits and all. So do three and more
numbers joined by points, colons or hyphens: addresses, dates, times of day. A file name becomes `file1`, `file2`, ...
as a whole; that of a file that was left out, which only warnings hold, a pseudonym where it has an ending and no blank.
So no name, of a file, kernel, operator, process group or host, survives unless it is made of our words and of single
numbers; equal names stay equal, and different ones different.

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

_WORD: Final = r"[A-Za-z0-9_\x80-\U0010ffff]"
_NAME: Final = re.compile(rf"(?P<address>(?<!\d)\d+(?:[.:-]\d+){{2,}}(?!{_WORD}))|{_WORD}+")
_LETTERS: Final = re.compile(r"[A-Za-z]+")
_PSEUDONYM: Final = re.compile(r"(?:x|file)\d+")
_NO_BLANK: Final = re.compile(r"\S+")
_FILE_NAME: Final = re.compile(r"\S*\.[A-Za-z]\w{0,15}(?=[.:;,)'\"]*\Z)")
_KEPT: Final = (("implied", "chip_name", "value"),)
_SENTENCES: Final = ("warnings",)
REDACTED: Final = "names in this summary are redacted"


@cache
def vocabulary() -> frozenset[str]:
    """Words that may stay, in lower case."""
    return frozenset(files("traces.stored").joinpath("words.txt").read_text("ascii").split())


def redact(summary: TraceSummary) -> TraceSummary:
    """The summary without foreign words, and with a warning that says so. Redacting it again changes nothing."""
    if is_redacted(summary):
        return summary
    masked = _Masks(summary.files).walk(summary, ())
    masked["warnings"] = [REDACTED, *masked["warnings"]]
    return TraceSummary.model_validate_json(msgspec.json.encode(masked))


def is_redacted(summary: TraceSummary) -> bool:
    """Whether its names are pseudonyms, which mean nothing outside of it."""
    return REDACTED in summary.warnings


def stays(text: str) -> bool:
    """Whether redaction leaves a text of a summary as it is, so that it means the same in every other one."""
    return not any(map(_is_foreign, _NAME.finditer(text)))


def _is_ours(annotation: Any) -> bool:
    """Whether a field holds words of a fixed list alone: they stay, also where a file is called like a part of one."""
    if get_origin(annotation) in (Union, UnionType, tuple):
        return all(one in (None, type(None), Ellipsis) or _is_ours(one) for one in get_args(annotation))
    return get_origin(annotation) is Literal


class _Masks:
    """Pseudonyms in order of first appearance."""

    def __init__(self, files: Sequence[str]) -> None:
        self._named = {name: f"file{number}" for number, name in enumerate(files, 1) if name}
        # the longest first, as one name may be a part of another
        self._files = sorted(self._named.items(), key=lambda item: (-len(item[0]), item[0]))
        self._given: dict[str, str] = {}
        self._done: dict[tuple[str, bool], str] = {}

    def walk(self, value: Any, path: tuple[str, ...]) -> Any:
        """`value` as JSON takes it, with every text masked; keys too, but for the field names of records."""
        if isinstance(value, str):
            return value if path in _KEPT else self.text(value, sentence=path == _SENTENCES)
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

    def text(self, text: str, *, sentence: bool = False) -> str:
        """`text` with file names, and identifiers that are not made of known words, replaced.

        sentence: one of ours, in which a word with an ending is the name of a file.
        """
        if text in self._named:
            return self._named[text]
        key = text, sentence
        if key not in self._done:
            self._done[key] = self._without_files(text, self._files, sentence)
        return self._done[key]

    def _without_files(self, text: str, files: Sequence[tuple[str, str]], sentence: bool) -> str:
        for at, (name, pseudonym) in enumerate(files):
            if name in text:
                pieces = re.split(rf"(?<!{_WORD}){re.escape(name)}(?!{_WORD})", text)
                if len(pieces) > 1:
                    rest = files[at + 1 :]
                    return pseudonym.join(self._without_files(piece, rest, sentence) for piece in pieces)
        return _NO_BLANK.sub(self._word, text) if sentence else _NAME.sub(self._name, text)

    def _word(self, match: re.Match[str]) -> str:
        """A word of a sentence: as a whole where it is a file's name, with a number or a foreign word in it."""
        word = match[0]
        named = _FILE_NAME.match(word)
        if named is not None and (any(map(str.isdigit, word)) or not _is_known(named[0])):
            return self._pseudonym(named[0]) + word[named.end() :]
        return _NAME.sub(self._name, word)

    def _name(self, match: re.Match[str]) -> str:
        return self._pseudonym(match[0]) if _is_foreign(match) else match[0]

    def _pseudonym(self, name: str) -> str:
        return self._given.setdefault(name, f"x{len(self._given) + 1}")


def _is_foreign(match: re.Match[str]) -> bool:
    """Whether what `_NAME` found has to go: also where it could be taken for a pseudonym."""
    name = match[0]
    return match["address"] is not None or not _is_known(name) or _PSEUDONYM.fullmatch(name) is not None


def _is_known(text: str) -> bool:
    """Whether it is ASCII and all its runs of letters are words of ours."""
    return text.isascii() and all(run.lower() in vocabulary() for run in _LETTERS.findall(text))
