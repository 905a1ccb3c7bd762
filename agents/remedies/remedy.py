"""Remedy: one lever that a plan cannot express, or a pointer to one that it can, fitted to a diagnosis."""

from typing import Literal

from pydantic import Field

from agents.proposal_parts import Effort
from projector.specs.bottleneck import Cause
from projector.specs.record import Record

Direction = Literal["helps", "neutral", "hurts", "depends"]


class Remedy(Record):
    """What to try, why, and when it would not help.

    gain_expected_frac and gain_bound_frac: of throughput (0.2: 20 % more), the bound from the share of time that the
    lever can remove: 1 / (1 - share) - 1. None: nothing stated bounds it.
    """

    lever: str
    title: str
    why: str = Field(description="the signs that led to it, in one or two sentences")
    relieves: tuple[Cause, ...]
    layout: bool = Field(False, description="True: a pointer to what the proposals change, not a lever beside them")
    first: bool = Field(False, description="no layout relieves the cause, so this comes before the proposals")
    condition: str = Field(description="the inequality under which it helps, and what it reads with the stated numbers")
    direction: Direction = Field("depends", description="which side of the condition the stated numbers lie on")
    gain_expected_frac: float | None = None
    gain_bound_frac: float | None = None
    gain_basis: str = ""
    effort: Effort
    costs: str = Field(description="what it costs or makes worse")
    evidence: tuple[str, ...] = Field((), description="ids of Evidence in PlanResult.evidence")
    citations: tuple[str, ...] = Field((), description="ids of knowledge notes")
