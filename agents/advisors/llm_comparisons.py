"""Comparisons in a model's prose: with another proposal ("less memory than the second"), and superlatives.

A comparison is read where it names a figure we have (step time, objective, memory, effort, number of changes) and the
proposals by their place. Any other comparison between proposals, and any other superlative, is refused.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from agents.advisors.protocol import AdvisorInput, Candidate
from agents.proposal_parts import EFFORTS

PLACES = {"first": 0, "second": 1, "third": 2, "1": 0, "2": 1, "3": 2}
NOUN = r"(?:plan|proposal|option|pick|candidate|choice|one)s?"
PLACE = (
    rf"(?:the )?(?:{NOUN} |#)?(first|second|third|1|2|3|others?|other two|rest|both|all|any)\b"
    rf"(?: of the \w+)?(?: {NOUN})?"
)
THAN = re.compile(rf"\bthan {PLACE}(?!\s*(?:%|ms|s\b|gb|percent|way))", re.IGNORECASE)
STANDS = re.compile(
    r"\b(?:goes|comes|ranks?|ranked|stands|placed|is the|as the) (first|second|third)"
    r"(?: (?:plan|proposal|choice|pick))?\b(?! of)",
    re.IGNORECASE,
)
# places in words, which are no quantities
ORDINAL = re.compile(
    rf"\b(?:the (?:first|second|third)(?: {NOUN})?|(?:goes|comes|ranks?|stands) (?:first|second|third))\b", re.I
)
OF_THE_PICKS = {
    3: re.compile(r"\b(?:of|among) (?:the|these|all) three\b|\ball three\b|\bthe other two\b", re.IGNORECASE),
    2: re.compile(r"\b(?:of|among) (?:the|these) two\b|\bboth\b", re.IGNORECASE),
}
DENIED = re.compile(r"\b(?:not|no|never|neither|cannot)\b|n't\b", re.IGNORECASE)
BOUNDLESS = re.compile(
    r"\b(?:optim(?:al|um)|ideal|perfect|unbeatable|unmatched|unrivalled|outperform\w*|beats?|surpass\w*|superior|inferior|wins?"
    r"|(?:no|every|any|all) other (?:plans?|proposals?|options?|layouts?|ones?)"
    r"|(?:the )?only (?:plan|option|choice|layout|way|one)"
    r"|(?:most|least) (?!of\b|time\b|likely\b|memory\b|effort\b|changes\b|throughput\b)\w+|possible|ever)\b",
    re.IGNORECASE,
)
SUPERLATIVE = re.compile(
    r"\b(?:fastest|quickest|slowest|best|worst|lowest|highest|largest|smallest|biggest|greatest|strongest|weakest|lightest"
    r"|heaviest|cheapest|easiest|simplest|hardest|shortest|longest|fewest|safest|cleanest|richest|broadest"
    r"|(?:most|least) (?:memory|effort|changes|throughput))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Figure:
    """A figure proposals are compared by: words for less and more of it, beside and beyond others, and its value."""

    name: str
    less: str
    more: str
    least: str
    most: str
    value: Callable[[Candidate], float | None]


def _memory(candidate: Candidate) -> float | None:
    memory = candidate.projection.memory
    return memory.total_bytes if memory is not None else None


FIGURES = (
    Figure(
        "effort",
        r"(?:easier|simpler|(?:quicker|faster|cheaper) to adopt|(?:less|lower) (?:adoption )?(?:effort|work))",
        r"(?:harder|(?:more|higher) (?:adoption )?(?:effort|work))",
        r"(?:easiest|simplest|(?:least|lowest|smallest) (?:adoption )?effort)",
        r"(?:hardest|(?:most|highest|largest) (?:adoption )?effort)",
        lambda candidate: EFFORTS.index(candidate.effort),
    ),
    Figure(
        "memory",
        r"(?:less|lower|smaller) memory",
        r"(?:more|higher|larger|greater) memory",
        r"(?:(?:least|lowest|smallest) memory|lightest)",
        r"(?:most|highest|largest) memory",
        _memory,
    ),
    Figure(
        "step time",
        r"(?:faster|quicker|shorter(?: step)?|(?:lower|smaller) step time)",
        r"(?:slower|longer(?: step)?|higher step time)",
        r"(?:fastest|quickest|(?:shortest|lowest|smallest) step(?: time)?)",
        r"(?:slowest|(?:longest|highest) step(?: time)?)",
        lambda candidate: candidate.step_time_s,
    ),
    Figure(
        "gain",
        r"(?:worse|(?:lower|smaller|less) (?:throughput|gain|improvement)|gains? less)",
        r"(?:better|(?:higher|more|larger|greater) (?:throughput|gain|improvement)|gains? more)",
        r"(?:worst|(?:lowest|smallest|least) (?:throughput|gain|improvement))",
        r"(?:best|(?:highest|largest|biggest|greatest|most) (?:projected )?(?:throughput|gain|improvement))",
        lambda candidate: candidate.gain_frac,
    ),
    Figure(
        "number of changes",
        r"(?:fewer|less) changes",
        r"more changes",
        r"(?:fewest|least) changes",
        r"most changes",
        lambda candidate: len(candidate.changes),
    ),
)


def without_places(text: str, picked: Sequence[Candidate]) -> str:
    """The text without places of proposals in words ("the second", "of the three"), which are no quantities."""
    pattern = OF_THE_PICKS.get(len(picked))
    return ORDINAL.sub("it", pattern.sub("of them", text) if pattern is not None else text)


def comparison_problems(
    question: AdvisorInput, candidate: Candidate, picked: Sequence[Candidate], text: str
) -> Iterator[str]:
    """Comparisons of a sentence that the figures of the picks do not bear out, as sentences for a repair."""
    if BOUNDLESS.search(text):
        yield "a plan is compared with all there could be, or by no figure"
    for match in STANDS.finditer(text):
        place = PLACES[match.group(1).lower()]
        if place >= len(picked) or picked[place].id != candidate.id:
            yield f"the plan is said to stand {match.group(1)} and does not"
    read, meant = 0, tuple[Figure, ...]()
    for match in THAN.finditer(text):
        said = text[read : match.end()]
        meant = tuple(figure for figure in FIGURES if _named(figure, said)) or meant
        yield from _than_problems(candidate, picked, said, match.group(1).lower(), meant)
        read = match.end()
    rest = text
    for figure in FIGURES:
        for words, sign in ((figure.least, -1), (figure.most, 1)):
            if re.search(rf"\b{words}\b", rest, re.IGNORECASE):
                rest = re.sub(rf"\b{words}\b", " ", rest, flags=re.IGNORECASE)
                against = picked if _of_the_picks(text, picked) else question.candidates
                others = [other for other in against if other.id != candidate.id]
                if DENIED.search(text) or not _beats(figure, candidate, others, sign):
                    most = "least" if sign < 0 else "most"
                    yield f"the plan has not the {most} {figure.name} of those it is compared with"
    if SUPERLATIVE.search(rest):
        yield "a superlative names no figure of the proposals"


def _of_the_picks(text: str, picked: Sequence[Candidate]) -> bool:
    pattern = OF_THE_PICKS.get(len(picked))
    listed = re.search(r"\b(?:proposals|proposed|listed|picks|picked)\b", text, re.IGNORECASE)
    return bool(listed or (pattern is not None and pattern.search(text)))


def _named(figure: Figure, said: str) -> bool:
    return re.search(rf"\b(?:{figure.less}|{figure.more})\b", said, re.IGNORECASE) is not None


def _than_problems(
    candidate: Candidate, picked: Sequence[Candidate], said: str, target: str, meant: Sequence[Figure]
) -> Iterator[str]:
    """Of one comparison. meant: figures it names, or those of the comparison before it ("and more than the first")."""
    if target in PLACES:
        others = [picked[PLACES[target]]] if PLACES[target] < len(picked) else []
        others = [] if others and others[0].id == candidate.id else others
    else:
        others = [other for other in picked if other.id != candidate.id]
    if not others:
        yield "the plan is compared with a proposal that is not another one of the list"
        return
    if DENIED.search(said):
        yield "a comparison with another proposal is denied; say what the figures say"
        return
    found, bare = False, not any(_named(figure, said) for figure in FIGURES)
    for figure in meant:
        for words, sign in ((r"less", -1), (r"more", 1)) if bare else ((figure.less, -1), (figure.more, 1)):
            if re.search(rf"\b{words}\b", said, re.IGNORECASE):
                found, said = True, re.sub(rf"\b{words}\b", " ", said, flags=re.IGNORECASE)
                if not _beats(figure, candidate, others, sign):
                    yield f"the {figure.name} is not {'less' if sign < 0 else 'more'} than that of the other proposal"
    if not found:
        yield "the plan is compared with another proposal by no figure we have"


def _beats(figure: Figure, candidate: Candidate, others: Sequence[Candidate], sign: int) -> bool:
    own = figure.value(candidate)
    theirs = [figure.value(other) for other in others]
    return own is not None and all(their is not None and (own - their) * sign > 0 for their in theirs)
