"""What a model says of adopting a plan: whether it fits, what it takes, what it uses, how large it is.

Plans on the list are legal and fit; the effort and the changes are known. Sizes in words ("negligible", "huge") have no
figure, so they are refused: the figure stands beside them.
"""

import re
from collections.abc import Iterator

from agents.advisors.protocol import Candidate

UNFIT = re.compile(
    r"\b(?:runs?|ran|running) out of memory\b|\b(?:does|will|would|do)(?: not|n't) fit\b"
    r"|\bexceeds? (?:the |its )?(?:capacity|memory)"
    r"|\b(?:illegal|unsupported|not (?:legal|supported|allowed|possible)|infeasible|out-of-memory)\b",
    re.IGNORECASE,
)
SIZE = re.compile(
    r"\b(?:negligib\w+|marginal\w*|insignificant\w*|enormous\w*|huge\w*|massive\w*|dramatic\w*|drastic\w*|sharply|vast\w*"
    r"|tremendous\w*|minimal\w*|trivial\w*"
    r"|(?:no|any|little|zero) (?:\w+ )?(?:effect|difference|impact|gain|benefit))\b",
    re.IGNORECASE,
)
DENIED = re.compile(r"\b(?:no|not|without|never|nor|neither|instead of|rather than)\b|n't\b", re.IGNORECASE)
NEEDED = r"\b(?:requires?|needs?|has to|have to|must|demands?|calls for|takes) (?:\w+ ){0,3}"
EFFORTS_OF = (
    (re.compile(rf"{NEEDED}(?:reshard\w*|convert\w*|cut anew)", re.IGNORECASE), ("reshard", "code")),
    (re.compile(rf"{NEEDED}(?:relaunch\w*|restart\w*)", re.IGNORECASE), ("relaunch", "reshard", "code", "config")),
    (re.compile(rf"{NEEDED}(?:code|rewrit\w*|patch\w*)", re.IGNORECASE), ("code",)),
    (re.compile(r"\b(?:only|just|merely|is) (?:needs? )?a (?:flag|switch)\b", re.IGNORECASE), ("flag",)),
)
# a technique in words -> the part of a plan's field names that stands for it
TECHNIQUES = {
    "recompute": r"recomput\w+|activation checkpointing",
    "offload": r"offload\w*",
    "disaggregat": r"disaggregat\w+",
    "speculat": r"speculat\w+",
}
OFF = (None, False, 0, 1, "none", "off", "")


def adoption_problems(candidate: Candidate, text: str) -> Iterator[str]:
    """What a sentence says of adopting the plan that is not so, as sentences for a repair."""
    if UNFIT.search(text):
        yield "the plan is said not to fit or not to be legal; every plan on the list is and does"
    if SIZE.search(text):
        yield "the size of a change is given in words that no figure decides"
    if not DENIED.search(text):
        for pattern, efforts in EFFORTS_OF:
            if pattern.search(text) and candidate.effort not in efforts:
                yield f"adopting the plan takes something else: {candidate.effort}"
        yield from _technique_problems(candidate, text)


def _technique_problems(candidate: Candidate, text: str) -> Iterator[str]:
    values = candidate.plan.model_dump()
    for technique, words in TECHNIQUES.items():
        used = any(technique in name and value not in OFF for name, value in values.items())
        changed = any(technique in change.field for change in candidate.changes)
        if re.search(rf"\b(?:{words})\b", text, re.IGNORECASE) and not (used or changed):
            yield f"{technique} is spoken of and the plan does not use it"
