"""Whether a sentence of a model is plain English text at all: characters, words, numbers that hide as something else.

Everything that could be read in two ways is refused, so that the checks of figures and directions see what a reader
sees: letters of other scripts, digits of any other kind, fractions, Roman numerals, numbers cut in two, markup, links,
code, ids, another language.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from agents.advisors.protocol import AdvisorInput
from projector.specs.plan import ParallelismPlan
from traces.stored.redact import vocabulary

# besides printable ASCII
TYPOGRAPHY = frozenset("“”‘’–—…×→≈µ")
MARKUP = re.compile(r"://|www\.|</?[a-z!]|\]\(|[`|{}\\*#<>\[\]^]|&\w+;|\bev-[a-z]|\bc\d+\b", re.IGNORECASE)
ADDRESS = re.compile(r"@|\b[\w-]+\.(?:com|org|net|io|ai|dev|sh|py|exe|zip|co|info|biz|xyz)\b", re.IGNORECASE)
FRACTION = re.compile(r"\d\s*/\s*\d|\d\s+(?:in|out of|of every|for every|in every|per)\s+\d", re.IGNORECASE)
SPLIT = re.compile(r"\d[.,'’_-]*\s[\s.,'’_]*\d|\d\s+(?:point|dot|comma)\s+\d", re.IGNORECASE)
ROMAN = re.compile(
    r"\b(?=[MDCLXVI]{2,}\b)M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})\b"
    r"|\b[IVXLCDM]\s*(?:%|percent\b|times\b|x\b|ms\b|s\b|GB\b|fold\b)"
)
LOUD = re.compile(r"\b[A-Z]{4,}\b")
FIELD_NAME = re.compile(r"\b\w*_\w*\b")
WORD = re.compile(r"[A-Za-z]{2,}")
KNOWN_SHARE = 0.5
# words of other languages that no English sentence has
FOREIGN = frozenset(
    [
        "le",
        "les",
        "des",
        "une",
        "est",
        "du",
        "aux",
        "avec",
        "dans",
        "pour",
        "sur",
        "und",
        "der",
        "das",
        "ist",
        "nicht",
        "mit",
        "auf",
        "ein",
        "eine",
        "wird",
        "schneller",
        "el",
        "los",
        "las",
        "que",
        "por",
        "para",
        "del",
        "mas",
        "il",
        "che",
        "gli",
        "della",
        "piu",
        "het",
        "een",
        "van",
        "niet",
        "voor",
        "uma",
        "nao",
        "mais",
        "com",
        "rapide",
        "schnell",
        "rapido",
    ]
)
ENDINGS = ("ing", "ers", "ed", "es", "er", "ly", "s", "d", "r", "e", "n")


def text_problems(question: AdvisorInput, text: str) -> Iterator[str]:
    """Why a sentence cannot be read with certainty, as sentences for a repair."""
    if any(not (" " <= char <= "~" or char in TYPOGRAPHY) for char in text):
        yield "the prose holds characters that are no plain English text"
    if MARKUP.search(text.replace("->", "→")):
        yield "the prose holds a link, markup, code or an internal id"
    if ADDRESS.search(text):
        yield "the prose holds an address"
    if FRACTION.search(text):
        yield "a quantity is written as a fraction"
    if SPLIT.search(text):
        yield "digits stand side by side and can be read as one number or as several"
    if ROMAN.search(text):
        yield "a quantity is written as a Roman numeral"
    if any(name not in ParallelismPlan.model_fields for name in FIELD_NAME.findall(text)):
        yield "the prose holds a name with an underscore that is no field of a plan"
    known = _known(question)
    if any(word.lower() not in known for word in LOUD.findall(text)):
        yield "a word in capitals does not stand in the data"
    words = [word.lower() for word in WORD.findall(text)]
    if FOREIGN.intersection(words) or sum(_is_known(word, known) for word in words) < KNOWN_SHARE * len(words):
        yield "the prose is not in plain English"


def _is_known(word: str, known: frozenset[str]) -> bool:
    stems = (word.removesuffix(ending) for ending in ENDINGS)
    return word in known or any(stem in known or f"{stem}e" in known for stem in stems if len(stem) > 2)


def _known(question: AdvisorInput) -> frozenset[str]:
    """Words of our own texts: of this package, of the instructions, and of what was composed for the question."""
    texts = [question.reference_label, question.diagnosis.summary, *question.diagnosis.limits]
    texts += [text for lever in question.levers for text in (lever.summary, lever.mechanism)]
    texts += [candidate.title for candidate in question.candidates]
    return _own_words() | frozenset(word.lower() for text in texts for word in WORD.findall(text))


@cache
def _own_words() -> frozenset[str]:
    """The published vocabulary, the instructions to models, and plain words that explanations are made of."""
    prompts = Path(__file__).parent / "prompts"
    texts = [path.read_text(encoding="utf-8") for path in sorted(prompts.glob("*.md"))]
    return vocabulary() | frozenset(word.lower() for text in texts for word in WORD.findall(text))
