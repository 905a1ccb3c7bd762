"""Ways to damage any file: bits, ranges and numbers, with no idea of the format.

All choices come from the `Random` that is passed in, so that a damaged file can be made again.
"""

import re
from collections.abc import Callable
from random import Random
from typing import Final

Edit = Callable[[bytearray, Random], bytearray]

NUMBERS: Final = (
    "0", "-0", "1", "-1", "7", "255", "256", "65535", "2147483647", "2147483648", "4294967296", "9007199254740993",
    "4611686018427387904", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1" + "0" * 30,
    "10000000000", "1e5", "1e308", "1e999", "-1e999", "0.0001", "0.00005", "1.5", "1712195495505582.988", "86400000001",
    "NaN", "Infinity", "1" * 400,
)  # fmt: skip
"""What a number is replaced with: edges of every width, times of every size, and what is no number."""

_BYTES: Final = (0x00, 0x01, 0x0A, 0x1F, 0x22, 0x2C, 0x5B, 0x5C, 0x5D, 0x7B, 0x7D, 0x7F, 0x80, 0xC0, 0xED, 0xFF)
_DIGITS: Final = re.compile(rb"-?\d{1,40}(?:\.\d{1,20})?")
_NESTS: Final = (2, 60, 70, 400)
_MOST_EDITS: Final = 4
_SPLICED_SHARE: Final = 0.1


def damaged(data: bytes, random: Random, other: bytes = b"") -> bytes:
    """`data` after one to four edits; `other` is spliced in at times."""
    held = bytearray(data)
    for _ in range(random.randint(1, _MOST_EDITS)):
        splices = other and random.random() < _SPLICED_SHARE
        held = _spliced(held, random, other) if splices else random.choice(_EDITS)(held, random)
    return bytes(held)


def _range(held: bytearray, random: Random) -> tuple[int, int]:
    start = random.randint(0, len(held))
    longest = random.choice((1, 4, 16, 64, len(held)))
    return start, min(len(held), start + random.randint(0, longest))


def _flip(held: bytearray, random: Random) -> bytearray:
    if held:
        held[random.randrange(len(held))] ^= 1 << random.randrange(8)
    return held


def _set(held: bytearray, random: Random) -> bytearray:
    if held:
        held[random.randrange(len(held))] = random.choice(_BYTES)
    return held


def _delete(held: bytearray, random: Random) -> bytearray:
    start, end = _range(held, random)
    del held[start:end]
    return held


def _duplicate(held: bytearray, random: Random) -> bytearray:
    start, end = _range(held, random)
    held[end:end] = held[start:end] * random.choice((1, 1, 2, 5))
    return held


def _insert(held: bytearray, random: Random) -> bytearray:
    place = random.randint(0, len(held))
    held[place:place] = random.randbytes(random.randint(1, 12))
    return held


def _move(held: bytearray, random: Random) -> bytearray:
    start, end = _range(held, random)
    piece = held[start:end]
    del held[start:end]
    place = random.randint(0, len(held))
    held[place:place] = piece
    return held


def _truncate(held: bytearray, random: Random) -> bytearray:
    del held[random.randint(0, len(held)) :]
    return held


def _swap_number(held: bytearray, random: Random) -> bytearray:
    found = list(_DIGITS.finditer(held))
    if found:
        one = random.choice(found)
        text = random.choice(NUMBERS).encode() if random.random() < 0.7 else random.choice(found).group()
        held[one.start() : one.end()] = text
    return held


def _nest(held: bytearray, random: Random) -> bytearray:
    place = random.randint(0, len(held))
    opening, closing = random.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")"), (b"<", b">")))
    depth = random.choice(_NESTS)
    held[place:place] = opening * depth + (closing * depth if random.random() < 0.7 else b"")
    return held


def _spliced(held: bytearray, random: Random, other: bytes) -> bytearray:
    start, end = _range(held, random)
    from_, to = _range(bytearray(other), random)
    held[start:end] = other[from_:to]
    return held


_EDITS: Final[tuple[Edit, ...]] = (
    _flip,
    _set,
    _delete,
    _duplicate,
    _insert,
    _move,
    _truncate,
    _swap_number,
    _swap_number,
    _nest,
)
