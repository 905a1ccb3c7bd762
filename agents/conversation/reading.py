"""What a message wants: a question about the answer, another situation, a new fact, or doubt."""

import re
from collections import defaultdict
from itertools import pairwise

from agents.conversation.facts import facts_of, is_tried
from agents.conversation.records import Fact, Intent, Reading

# in this order: the first that is found
QUESTIONS: tuple[tuple[Intent, str], ...] = (
    (
        "which_first",
        r"\b(?:which|what)\b.*\b(?:first|start|try|pick|choose|adopt|best)\b|\bwhere (?:do|should) (?:i|we) start",
    ),
    (
        "how_sure",
        r"\b(?:how|are you)\s+(?:sure|confident|certain|reliable)|\bconfidence\b|\blegit(?:imate)?\b|"
        r"\bcan (?:i|we) trust\b|\bhow much .*trust",
    ),
    ("test", r"\b(?:test|verify|confirm|refute|experiment|measure|check it|try it out)\b"),
    ("worse", r"\b(?:worse|downsides?|trade-?offs?|costs? me|risks?|drawbacks?|price)\b"),
    ("memory", r"\b(?:memory|hbm|vram|oom|fit)\b"),
    ("why", r"\bwhy\b|\bexplain\b|\breasons?\b|\bcompare\b|\bdifference\b|\bversus\b|\bvs\b|\bbecause of\b"),
)
DOUBT = re.compile(
    r"\b(?:disagree|don't think|do not think|doubt|wrong|i think|i believe|i prefer|i'd rather|not convinced|"
    r"are you sure|really|surely|change your mind|rank .* first|should be first|put .* first|no,)\b",
    re.IGNORECASE,
)
ORDINALS = {"first": 1, "second": 2, "third": 3}
NAMED = re.compile(
    r"(?:#|\bno\.? ?|\bnumber |\bproposal |\boption |\bplan )(\d{1,3})\b(?![.,]?\d)|\b(first|second|third)\b",
    re.IGNORECASE,
)

COMPARED = re.compile(
    r"\bcompare (?:#|proposals? )?(\d)(?:,? and| with| to) #?(\d)\b(?![\d.,-]*\s*\w+ (?:gpu|chip|node))|"
    r"(?:^|#)(\d) (?:vs\.?|versus|or|against) #?(\d)\W*$",
    re.IGNORECASE,
)
TOP_TWO = re.compile(r"\b(?:top|first) (?:two|2)\b", re.IGNORECASE)


def read_message(message: str) -> Reading:
    """Intent, facts and the proposals that are named; "unclear" where nothing of this is found.

    A fact beside "what if", "suppose" or "why not" is one to try; any other holds from now on.
    """
    facts = facts_of(message)
    clashes = _clashes(facts)
    about = _named(message)
    if facts:
        return Reading(intent="what_if" if is_tried(message) else "new_fact", facts=facts, about=about, clashes=clashes)
    asked = _question(message)
    if DOUBT.search(message) and asked not in ("how_sure", "which_first"):
        asked = "push_back"
    return Reading(intent=asked, about=about)


def _question(message: str) -> Intent:
    for intent, pattern in QUESTIONS:
        if re.search(pattern, message, re.IGNORECASE | re.DOTALL):
            return intent
    return "unclear"


def _compared(message: str) -> list[int]:
    """'compare 1 and 3', 'compare the top two', '2 versus 3'."""
    if match := COMPARED.search(message):
        return [int(rank) for rank in match.groups() if rank is not None]
    return [1, 2] if TOP_TWO.search(message) else []


def _named(message: str) -> tuple[int, ...]:
    """Ranks in the order they are named. "Which first" names none."""
    found = _compared(message)
    for match in NAMED.finditer(message):
        ordinal = match.group(2)
        if ordinal is not None and re.search(r"\b(?:which|what|start|try)\b", message, re.IGNORECASE):
            continue
        found.append(int(match.group(1)) if match.group(1) else ORDINALS[ordinal.lower()])
    return tuple(dict.fromkeys(found))


def _clashes(facts: tuple[Fact, ...]) -> tuple[str, ...]:
    by_path: dict[tuple[str, ...], list[Fact]] = defaultdict(list)
    for fact in facts:
        by_path[fact.path].append(fact)
    return tuple(
        f"'{one.said}' and '{other.said}' cannot both hold"
        for same in by_path.values()
        for one, other in pairwise(same)
        if one.value != other.value
    )
