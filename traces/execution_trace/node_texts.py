"""A long JSON list of objects, cut into its objects without parsing the file as a whole, in constant memory.

Writers of execution traces do not escape operator names, so one odd name breaks the file for a parser; and a killed job
leaves the end off. Here every object is cut out by what the objects of one writer have in common, their first key, and
decoded for itself. Inside a valid JSON text a quote is escaped, so the start of an object never occurs in a string.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from traces.content import Content, Limits

LARGEST_NODE_BYTES: Final = 8 << 20
"""A longer object is no node: writers shorten lists to 4,096 elements. It is passed on cut off."""

_FIRST_KEY: Final = re.compile(rb'\s{0,4096}\{\s{0,4096}"([A-Za-z_]{1,64})"\s{0,64}:')
_MARKS: Final = re.compile(rb'\\.|["{}\[\]]', re.DOTALL)
# of objects that begin with a name, those that go on with a type are attributes of a node
_NOT_AN_ATTRIBUTE: Final = rb'"(?:[^"\\]|\\.){0,4096}"\s{0,64},\s{0,4096}"(?!type")'
_LONGEST_MATCH: Final = 16_384
_BEHIND: Final = b" \t\r\n,"


@dataclass(slots=True)
class NodeTexts:
    """The objects of the list under `key`. `found`, `cut_off` and `count` are complete once they were iterated over."""

    content: Content
    key: str
    limits: Limits
    found: bool = False
    cut_off: bool = False
    count: int = 0

    def __iter__(self) -> Iterator[bytes]:
        """Text of each object. Raises `TraceTooLarge` for max_events, and what reading the content raises."""
        opening = re.compile(rb'"' + self.key.encode() + rb'"\s{0,64}:\s{0,4096}\[').search(self.content.head)
        if opening is None:
            return
        self.found = True
        pieces = self._behind(opening.end())
        pending = b""
        while len(pending) < _LONGEST_MATCH and (piece := next(pieces, b"")):
            pending += piece
        first = _FIRST_KEY.match(pending)
        if first is None:
            self.cut_off = not pending.lstrip().startswith(b"]")
            return
        yield from self._objects(_beginnings(first[1]), pending.lstrip(), pieces)

    def _behind(self, offset: int) -> Iterator[bytes]:
        """The content from an offset on."""
        for block in self.content.blocks():
            if offset < len(block):
                yield bytes(block[offset:])
            offset = max(offset - len(block), 0)

    def _objects(self, beginnings: re.Pattern[bytes], pending: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """`pending` starts with an object. Cut it at every beginning that is far enough from its end to be whole, and
        read on.
        """
        seen = 1
        while True:
            sure = len(pending) - _LONGEST_MATCH
            start = 0
            for begin in beginnings.finditer(pending, seen):
                if begin.start() >= sure:
                    break
                yield self._counted(pending[start : begin.start()].rstrip(_BEHIND))
                start = begin.start()
            pending = pending[start:]
            seen = max(sure - start, 1)
            piece = next(pieces, b"")
            if not piece:
                break
            if len(pending) > LARGEST_NODE_BYTES:  # keep its beginning, so that it is counted as the one it is
                pending, seen = pending[:LARGEST_NODE_BYTES] + pending[-_LONGEST_MATCH:], LARGEST_NODE_BYTES
            pending += piece
        yield from self._last(beginnings, pending)

    def _last(self, beginnings: re.Pattern[bytes], pending: bytes) -> Iterator[bytes]:
        """The objects at the end, the last of which is followed by the rest of the file."""
        start = 0
        for begin in beginnings.finditer(pending, 1):
            yield self._counted(pending[start : begin.start()].rstrip(_BEHIND))
            start = begin.start()
        last = _object(pending[start:])
        self.cut_off = last is None or not pending[start + len(last) :].lstrip().startswith(b"]")
        if last is not None:
            yield self._counted(last)

    def _counted(self, text: bytes) -> bytes:
        self.count += 1
        if self.count > self.limits.max_events:
            self.limits.check("max_events", self.count, f"number of nodes in {self.content.file}")
        return text


def _beginnings(first_key: bytes) -> re.Pattern[bytes]:
    """What every object of the list begins with."""
    key = rb'\{\s{0,4096}"' + first_key + rb'"\s{0,64}:'
    return re.compile(key + rb"\s{0,64}" + _NOT_AN_ATTRIBUTE if first_key == b"name" else key, re.DOTALL)


def _object(text: bytes) -> bytes | None:
    """The JSON object that `text` begins with; None where it does not end."""
    depth = 0
    quoted = False
    for found in _MARKS.finditer(text):
        mark = found[0]
        if mark == b'"':
            quoted = not quoted
        elif not quoted and mark in (b"{", b"["):
            depth += 1
        elif not quoted and mark in (b"}", b"]"):
            depth -= 1
            if not depth:
                return text[: found.end()]
    return None
