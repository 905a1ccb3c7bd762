"""Weighing signs: which cause and class they speak for together, how sure that is, and which levers bear on it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.remedies.cue import LEVER_SHARES
from agents.remedies.facts import Facts
from agents.remedies.number_signs import number_signs
from agents.remedies.symptom import DENIED, Sign, read_symptom
from projector.specs.bottleneck import BOTTLENECK_OF, Bottleneck, Cause

AMBIGUOUS_LEAD = 0.10  # of the weight of all signs, as `verdict.AMBIGUOUS_MARGIN` is of the window
OUT_OF_MEMORY = "out of memory"  # the sign that a figure of the request may deny
SET_BY_HAND = 5.0  # what a user set and states can be set otherwise: it says more of levers than of causes
CLASSES: tuple[Bottleneck, ...] = ("compute", "memory", "communication")


@dataclass(frozen=True)
class Weighed:
    """classes: share of the weight of all signs that speaks for each; they sum to 1 where there is any.

    levers: lever -> weight, the heaviest first. margin: lead of the first class over the second.
    """

    signs: tuple[Sign, ...]
    cause: Cause
    bottleneck: Bottleneck
    classes: dict[Bottleneck, float]
    levers: dict[str, float]
    margin: float

    @property
    def ambiguous(self) -> bool:
        """Whether the lead is small, or there is no sign at all."""
        return self.margin < AMBIGUOUS_LEAD

    @property
    def strength(self) -> float:
        """Weight of the heaviest sign that is not denied; 0 without one."""
        return max((sign.weight for sign in self.signs if not sign.denied), default=0.0)


def signs_of(facts: Facts, text: str) -> tuple[Sign, ...]:
    """Signs of numbers and of words, the heaviest first; one both show counts once, as the heavier has it."""
    by_numbers = number_signs(facts)
    heaviest: dict[str, Sign] = {}
    for sign in (*by_numbers, *read_symptom(text, facts.setting)):
        held = heaviest.get(sign.cue.sign)
        if held is None or abs(sign.weight) > abs(held.weight):
            heaviest[sign.cue.sign] = sign
    held = heaviest.get(OUT_OF_MEMORY)
    if facts.observed.out_of_memory is False and held is not None and not held.denied:
        claim = "The run is stated not to be out of memory."
        heaviest[OUT_OF_MEMORY] = replace(held, weight=DENIED * held.cue.weight, sentence=claim, stated_by="numbers")
    return tuple(sorted(heaviest.values(), key=lambda sign: (-abs(sign.weight), sign.cue.sign)))


def weigh(signs: Sequence[Sign]) -> Weighed:
    """The cause with most weight inside the class with most weight; `unknown` without a sign."""
    causes: dict[Cause, float] = defaultdict(float)
    levers: dict[str, float] = defaultdict(float)
    for sign in signs:
        causes[sign.cue.cause] += sign.weight
        for lever, share in zip(sign.cue.levers, LEVER_SHARES, strict=False):
            levers[lever] += sign.weight * share * (SET_BY_HAND if sign.of_setting else 1.0)
    classes = dict.fromkeys(CLASSES, 0.0)
    for cause, weight in causes.items():
        if cause != "unknown":
            classes[BOTTLENECK_OF[cause]] += weight
    classes = {name: max(0.0, weight) for name, weight in classes.items()}
    total = sum(classes.values())
    if total <= 0:
        return Weighed(tuple(signs), "unknown", BOTTLENECK_OF["unknown"], classes, {}, 0.0)
    shares = {name: weight / total for name, weight in classes.items()}
    first, second = sorted(shares.values(), reverse=True)[:2]
    bottleneck = max(CLASSES, key=lambda name: shares[name])
    inside = {cause: weight for cause, weight in causes.items() if BOTTLENECK_OF[cause] == bottleneck}
    cause = max(sorted(inside), key=lambda name: inside[name])
    ranked = dict(sorted(((k, v) for k, v in levers.items() if v > 0), key=lambda item: (-item[1], item[0])))
    return Weighed(tuple(signs), cause, bottleneck, shares, ranked, first - second)
