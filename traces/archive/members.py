"""One member of an archive, whatever the kind."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_LONGEST_NAME: Final = 400


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive.

    name      as the archive spells it: untrusted text for people, never a path
    pieces    its bytes, to be read before the next member is asked for
    refused   why it is left out ("a link"); '' for a file to read
    """

    name: str
    pieces: Iterator[bytes]
    refused: str = ""


def left_out(name: str, why: str) -> Member:
    """A member that is not read."""
    return Member(name, iter(()), why)


def shown(name: str) -> str:
    """A foreign name as people may see it: printable, of characters every encoding has, no longer than can be read."""
    kept = "".join(letter if letter.isprintable() else "\ufffd" for letter in name[-_LONGEST_NAME:])
    return f"{'...' if len(name) > _LONGEST_NAME else ''}{kept}"
