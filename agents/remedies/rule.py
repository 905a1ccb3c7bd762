"""RemedyRule: one lever as a record: when it helps, when it hurts, what it can gain, what it costs, and sources."""

from collections.abc import Callable
from dataclasses import dataclass

from agents.proposal_parts import Effort
from agents.remedies.facts import Facts
from agents.remedies.remedy import Direction
from projector.specs.bottleneck import Cause


@dataclass(frozen=True)
class Judged:
    """Which side of its condition a job lies on; `reads`: the inequality with the job's numbers, '' where unknown.
    gain_frac: the usual gain in such a job, where it is not that of the rule."""

    direction: Direction
    reads: str = ""
    gain_frac: float | None = None


def undecided(facts: Facts) -> Judged:
    """Nothing stated decides."""
    del facts
    return Judged("depends")


@dataclass(frozen=True)
class RemedyRule:
    """removes_frac: what the change usually takes away of the time its cause costs. typical_gain_frac: of throughput,
    where no such time is stated. Both are assumed, from public before/after reports of each kind (docs/remedies.md).
    helps, hurts: the conditions in words; judge: the same over a job's numbers. notes: knowledge notes that say why.
    """

    lever: str
    title: str
    relieves: tuple[Cause, ...]
    helps: str
    hurts: str
    removes_frac: float
    typical_gain_frac: float
    effort: Effort
    costs: str
    notes: tuple[str, ...] = ()
    layout: bool = False
    judge: Callable[[Facts], Judged] = undecided


def at_least(name: str, value: float | None, limit: float, below: Direction = "neutral") -> Judged:
    """helps where value >= limit, `below` where it is less; depends where it is not known."""
    if value is None:
        return Judged("depends")
    return Judged("helps" if value >= limit else below, f"{name} {value:.3g} against {limit:.3g}")


def at_most(name: str, value: float | None, limit: float, above: Direction = "neutral") -> Judged:
    """helps where value <= limit, `above` where it is more; depends where it is not known."""
    if value is None:
        return Judged("depends")
    return Judged("helps" if value <= limit else above, f"{name} {value:.3g} against {limit:.3g}")
