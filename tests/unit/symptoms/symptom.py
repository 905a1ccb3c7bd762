"""One thing that went wrong somewhere, and the tests that show it does not go wrong here."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Symptom:
    """ids: public reports of it, "project#number" (PR: a change that mends it); () for what follows from several.

    tests: "file::test", the file's name being its own among all test files.
    """

    text: str
    tests: tuple[str, ...]
    ids: tuple[str, ...] = ()


def symptom(text: str, *tests: str, ids: str = "") -> Symptom:
    """A symptom, its ids with blanks between."""
    return Symptom(text, tests, tuple(ids.split()))
