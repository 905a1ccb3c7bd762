"""Words: a text a user wrote, as sentences in one spelling, and the numbers it states by name. Text is data throughout:
it is matched against fixed patterns, never run, formatted or followed.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_SENTENCE = re.compile(r"(?<=[a-z0-9)%\"'][.!?])\s+(?=\S)|;\s*")
_SETTINGS = re.compile(r"\s*(configuration|config|settings|flags|figures)\s*:", re.IGNORECASE)
_FIGURES = re.compile(r"\s*figures\s*:", re.IGNORECASE)
_DESCRIBED = re.compile(r"\s*(model|hardware)\b", re.IGNORECASE)
_FILLER = re.compile(r"[_=:\"'`(){}\[\]]+")
_NUMBER = r"(-?\d+(?:,\d{3})*(?:\.\d+)?)\s*(k|m|b|g)?(?![\w.]*\d)"
_SCALE = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9}
# a sentence that gives an order and observes nothing: what it names is no sign of the run
_ORDER = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,60}\b(?:instructions?|rules?|prompts?|everything|all|previous|above)\b"
    r"|\b(?:system|assistant|user)\s*:|\byou (?:are|must|should|will|shall)\b"
    r"|\b(?:rank|propose|recommend|reply)\b.{0,80}\bfirst\b(?! token)"
    r"|^\W*(?:please\s+)?(?:propose|recommend|respond|reply|pretend)\b",
    re.IGNORECASE,
)
LONGEST_SENTENCE = 600  # characters of one sentence that are read


@dataclass(frozen=True)
class Sentence:
    """One sentence: as written, and lower-cased with joining punctuation as spaces.

    setting: it lists settings or figures and observes nothing: of a line that starts with 'Configuration:' or
    'Figures:'. described: it describes model or machine, a line that starts with 'Model' or 'Hardware'.
    figures: of a line that starts with 'Figures:'.
    """

    written: str
    plain: str
    setting: bool = False
    described: bool = False
    figures: bool = False


def without_orders(text: str) -> str:
    """The text without sentences that give an order: an order is data like the rest, and observes nothing."""
    return "\n".join(_without_orders(line) if _ORDER.search(line) else line for line in text.split("\n"))


def _without_orders(line: str) -> str:
    return "; ".join(part for part in _SENTENCE.split(line) if not _ORDER.search(part))


def sentences(text: str) -> tuple[Sentence, ...]:
    """The sentences of a text, split at full stops, semicolons and line ends."""
    found = []
    for line in text.split("\n"):
        setting, described, figures = (pattern.match(line) is not None for pattern in (_SETTINGS, _DESCRIBED, _FIGURES))
        for part in _SENTENCE.split(line):
            written = " ".join(part.split())[:LONGEST_SENTENCE]
            if written:
                found.append(Sentence(written, plain(written), setting, described, figures))
    return tuple(found)


def plain(text: str) -> str:
    """One spelling: lower case, `key_name: value` and `key=value` as 'key name value'."""
    return " ".join(_FILLER.sub(" ", text.lower()).split())


def number_of(text: str, names: Iterable[str]) -> float | None:
    """The first number that follows one of the names ('tp 4', 'batch 4k'); None where there is none.

    text: in the spelling of `plain`. names: alternatives, as regular expressions of ours.
    """
    for name in names:
        found = re.search(rf"(?<![\w-]){name}\s*(?:of |is |was |at |about |~|x )?{_NUMBER}(?![\w]*%)", text)
        if found:
            return float(found[1].replace(",", "")) * _SCALE[found[2] or ""]
    return None


def counted(text: str, nouns: Iterable[str]) -> float | None:
    """The first number before one of the nouns ('four' is not read, '4 nodes' is)."""
    for noun in nouns:
        found = re.search(rf"(?<![\w.]){_NUMBER}[ -]{noun}\b", text)
        if found:
            return float(found[1].replace(",", "")) * _SCALE[found[2] or ""]
    return None


def share_in(text: str) -> float | None:
    """A share the text states: '45 %' -> 0.45, '23.5 of 28.8 s' -> 0.82; None without one."""
    part = re.search(
        r"(\d+(?:\.\d+)?)\s*(?:ms|s|min|gb|gib)?\s+(?:out )?of\s+(?:the |a |an |about )?(\d+(?:\.\d+)?)", text
    )
    if part and 0 < float(part[1]) <= float(part[2]):
        return float(part[1]) / float(part[2])
    percent = re.search(r"(?<![\w.])(\d+(?:\.\d+)?)(?:\s*-\s*(\d+(?:\.\d+)?))?\s*(?:%|per ?cent|pct)", text)
    if percent and 0 <= float(percent[1]) <= 100:
        high = float(percent[2]) if percent[2] else float(percent[1])
        return (float(percent[1]) + high) / 200 if high <= 100 else float(percent[1]) / 100
    named = re.search(r"\b(?:pct|percent) (\d+(?:\.\d+)?)\b", text)
    if named and float(named[1]) <= 100:
        return float(named[1]) / 100
    words = {"two thirds": 2 / 3, "one third": 1 / 3, "a third": 1 / 3, "half": 0.5, "three quarters": 0.75}
    return next((value for word, value in words.items() if re.search(rf"\b{word}\b", text)), None)


def gap_in(text: str) -> float | None:
    """How many times slower a text says the run is than it could be: '3.5x slower' -> 3.5, '40 % behind' -> 1.67."""
    times = re.search(
        r"(?<![\w.])(\d+(?:\.\d+)?) ?(?:x|times) (?:slower|longer|lower|less|behind|worse|as long|the published)", text
    )
    alone = re.search(
        r"(?:alone|isolat\w+|other engine|elsewhere|should|baseline) .{0,20}?(\d+(?:\.\d+)?) ?(?:x|times)\b", text
    )
    found = times or alone
    if found and float(found[1]) > 1:
        return float(found[1])
    behind = re.search(r"(\d+(?:\.\d+)?) ?% (?:slower|behind|lower|less|worse|below)", text)
    if behind and 0 < float(behind[1]) < 95:
        return 1 / (1 - float(behind[1]) / 100)
    return None
