"""Names kept from a language model: replaced by tokens before anything is sent, put back in what it writes.

A name is every identifier of the request and of the trace's summary that is no word of our own published vocabulary
(`traces.stored.words.txt`): kernels, files, hosts, jobs, modules, models. What is composed of such texts is masked
identifier by identifier, so a name is hidden wherever a sentence quotes it, whole or cut short. Numbers stay, also the
sizes of a name like 'm70x'; tokens are letters alone, so that no token looks like a figure. Ids of notes stay: they are
how the model cites.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from agents.request import PlanRequest
from projector import catalog
from traces.stored.redact import vocabulary
from traces.summary_types import TraceSummary

IDENTIFIER = re.compile(r"[A-Za-z0-9_\x80-\U0010ffff]+")
LETTERS = re.compile(r"[A-Za-z]+|[\x80-\U0010ffff]+")
TOKEN = re.compile(r"\bHidden([A-Z]+)\b")
SHORTEST = 2
MOST_NAMES = 20_000


def names_of(texts: Iterable[str], models: Iterable[str] = ()) -> tuple[str, ...]:
    """Identifiers of JSON texts (of a request, of a summary) that are not made of our own words, the longest first.

    models: names of models, of which every part with a digit is hidden as well ("70b").
    """
    found = {name for text in texts for value in _strings(json.loads(text)) for name in _foreign(value)}
    parts = {part for model in models for part in IDENTIFIER.findall(model) if not part.isdigit()}
    found |= {part for part in parts if part.lower() not in _ours()}
    return tuple(sorted(found, key=lambda name: (-len(name), name)))[:MOST_NAMES]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(key)
            yield from _strings(item)


def _foreign(text: str) -> Iterator[str]:
    """Identifiers with letters that are no words of ours."""
    for name in IDENTIFIER.findall(text):
        letters = [part.lower() for part in LETTERS.findall(name)]
        if len(name) >= SHORTEST and letters and name.lower() not in _ours() and not _ours().issuperset(letters):
            yield name


@cache
def _ours() -> frozenset[str]:
    """Words that stay: the published vocabulary, names and values of our fields, chips (figures name them)."""
    schemas = json.dumps([PlanRequest.model_json_schema(), TraceSummary.model_json_schema()])
    chips = (name for chip in catalog.chips() for name in (chip.id, *chip.aliases))
    return vocabulary() | frozenset(word.lower() for text in (schemas, *chips) for word in IDENTIFIER.findall(text))


class Masks:
    """One question's tokens, in a fixed order: the same names give the same tokens in every turn."""

    def __init__(self, names: Sequence[str]) -> None:
        self._token_of = {name: f"Hidden{_letters(number)}" for number, name in enumerate(_folded(names))}
        self._name_of = {token.removeprefix("Hidden"): name for name, token in self._token_of.items()}

    def hidden(self, text: str) -> str:
        """The text with every name replaced, in whatever case it stands; a name that was cut short as well."""
        if not self._token_of:
            return text
        return IDENTIFIER.sub(lambda match: self._masked(match.group(0)), text)

    def _masked(self, word: str) -> str:
        whole = word.rstrip("…").lower()
        token = self._token_of.get(whole)
        if token is None and len(whole) < len(word):
            token = next((token for name, token in self._token_of.items() if name.startswith(whole)), None)
        return word if token is None else token

    def restored(self, text: str) -> str:
        """The text with the names back in the place of tokens; an unknown token stays."""
        return TOKEN.sub(lambda match: self._name_of.get(match.group(1), match.group(0)), text)


def _folded(names: Iterable[str]) -> dict[str, None]:
    return dict.fromkeys(name.lower() for name in names)


def _letters(number: int) -> str:
    """0 -> A, 25 -> Z, 26 -> AA."""
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("A") + rest) + text
    return text
