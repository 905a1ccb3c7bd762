"""Claims without a number: what limits the step, how sure that is, who measured it, and talk that is no explanation.

What limits the step must be the diagnosed cause. Certainty, tests nobody ran and authorities nobody cited are refused
in whatever words, and so is text that addresses the reader or a machine instead of explaining a plan.
"""

import re
from collections.abc import Iterator

from agents.advisors.protocol import AdvisorInput
from projector.specs.bottleneck import BOTTLENECK_OF, Cause

TOPICS = {
    "memory": r"(?:hbm|memory|memory bandwidth|hbm bandwidth)",
    "bandwidth": r"(?:bandwidth)",
    "compute": r"(?:compute|arithmetic|math|computation|tensor cores?|matrix (?:multiply|kernels?))",
    "communication": r"(?:communication|network|interconnect|collectives?|all-?reduces?|links?|nvlink|traffic)",
    "launch": r"(?:kernel launch(?:es)?|launch(?:es)?|launch overhead|cpu|host|dispatch)",
    "bubble": r"(?:pipeline bubbles?|bubbles?)",
    "copies": r"(?:cop(?:y|ies))",
    "imbalance": r"(?:imbalance|stragglers?|slow(?:er|est)? ranks?)",
    "latency": r"(?:latency)",
}
TOPICS_OF: dict[Cause, tuple[str, ...]] = {
    "compute_throughput": ("compute",),
    "hbm_bandwidth": ("memory", "bandwidth"),
    "hbm_capacity": ("memory",),
    "latency_bound_collectives": ("communication", "latency"),
    "pipeline_bubble": ("bubble",),
    "launch_bound": ("launch", "latency"),
    "host_idle": ("launch",),
    "copies": ("copies", "memory"),
    "imbalance": ("imbalance", "communication"),
    "unknown": (),
}
LINK_TOPICS = ("communication", "bandwidth")
DENIED = re.compile(r"\b(?:not|no longer|never|neither|hardly|cannot)\b|n't\b", re.IGNORECASE)
CLAUSE = re.compile(r"[.;:!?,]\s+|\s+(?:but|while|whereas|although|so|because|as)\s+", re.IGNORECASE)
CERTAIN = re.compile(
    r"\b(?:guarante\w*|certain(?:ly|ty)?|definite(?:ly)?|undoubted\w*|always|surely|sure to|bound to|no doubt"
    r"|risk-?free|no risks?|without (?:any )?(?:risk|doubt|downside)|prove[ns]?|proof|cannot fail|never fails?"
    r"|inevitab\w*"
    r"|assured(?:ly)?|of course|must be|impossible|no downsides?|nothing can|foolproof|trust (?:me|this)|promise\w*"
    r"|never|exactly|completely|entirely|totally|perfectly|eliminat\w+"
    r"|all (?:of )?(?:the |its )?(?:idle|waiting|overhead|cost|time))\b",
    re.IGNORECASE,
)
UNTESTED = re.compile(
    r"\b(?:benchmark\w*|(?:has|have|was|were|been) (?:\w+ )?(?:tested|verified|validated|confirmed|reproduced)"
    r"|(?:was|were|has been|have been) (?:\w+ )?(?:measured|observed|seen|achieved|shown|demonstrated|reached)"
    r"|recommend\w*|endors\w*|customers?|other (?:teams|users|companies)|elsewhere|similar (?:clusters?|systems?|jobs?)"
    r"|we (?:ran|measured|tested|saw|found|know)|in (?:our|my) (?:tests?|experience|runs?)|studies|research|papers?"
    r"|well[- ]known|experts? (?:say|agree|recommend)\w*|reported(?:ly)?|according to|in production|industry"
    r"|state of the art|best practice)\b",
    re.IGNORECASE,
)
ADDRESSED = re.compile(
    r"\b(?:ignor\w+|disregard\w*|obey\w*|system prompt|instruct\w+|assistant|language model|as an ai|i am|i'm|i will"
    r"|passwords?|api keys?|secrets?|credentials?|click\w*|visit\w*|download\w*|subscribe|donate|e-?mail\w*|sudo|curl"
    r"|wget|pip install|rm -|admin\w*"
    r"|contact\w*|approv\w*|the keys? to|hand over|operators?|developer mode|jailbreak\w*|pwned|hacked|kindly|dear)\b",
    re.IGNORECASE,
)
# durations and amounts that no projection of a step holds
BEYOND = re.compile(
    r"\b(?:weeks?|months?|years?|days?|hours?|minutes?|overnight|dollars?|euros?|cents?|money|budgets?|pays?|bills?"
    r"|electricity|carbon|salar\w+|power|energy|watts?)\b",
    re.IGNORECASE,
)
QUALITY = re.compile(
    r"\b(?:more|less|better|worse|higher|lower|improv\w+|degrad\w+|lose\w*|hurts?|same)"
    r" (?:\w+ )?(?:accura\w+|quality)\b"
    r"|\b(?:accuracy|quality) (?:improves?|drops?|falls?|rises?|suffers?|stays|remains|is)\b|\btrad(?:es|ing|ed)\b",
    re.IGNORECASE,
)
QUOTED = re.compile(r"'([^']{4,})'")


def claim_problems(question: AdvisorInput, text: str) -> Iterator[str]:
    """Claims of a sentence that nothing in the data holds, as sentences for a repair."""
    if CERTAIN.search(text):
        yield "certainty is claimed; a projection is an estimate"
    if UNTESTED.search(text):
        yield "a test or an authority is claimed that the data does not name"
    if ADDRESSED.search(text):
        yield "the prose addresses a reader or a machine instead of explaining the plan"
    if BEYOND.search(text):
        yield "money, or a time that is no step's, is spoken of"
    if QUALITY.search(text):
        yield "quality or a trade is spoken of that was not projected"
    lower = text.lower()
    if any(name.strip("…").lower() in lower for name in _foreign_names(question)):
        yield "the prose repeats a name out of the trace"
    yield from _limit_problems(question, text)


def _foreign_names(question: AdvisorInput) -> Iterator[str]:
    """Names that our own claims quote from a trace or a request."""
    for claim in (question.diagnosis.summary, *(entry.claim for entry in question.diagnosis.evidence)):
        yield from QUOTED.findall(claim)


def true_topics(cause: Cause) -> frozenset[str]:
    """What may be said to limit a step whose cause is diagnosed."""
    if cause in TOPICS_OF:
        return frozenset(TOPICS_OF[cause])
    return frozenset(LINK_TOPICS if BOTTLENECK_OF[cause] == "communication" else ())


def _limit_problems(question: AdvisorInput, text: str) -> Iterator[str]:
    true = true_topics(question.diagnosis.cause)
    for clause in CLAUSE.split(text):
        said = {topic for topic, words in TOPICS.items() if _limits(words, clause)}
        if not said:
            continue
        denied = bool(DENIED.search(clause))
        # "memory bandwidth" names two topics and means one
        holds = bool(said & true)
        if holds == denied:
            yield f"what limits the step is {'denied' if denied else 'said to be something else than diagnosed'}"


def _limits(words: str, clause: str) -> bool:
    """Whether a clause says that this is what limits the step."""
    forms = (
        rf"\b{words}[- ](?:bandwidth[- ])?(?:bound|limited|dominated|starved)\b",
        rf"\b(?:bound|limited|dominated|constrained|throttled|paced|held back|bottlenecked)\s+(?:\w+ly )?(?:by|on)\s+"
        rf"(?:\w+[- ]){{0,2}}{words}\b",
        rf"\b{words}(?:\s+\w+)?\s+(?:limits?|bounds?|dominates?|paces?|constrains?|sets? the pace"
        rf"|(?:is|are) (?:not )?(?:the |what )(?:bottleneck|limits?|limiting|limiter|main|cause"
        rf"|constraint|problem|issue|culprit|holds?|slows?)"
        rf"|(?:is|are) (?:\w+ )?(?:saturated|exhausted|maxed out|overloaded))\b",
        rf"\b(?:bottleneck|limiter|limiting factor|cause) (?:here |of the step )?(?:is|are|lies in|remains) "
        rf"(?:the )?{words}\b",
        rf"\b(?:it is|lies in) (?:the )?{words} (?:that|which|where)\b",
        rf"\b{words} (?:eats?|consumes?|takes?|fills?|uses?|makes?) (?:up )?"
        rf"(?:most|much|the bulk|the majority|half) of\b",
        rf"\b(?:most|much|majority|bulk) of (?:the |its )?(?:\w+ )?(?:time|step|window) (?:is|goes|gets) (?:\w+ )?"
        rf"(?:in|into|on|by|to|for) (?:the )?{words}\b",
    )
    return any(re.search(form, clause, re.IGNORECASE) for form in forms)
