"""Ways to change a protobuf file that leave it protobuf, and lengths that lie.

Read without a schema: a delimited field counts as a message where its bytes can be read as one.
"""

import struct
from dataclasses import dataclass, field
from random import Random
from typing import Final

from tests.unit.xplane.xplane_builder import varint

_DOUBLES: Final = (0.0, -1.0, 1.0, 1e-320, 1e-9, 1e18, 1e300, float("inf"), float("nan"))
_WORDS: Final = (0, 1, 2, 127, 128, 2**31, 2**32 - 1, 2**53, 10**10, 10**12, 86_400 * 10**12, 2**62, 2**63, 2**64 - 1)
_TEXTS: Final = (b"", b"0", b"\xff", b"%while.1", b"/device:TPU:0", b"all-reduce", b"[[1, 2], [3]]", b"-1", b"a" * 300)
_LYING: Final = (0, 1, 127, 10**10, 2**31, 2**63, 2**64 - 1)
_MOST_EDITS: Final = 4
_DEEPEST: Final = 8
_DOUBLE: Final = 1
_BYTES_OF: Final = {_DOUBLE: 8, 5: 4}


@dataclass
class Piece:
    """One field. Of `word` (varint), `raw` (fixed, or delimited bytes) and `inner` (a message) one counts."""

    number: int
    wire: int
    word: int = 0
    raw: bytes = b""
    inner: list["Piece"] | None = None
    stated_length: int | None = None

    def encode(self) -> bytes:
        head = varint(self.number << 3 | self.wire)
        if self.wire == 0:
            return head + varint(self.word)
        if self.wire != 2:
            return head + self.raw
        body = self.raw if self.inner is None else encoded(self.inner)
        return head + varint(len(body) if self.stated_length is None else self.stated_length) + body


@dataclass
class _Reading:
    data: bytes
    at: int = 0
    pieces: list[Piece] = field(default_factory=list)


def reshaped_protobuf(data: bytes, random: Random) -> bytes | None:
    """The message after one to four changes; None where the bytes are no message."""
    pieces = decoded(data)
    if not pieces:
        return None
    for _ in range(random.randint(1, _MOST_EDITS)):
        _change(random.choice(_messages(pieces)), random)
    return encoded(pieces)


def reshaped_frames(data: bytes, random: Random) -> bytes | None:
    """The same for messages that follow one another, each behind its length (Chakra)."""
    frames: list[list[Piece]] = []
    at = 0
    while at < len(data):
        length = _varint(data, at)
        if length is None or length[1] + length[0] > len(data):
            return None
        at = length[1] + length[0]
        frames.append(decoded(data[length[1] : at]) or [])
    if not frames:
        return None
    for _ in range(random.randint(1, _MOST_EDITS)):
        what = random.randrange(8)
        if what == 0:
            frames.insert(random.randint(0, len(frames)), random.choice(frames))
        elif what == 1 and len(frames) > 1:
            del frames[random.randrange(len(frames))]
        else:
            messages = _messages(random.choice(frames))
            _change(random.choice(messages), random)
    bodies = [encoded(one) for one in frames]
    return b"".join(varint(len(body)) + body for body in bodies)


def decoded(data: bytes, depth: int = 0) -> list[Piece] | None:
    """The fields of a message; None where the bytes are none."""
    reading = _Reading(data)
    while reading.at < len(data):
        if not _read_one(reading, depth):
            return None
    return reading.pieces


def encoded(pieces: list[Piece]) -> bytes:
    return b"".join(piece.encode() for piece in pieces)


def _read_one(reading: _Reading, depth: int) -> bool:
    tag = _varint(reading.data, reading.at)
    if tag is None or not tag[0] >> 3:
        return False
    number, wire, at = tag[0] >> 3, tag[0] & 7, tag[1]
    if wire == 0:
        word = _varint(reading.data, at)
        if word is None:
            return False
        reading.pieces.append(Piece(number, wire, word=word[0]))
        reading.at = word[1]
        return True
    if wire == 2:
        length = _varint(reading.data, at)
        if length is None:
            return False
        size, at = length
    else:
        size = _BYTES_OF.get(wire, -1)
    if size < 0 or at + size > len(reading.data):
        return False
    raw = reading.data[at : at + size]
    inner = decoded(raw, depth + 1) if wire == 2 and raw and depth < _DEEPEST else None
    reading.pieces.append(Piece(number, wire, raw=raw, inner=inner))
    reading.at = at + size
    return True


def _varint(data: bytes, at: int) -> tuple[int, int] | None:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            return None
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
    return None


def _messages(pieces: list[Piece]) -> list[list[Piece]]:
    found, waiting = [], [pieces]
    while waiting:
        one = waiting.pop()
        found.append(one)
        waiting.extend(piece.inner for piece in one if piece.inner is not None)
    return found


def _change(message: list[Piece], random: Random) -> None:
    if not message:
        message.append(Piece(random.randint(1, 12), 0, word=random.choice(_WORDS)))
        return
    place, what = random.randrange(len(message)), random.randrange(9)
    piece = message[place]
    if what == 0:
        del message[place]
    elif piece.wire == _DOUBLE:
        message[place] = Piece(piece.number, _DOUBLE, raw=struct.pack("<d", random.choice(_DOUBLES)))
    elif what == 1:
        message.insert(random.randint(0, len(message)), piece)
    elif what == 2:
        message[place] = Piece(random.randint(1, 12), piece.wire, piece.word, piece.raw, piece.inner)
    elif what == 3 and piece.wire == 2:
        message[place] = Piece(piece.number, 2, raw=piece.raw, inner=piece.inner, stated_length=random.choice(_LYING))
    elif what == 4:
        random.shuffle(message)
    elif what == 5:
        message[place] = Piece(piece.number, 0, word=random.choice(_WORDS))
    elif what == 6:
        message[place] = Piece(piece.number, 2, raw=random.choice(_TEXTS))
    elif piece.wire == 0:
        message[place] = Piece(piece.number, 0, word=(piece.word + random.choice((-1, 1, 1000, 2**40))) % 2**64)
    else:
        message[place] = Piece(piece.number, 2, raw=piece.raw[: random.randint(0, len(piece.raw))])
