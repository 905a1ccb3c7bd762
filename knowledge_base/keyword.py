"""Keyword ranking: Okapi BM25 (Robertson and Walker 1994) over what a note says it is about.

A note's words are those of its title, its aliases, its claim and the names of its levers and causes. A word counts once
a field, however often it is repeated there, so that repetition wins nothing.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from knowledge_base.glossary import EXPANSIONS

# the usual values of both (Robertson and Zaragoza 2009); the tuning half of the labelled queries is flat around them
K1 = 1.2
B = 0.75
# title and aliases name the subject, the claim only mentions it (chosen on the tuning half)
NAMING_WEIGHT = 3
_TOKEN = re.compile(r"[a-z0-9]+(?:[-_/+.][a-z0-9]+)*")
_JOINTS = re.compile(r"[-_/+.]")
_AXIS = re.compile("etp|[cdeptv]p")
_DEGREES = re.compile(f"(?:(?:{_AXIS.pattern})[0-9]+)+")
_ENDINGS = ("ations", "ation", "ating", "ated", "ates", "ate", "ings", "ing", "ed", "es", "e", "s")
_SHORTEST_STEM = 4
_STOP_WORDS = frozenset(
    re.findall(
        "[a-z]+",
        """a after all an and any are as at be been before between but by can could do does each every for from had has
        have how i if in into is it its more most my new no not of on one only or other our over per same should so some
        than that the their them then there they this to too up us use was we were what when where which while who why
        will with would you your""",
    )
)
# shorter words are abbreviations as often as words, and a slip in a long word leaves more of it
_SHORTEST_CORRECTED = 5
_TWO_SLIPS_FROM = 8


@dataclass(frozen=True)
class Subject:
    """What a note says it is about: texts of its author."""

    title: str
    aliases: tuple[str, ...]
    names: tuple[str, ...]
    claim: str


def tokens(text: str) -> list[str]:
    """Words in lower case; a compound (all-to-all, zero-3, max_num_seqs) as a whole and in its parts.

    Degrees (tp8, pp2tp8) give the names of their axes as well, without the numbers.
    """
    found = []
    for word in _TOKEN.findall(text.lower()):
        parts = _JOINTS.split(word)
        degrees = [axis for part in parts if _DEGREES.fullmatch(part) for axis in _AXIS.findall(part)]
        found += [*(["-".join(parts)] if len(parts) > 1 else []), *parts, *degrees]
    return found


def expanded(query: str) -> str:
    """The query with the words that its abbreviations stand for behind it."""
    meant = dict.fromkeys(EXPANSIONS[token] for token in tokens(query) if token in EXPANSIONS)
    return f"{query} ({'; '.join(meant)})" if meant else query


def bm25(query: str, subjects: Mapping[str, Subject]) -> dict[str, float]:
    """The score of every note that shares a word with the query, by id; words nobody uses are read as the nearest used.

    sum over words of ln(1 + (N - n + 0.5) / (n + 0.5)) * f (K1 + 1) / (f + K1 (1 - B + B * length / mean length)), with
    N notes, n of them with the word, and f the weights of the fields that hold it.
    """
    if not subjects:
        return {}
    index = _indexed(tuple(subjects.values()))
    keys = tuple(subjects)
    scores: dict[str, float] = {}
    for word in dict.fromkeys(_stem(_corrected(token, index)) for token in _telling(tokens(query))):
        having = index.having.get(word, ())
        rarity = math.log(1 + (len(keys) - len(having) + 0.5) / (len(having) + 0.5))
        for place, weight in having:
            damping = K1 * (1 - B + B * index.lengths[place])
            scores[keys[place]] = scores.get(keys[place], 0.0) + rarity * weight * (K1 + 1) / (weight + damping)
    return scores


@dataclass(frozen=True)
class _Index:
    """Some notes by their words. having: stem -> (place of the note, weight of the fields that hold it).

    lengths: summed weights of each note, as a ratio to their mean. used: word as written -> notes that use it.
    """

    having: Mapping[str, Sequence[tuple[int, int]]]
    lengths: Sequence[float]
    used: Mapping[str, int]


@lru_cache(maxsize=512)
def _indexed(subjects: tuple[Subject, ...]) -> _Index:
    """The index of some notes; a search asks the same few hundred sets again and again."""
    having: dict[str, list[tuple[int, int]]] = {}
    used: Counter[str] = Counter()
    lengths = []
    for place, subject in enumerate(subjects):
        weights = _weights(subject)
        lengths.append(sum(weights.values()))
        used.update(_vocabulary(subject))
        for word, weight in weights.items():
            having.setdefault(word, []).append((place, weight))
    mean = sum(lengths) / len(lengths) or 1.0
    return _Index(having, [length / mean for length in lengths], used)


@lru_cache(maxsize=4096)
def _weights(subject: Subject) -> Mapping[str, int]:
    """Stem -> summed weights of the fields that hold it."""
    naming = (subject.title, " ".join(subject.aliases))
    plain = (_names_in_words(subject), subject.claim)
    found: Counter[str] = Counter()
    for weight, fields in ((NAMING_WEIGHT, naming), (1, plain)):
        for field in fields:
            found.update(dict.fromkeys(map(_stem, _telling(tokens(field))), weight))
    return MappingProxyType(found)


@lru_cache(maxsize=4096)
def _vocabulary(subject: Subject) -> frozenset[str]:
    """The words of a note as they are written."""
    fields = (subject.title, *subject.aliases, _names_in_words(subject), subject.claim)
    return frozenset(token for field in fields for token in tokens(field))


def _names_in_words(subject: Subject) -> str:
    """exposed_ep is exposed expert parallelism."""
    return expanded(" ".join(subject.names).replace("_", " "))


def _telling(words: Iterable[str]) -> Iterable[str]:
    return (word for word in words if word not in _STOP_WORDS)


def _stem(word: str) -> str:
    """Endings off, where enough is left: batches, batching and batched are one word, as are both spellings of -ize."""
    word = word.replace("iz", "is")
    if word.endswith("ies") and len(word) > _SHORTEST_STEM:
        return word[:-3] + "y"
    if word.endswith("ss"):
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[: -len(ending)]
    return word


def _corrected(word: str, index: _Index) -> str:
    """The word, or the nearest used one with the same first letter where nobody uses it; equally near: the commoner."""
    if len(word) < _SHORTEST_CORRECTED or not word.isalpha() or word in EXPANSIONS or _stem(word) in index.having:
        return word
    most = 2 if len(word) >= _TWO_SLIPS_FROM else 1
    alike = (known for known in index.used if known[0] == word[0] and abs(len(known) - len(word)) <= most)
    near = [(slips, -index.used[known], known) for known in alike if (slips := _slips(word, known)) <= most]
    return min(near)[2] if near else word


def _slips(one: str, other: str) -> int:
    """Letters to insert, delete, replace or swap with their neighbour (optimal string alignment distance)."""
    before: Sequence[int] = ()
    row: Sequence[int] = range(len(other) + 1)
    for i, letter in enumerate(one, start=1):
        following = [i]
        for j, wanted in enumerate(other, start=1):
            cost = min(row[j] + 1, following[-1] + 1, row[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and (letter, one[i - 2]) == (other[j - 2], wanted):
                cost = min(cost, before[j - 2] + 1)
            following.append(cost)
        before, row = row, following
    return row[-1]
