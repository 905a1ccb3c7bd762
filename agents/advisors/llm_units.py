"""How quantities are written in prose: units, words for numbers, bounds, changes from one figure to another."""

import re
from typing import Literal

from projector.units import KILO

Unit = Literal["percent", "outcome_percent", "ratio", "ms", "s", "us", "gb", "plain", "other"]

UNITS: dict[str, Unit] = {
    **dict.fromkeys(("%", "percent", "pct"), "percent"),
    **dict.fromkeys(("x", "×", "times"), "ratio"),
    **dict.fromkeys(("ms", "milliseconds", "millisecond"), "ms"),
    **dict.fromkeys(("s", "sec", "seconds", "second"), "s"),
    **dict.fromkeys(("us", "µs", "μs", "microseconds"), "us"),
    **dict.fromkeys(("gb", "gigabytes"), "gb"),
    **dict.fromkeys(("gib", "tb", "tib", "mb", "mib", "kb", "k", "m", "b", "h", "hours", "minutes", "days"), "other"),
}
MEASURED_IN = ("fraction", "", "ms", "s", "GB")  # units of evidence that have a kind of their own, and none
CLAUSE = re.compile(r"(?<=[.;:!?])\s+|,\s+|\s+(?:but|while|whereas|although)\s+")
OUTCOME = re.compile(
    r"^by\b|\b(?:faster|slower|quicker|better|worse|speed-?ups?|gain\w*|improv\w*|worsen\w*)\b", re.IGNORECASE
)
SPELLED = re.compile(
    r"\b(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|forty|fifty|sixty|seventy|eighty"
    r"|ninety|hundred\w*|dozens?|magnitude|manyfold|(?:several|many|multiple|few) times|fractions? of|thousands?"
    r"|millions?|billions?|half|halv\w+|doubl\w+|twice|thrice|tripl\w+|quadrupl\w+|(?:two|three|four|five|six|eight|ten|many|several)-?fold"
    r"|thirds?|quarters?|fifths?|sixths?|eighths?|tenths?|hundredths?|(?:a|one) single|zero|both orders)\b",
    re.IGNORECASE,
)
SHARED_OVER = ("dp", "tp", "pp", "cp", "ep", "fsdp")
MACHINES = re.compile(
    r"\b(\d+)[\s-]+(?:\w+ )?(?:chips?|devices?|gpus?|tpus?|accelerators?|ranks?|nodes?|hosts?)\b", re.I
)
WINDOW = re.compile(r"\bwindow\b", re.IGNORECASE)
BOUND = re.compile(
    r"\b(?:more than|over|above|at least|up to|under|below|less than|fewer than|at most|beyond|exceed\w*|upwards of"
    r"|no more than|no less than|within)\s+(?:the |a )?[+~≈-]?\d",
    re.IGNORECASE,
)
SIGNED_CHANGE = re.compile(
    r"(?<![\w.])[+-]\d[\d.]*\s*(?:%|percent)?\s*(?:faster|slower|better|worse|less|more|lower|higher|shorter|longer)\b",
    re.IGNORECASE,
)
FROM_TO = re.compile(
    r"\bfrom (\d+(?:\.\d+)?)(?:\s*[a-zµ]+)?(?: a \w+)? to (\d+(?:\.\d+)?)\s*(ms|s|us|gb|seconds|milliseconds)\b",
    re.IGNORECASE,
)
AS_IT_IS = re.compile(
    r"\b(?:from|current\w*|today|now|before|instead|reference|compared|measured|originally|against|than)\b",
    re.IGNORECASE,
)
ROOM = re.compile(r"\b(?:of|capacity|holds?|ha[sv]e?|fits?|limit|available|room|offers|memory of)\b", re.IGNORECASE)
TIME = re.compile(r"\btimes?\b|\blatency\b|\bstep (?:is|gets|becomes)\b|\bshorter\b|\blonger\b", re.IGNORECASE)
RATE = re.compile(r"\b(?:throughput|rate|tokens?|objective|gain\w*)\b", re.IGNORECASE)
SCALE = {"s": 1.0, "ms": KILO, "us": KILO * KILO}
# words that say nothing of what a figure is about
EMPTY_STEMS = frozenset(
    word[:5]
    for word in [
        "the",
        "and",
        "for",
        "that",
        "this",
        "with",
        "from",
        "its",
        "takes",
        "take",
        "took",
        "step",
        "steps",
        "time",
        "times",
        "window",
        "percent",
        "plan",
        "plans",
        "is",
        "are",
        "was",
        "be",
        "by",
        "of",
        "in",
        "on",
        "at",
        "as",
        "projected",
        "measured",
        "projection",
        "recorded",
        "lasts",
        "last",
        "some",
        "most",
        "more",
        "less",
        "than",
        "has",
        "have",
        "had",
        "which",
        "where",
        "not",
        "any",
        "all",
        "per",
        "each",
        "other",
        "one",
        "gives",
        "give",
        "makes",
        "made",
    ]
)
DIGIT_WORD = re.compile(r"\S*\d\S*")
NUMBER = re.compile(r"([-+~≈]?)(\d+(?:\.\d+)?)([^\d.]*)")
LINKED = re.compile(r"^[\s,]*(?:of|to|and|or|than|instead of|from|against|versus)\s+$")
