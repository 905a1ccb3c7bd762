"""Cue: a sign that words or numbers can show, which cause it speaks for, and which levers bear on it."""

from dataclasses import dataclass

from projector.specs.bottleneck import Cause

# share of a sign's weight that its first, second, third ... lever gets
LEVER_SHARES = (1.0, 0.7, 0.5, 0.35, 0.25)


@dataclass(frozen=True)
class Cue:
    """patterns: regular expressions over `words.plain` text, any of which shows the sign. weight: 3 names a cause
    outright, 2 a symptom of it, 1 a habit of such runs, below 1 a setting that such runs have. levers: the likeliest
    first. unless: a pattern of the same sentence that gives the words another meaning. settings: where it counts; ()
    all.
    of_rest: words whose stated share is of the opposite ("99 % active" of an idle device).
    timed: whether a share beside it is one of time, so that it bounds what relieving the cause gains.
    """

    sign: str
    cause: Cause
    weight: float
    levers: tuple[str, ...]
    patterns: tuple[str, ...]
    says: str
    unless: str = ""
    of_rest: str = ""
    timed: bool = True
    settings: tuple[str, ...] = ()
