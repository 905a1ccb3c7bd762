"""Reading a symptom: sentences -> signs, each with its polarity, the share it states, and the sentence it came from.

Rules, in this order: a cue counts once, where it is said most strongly; words that deny it ('not the network', 'is
hidden', 'rather than') turn its weight around; a stated share scales it; a sentence that calls it the bottleneck counts
half as much again. Nothing in a sentence is carried out: text that asks for something shows no cue and changes nothing.
"""

import re
from dataclasses import dataclass
from typing import Literal

from agents.remedies.cue import Cue
from agents.remedies.cues_communication import COMMUNICATION
from agents.remedies.cues_compute import COMPUTE
from agents.remedies.cues_memory import MEMORY
from agents.remedies.cues_post_training import POST_TRAINING
from agents.remedies.cues_serving import SERVING
from agents.remedies.cues_settings import SETTINGS
from agents.remedies.cues_settings_work import WORK_SETTINGS
from agents.remedies.words import Sentence, sentences, share_in, without_orders

CUES: tuple[Cue, ...] = (*COMMUNICATION, *MEMORY, *COMPUTE, *SERVING, *POST_TRAINING, *SETTINGS, *WORK_SETTINGS)

DENIED = -0.7  # of its weight: a denial rules a cause out less surely than a statement shows it
SETTING_FRAC = 0.4  # of its weight: that something is switched on does not show that it costs
NEGLIGIBLE = 0.05  # a stated share below it says that this is not what the step waits for
BEFORE_DENIES = re.compile(
    r"\b(?:not|no|never|without|rather than|instead of|nor|isn.t|hidden|hides?)"
    r"(?: (?!because|but|and|while|when|since)\w+){0,2}\s*$"
)
AFTER_DENIES = re.compile(
    r"^\W{0,3}(?:\w+ ){0,3}(?:is|are|was|were)(?: \w+)? ?(?:not|n.t|hidden|negligible|only \d(?:\.\d+)? ?%|fine|idle)"
    r"|^\W{0,3}(?:\w+ ){0,2}(?:hidden|overlapped|negligible|takes? (?:only )?(?:0|1|2|3|4)(?:\.\d+)? ?(?:%|s\b))"
)
CALLED_BOTTLENECK = re.compile(
    r"dominat\w*|bottleneck|most of|limited by|limits?\b|\bbound\b|because of|sets? the pace|forces?"
)


@dataclass(frozen=True)
class Sign:
    """A cue that was found. weight: signed; below 0 the text denies it. sentence: as written, or what numbers show.

    stated_by: arithmetic is worked out from sizes and degrees; habit is what such runs mostly wait for, which nobody
    stated; diagnosis is one of a trace or projection.
    """

    cue: Cue
    weight: float
    sentence: str = ""
    share: float | None = None
    stated_by: Literal["words", "numbers", "arithmetic", "habit", "diagnosis"] = "words"

    @property
    def stated(self) -> bool:
        """Whether the user's words or numbers show it."""
        return self.stated_by in ("words", "numbers", "arithmetic")

    @property
    def of_setting(self) -> bool:
        """Whether it is a setting that is stated, not something observed."""
        return self.cue.sign.startswith("a setting")

    @property
    def denied(self) -> bool:
        """Whether it speaks against its cause."""
        return self.weight < 0


def read_symptom(text: str, setting: str) -> tuple[Sign, ...]:
    """The signs of a text, the weightiest first. setting: cues of other settings are left out."""
    parts = sentences(without_orders(text))
    found = [sign for cue in CUES if not cue.settings or setting in cue.settings for sign in _of(cue, parts)]
    return tuple(sorted(found, key=lambda sign: (-abs(sign.weight), sign.cue.sign)))


def _of(cue: Cue, parts: tuple[Sentence, ...]) -> list[Sign]:
    signs = [sign for part in parts if (sign := _in(cue, part)) is not None]
    return [max(signs, key=lambda sign: abs(sign.weight))] if signs else []


def _in(cue: Cue, part: Sentence) -> Sign | None:
    if part.described or (cue.unless and re.search(cue.unless, part.plain)):
        return None
    for pattern in cue.patterns:
        found = re.search(pattern, part.plain)
        if found is None:
            continue
        if cue.sign.startswith("a setting"):
            return Sign(cue, cue.weight * SETTING_FRAC, part.written)
        before, after = part.plain[: found.start()], part.plain[found.end() :]
        if part.figures and share_in(part.plain) is None:
            return None  # the name of a figure, whatever its value
        said_against = BEFORE_DENIES.search(before[-60:]) or AFTER_DENIES.search(after[:60])
        share = share_in(part.plain[max(0, found.start() - 40) : found.end() + 40])
        if share is not None and cue.of_rest and re.search(cue.of_rest, found[0]):
            share = 1 - share
        denied = said_against is not None or (share is not None and share < NEGLIGIBLE)
        weight = cue.weight * (SETTING_FRAC if part.setting else _emphasis(part.plain, share))
        return Sign(cue, DENIED * cue.weight if denied else weight, part.written, share)
    return None


def _emphasis(sentence: str, share: float | None) -> float:
    called = 1.5 if CALLED_BOTTLENECK.search(sentence) else 1.0
    # a share of a third leaves the weight as it is
    return called * (min(2.0, max(0.2, 3 * share)) if share is not None else 1.0)
