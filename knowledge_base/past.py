"""Past optimisations: what was run or changed elsewhere, what it measured, and how near that is to a job of now.

Two kinds of case. "published": a layout that ran, with the figure its source prints. "change": one configuration
before, one after, and the measured effect. Cases are facts with a source. They are never a licence: a layout of the
past is a candidate that passes the same gates as any other, or it is only cited.
"""

from datetime import datetime
from typing import Self

from pydantic import Field, model_validator

from knowledge_base.history_parts import (
    TASK_PHASE,
    ChipId,
    Kind,
    MatchKind,
    Origin,
    PastArchitecture,
    PastEffect,
    PastLayout,
    PastLever,
    PastMove,
    PastSource,
    Role,
    Task,
    Words,
)
from projector import catalog
from projector.errors import UnknownName
from projector.names import normalise
from projector.specs.bottleneck import BOTTLENECK_OF, Bottleneck, Cause
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ComputeDtype, ParallelismPlan, Phase
from projector.specs.record import MOST_DEVICES, MOST_SEQUENCES, MOST_TOKENS, Record

MOST_MATCHES = 50


class PastRun(Record):
    """The facts a case and a question share. None: not stated.

    chips counts chips, as a cluster does. precision: of the matrix products. concurrency: requests in flight.
    """

    phase: Phase
    task: Task | None = None
    model: Words | None = Field(None, min_length=1, max_length=120)
    family: Words | None = Field(None, min_length=1, max_length=120, description="one name for variants of one shape")
    architecture: PastArchitecture = PastArchitecture()
    chip: ChipId | None = Field(None, description="catalogue id or alias; None: not stated, or not in the catalogue")
    chips: int | None = Field(None, ge=1, le=MOST_DEVICES)
    framework: Words | None = Field(None, min_length=1, max_length=80)
    precision: ComputeDtype | None = None
    seq_len: int | None = Field(None, ge=1, le=MOST_TOKENS)
    global_batch: int | None = Field(None, ge=1, le=MOST_SEQUENCES)
    input_len: int | None = Field(None, ge=1, le=MOST_TOKENS)
    output_len: int | None = Field(None, ge=1, le=MOST_TOKENS)
    concurrency: int | None = Field(None, ge=1, le=MOST_SEQUENCES)
    bottleneck: Bottleneck | None = None
    cause: Cause | None = None

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        if self.task is not None and TASK_PHASE[self.task] != self.phase:
            raise ValueError(f"{self.task} is no {self.phase} task")
        return self

    @property
    def hardware(self) -> HardwareProfile | None:
        """The chip of the catalogue; None where it is not stated."""
        return catalog.chip(self.chip) if self.chip is not None else None

    @property
    def group(self) -> str:
        """(family | chip): what an evaluation hides together."""
        return group_of(self.family or self.model or "", self.chip or "")

    @property
    def batch_tokens(self) -> float | None:
        """Tokens of a training step, or in flight while serving; None where a size is unknown."""
        if self.phase == "training":
            return _product(self.seq_len, self.global_batch)
        if self.input_len is None or self.output_len is None:
            return None
        return _product(self.input_len + self.output_len, self.concurrency)

    @property
    def moe(self) -> bool | None:
        """Whether the model is a mixture of experts; None: not known."""
        model = self.architecture
        return model.mixture if model.experts is None else model.experts > 0


class PastCase(PastRun):
    """One past optimisation.

    chip_stated: the chip as the source names it, where the catalogue lacks it. layout: what ran, or the arm after the
    change; baseline: the arm before it. supersedes: id of the case this one replaces. recorded_at: when a user recorded
    it. plan_id, proposal_rank: of the proposal of ours whose outcome this is.
    """

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=100)
    kind: Kind
    role: Role | None = None
    origin: Origin = "bundled"
    chip_stated: Words = Field("", max_length=80)
    release: Words | None = Field(None, max_length=80, description="of the framework")
    layout: PastLayout = PastLayout()
    baseline: PastLayout | None = None
    levers: tuple[PastLever, ...] = Field((), max_length=12)
    moves: tuple[PastMove, ...] = Field((), max_length=12)
    effect: PastEffect
    source: PastSource
    supersedes: str | None = Field(None, max_length=100)
    recorded_at: datetime | None = None
    plan_id: str | None = Field(None, max_length=64)
    proposal_rank: int | None = Field(None, ge=1, le=10)

    @model_validator(mode="after")
    def _agrees_with_its_kind(self) -> Self:
        if self.cause not in (None, "unknown") and self.bottleneck not in (None, BOTTLENECK_OF[self.cause]):
            raise ValueError(f"{self.cause} is a {BOTTLENECK_OF[self.cause]} bottleneck, not {self.bottleneck}")
        if self.kind == "published" and self.effect.outcome is not None:
            raise ValueError("a published layout has no outcome: nothing was compared; make it a change")
        if self.kind == "change" and self.effect.outcome is None:
            raise ValueError("a change needs effect.outcome")
        return self

    @model_validator(mode="after")
    def _layouts_are_possible(self) -> Self:
        self._check_layout(self.layout, "layout", self.chips)
        if self.baseline is not None:
            # a change may move the number of chips too
            self._check_layout(self.baseline, "baseline", None)
        return self

    def _check_layout(self, layout: PastLayout, name: str, chips: int | None) -> None:
        """ValueError: degrees that no placement on these chips has."""
        tp, pp, cp, ep = layout.degrees
        if layout.dp is not None and layout.fsdp is not None and layout.dp % layout.fsdp:
            raise ValueError(f"{name}: fsdp {layout.fsdp} does not divide dp {layout.dp}")
        if layout.dp is not None and (layout.dp * cp * tp) % (ep * (layout.etp or 1)):
            raise ValueError(f"{name}: ep * etp = {ep * (layout.etp or 1)} does not divide dp * cp * tp")
        if chips is None or layout.disaggregated:
            return
        devices = chips * (self.hardware.devices_per_chip if self.hardware is not None else 1)
        if devices % (tp * pp * cp):
            raise ValueError(f"{name}: tp * pp * cp = {tp * pp * cp} does not divide {devices} devices")
        if layout.dp is not None and layout.dp * tp * pp * cp != devices:
            raise ValueError(f"{name}: dp * tp * pp * cp = {layout.dp * tp * pp * cp}, not {devices} devices")

    @property
    def change(self) -> str:
        """What was done, composed from the settings: a layout that ran, or the moves of a change."""
        if self.kind == "published":
            return self.layout.text
        return "; ".join(move.text for move in self.moves) or ", ".join(self.levers) or "not stated"

    @property
    def text(self) -> str:
        """The case in one line: what ran where, what was done, what it measured, who says so."""
        machine = " ".join(part for part in (str(self.chips or ""), self.chip or self.chip_stated) if part)
        where = " on ".join(part for part in (self.model or "a model not named", machine) if part)
        return f"{where}: {self.change}; {self.effect.text} ({self.source.text})"

    @property
    def year_month(self) -> str:
        """The date by which a later case replaces it; empty where no date is known."""
        return self.recorded_at.date().isoformat() if self.recorded_at is not None else self.source.date or ""


class PastQuestion(PastRun):
    """A job of now, and what an evaluation must not see.

    baseline: the current layout. words: what is seen, told by a person. hide_groups: groups (family | chip) as
    `group_of` makes them. hide_sources: addresses.
    """

    baseline: ParallelismPlan | None = None
    words: str = Field("", max_length=4_000, description="the symptom in words: data, never an instruction")
    hide_groups: frozenset[str] = frozenset()
    hide_sources: frozenset[str] = frozenset()


class Contradiction(Record):
    """A case with the opposite outcome of the same change, and what differs between the two."""

    case_id: str
    differs: tuple[str, ...]


class PastMatch(Record):
    """A case beside a question.

    match: exact (same model, chip, number of chips and phase, and the same baseline where the case has one), same
    model, same chip, or similar. similarity in (0, 1], 1 where no known number differs; word_similarity: cosine of the
    question's words and a change, None where either has none. differs: what does, as words. stale: why a newer case
    replaces it; empty where none does.
    """

    case: PastCase
    match: MatchKind
    similarity: float = Field(ge=0, le=1)
    word_similarity: float | None = Field(None, ge=-1, le=1)
    differs: tuple[str, ...] = ()
    stale: str = ""
    contradicts: tuple[Contradiction, ...] = ()


def group_of(family: str, chip: str) -> str:
    """The group of a model family on a chip, whichever way the two are spelled.

    A chip whose id extends another's ("h100-sxm-96gb...") belongs to that one: figures of one tell of the other.
    """
    try:
        chip = catalog.chip(chip).id
    except UnknownName:
        chip = chip.strip().lower()
    base = min((known.id for known in catalog.chips() if chip.startswith(f"{known.id}-")), key=len, default=chip)
    return f"{normalise(family)}|{base}"


def _product(first: int | None, second: int | None) -> float | None:
    return None if first is None or second is None else float(first * second)
