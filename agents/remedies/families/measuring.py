"""Measuring first, where what is stated does not tell causes apart."""

from agents.remedies.rule import RemedyRule

MEASURING: tuple[RemedyRule, ...] = (
    RemedyRule(
        "diagnosis",
        "Measure before changing: a timeline with intervals (exposed, hidden, idle), phases apart, equal batch",
        (),
        "causes that need different levers are about as likely, or figures contradict each other",
        "one cause is shown by measured intervals",
        0.0,
        0.0,
        "flag",
        "one profiled run",
        ("compute-bound-with-nothing-exposed", "rl-phases-of-a-step"),
    ),
)
