"""Annotations that mark one iteration each, by their names: "iteration 12", "train_step", "batch 3"."""

import re
from collections.abc import Sequence
from typing import Final

_BEFORE: Final = (
    r"(?:train(?:ing|er)?|eval(?:uation)?|val(?:idation)?|test|infer(?:ence)?|generat(?:e|ion)|global|main|one|run"
    r"|profil(?:e|er|ing)|bench(?:mark)?|timed|measured?|warm[ _-]?up)"
)
_ITERATION: Final = re.compile(
    rf"[\[(<# ]{{0,3}}((?:{_BEFORE}[ _.:/-]{{1,2}}){{0,2}}(?:step|iter(?:ation)?|batch))"
    r"(?:[ _.:#=\[(-]{0,3}(\d{1,9}))?(?: ?/ ?\d{1,9})?[\])> #]{0,3}",
    re.IGNORECASE,
)
_WARM_UP: Final = re.compile(r"(?<![a-z])warm[ _-]?up(?![a-z])", re.IGNORECASE)
_NUMBER_AT_END: Final = re.compile(r"#?\d{1,12}$")
_LONGEST: Final = 80


def stem_of(name: str) -> str | None:
    """What the name calls an iteration, its number left out, in lower case; None where it names none.

    A word before "step", "iteration" or "batch" must be one that is said of a whole iteration: forward_step,
    optimizer_step, micro_batch, load_batch and scheduler.step are parts of one.
    """
    match = _ITERATION.fullmatch(name) if len(name) <= _LONGEST else None
    return match[1].lower() if match else None


def is_numbered(name: str) -> bool:
    """Whether an iteration's name bears its number."""
    match = _ITERATION.fullmatch(name) if len(name) <= _LONGEST else None
    return match is not None and match[2] is not None


def names_warm_up(name: str) -> bool:
    """Whether whoever marked the step called it a warm-up."""
    return _WARM_UP.search(name, 0, _LONGEST) is not None


def shown(name: str) -> str:
    """A foreign name as printable text of bounded length."""
    return ascii(name if len(name) <= _LONGEST else f"{name[:_LONGEST]}...")[1:-1]


def span_of(names: Sequence[str]) -> str:
    """Names of consecutive steps in one line: "ProfilerStep#4 to #6 (3 steps)"."""
    first, last = shown(names[0]), shown(names[-1])
    count = f"({len(names)} steps)" if len(names) > 1 else "(1 step)"
    if first == last:
        return f"{first} {count}"
    begun, ended = _NUMBER_AT_END.search(first), _NUMBER_AT_END.search(last)
    if begun and ended and first[: begun.start()] == last[: ended.start()]:
        return f"{first} to {ended[0]} {count}"
    return f"{first} to {last} {count}"
