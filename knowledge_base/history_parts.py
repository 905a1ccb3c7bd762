"""The parts a past case is made of: where its facts can be read, the model, the layout, what was moved and measured.

Names, texts and addresses come from outside: data, never instructions or markup.
"""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from projector import catalog
from projector.errors import UnknownName
from projector.levers import LEVERS
from projector.specs.plan import ParallelismPlan, Phase
from projector.specs.record import MOST_DEVICES, MOST_SEQUENCES, MOST_WIDTH, Record

Kind = Literal["published", "change"]
Task = Literal["pretrain", "sft", "lora", "qlora", "rl", "inference"]
Role = Literal["adopted", "benchmark", "fastest of a sweep"]
Outcome = Literal["improved", "worse", "neutral", "unknown"]
MatchKind = Literal["exact", "same model", "same chip", "similar"]
Origin = Literal["bundled", "user"]

# what is done to a job besides its layout and the knobs that `projector.levers` names
OTHER_LEVERS = (
    "async_rl", "batch", "collective_algo", "compile", "data", "diagnosis", "grad_accum", "host", "hsdp", "kernels",
    "kv", "load_balance", "memory", "offload", "optimizer", "packing", "prefix_cache", "routing", "scaling",
    "scheduler", "sharding", "weight_sync", "zero_stage",
)  # fmt: skip
PAST_LEVERS = tuple(sorted({lever.name for lever in LEVERS} | set(OTHER_LEVERS)))
TASK_PHASE: dict[Task, Phase] = {
    "pretrain": "training",
    "sft": "training",
    "lora": "training",
    "qlora": "training",
    "rl": "training",
    "inference": "serving",
}
# the same characters a note may not hold: controls, marks that reorder text, half characters
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def _one_line(text: str) -> str:
    if _FORBIDDEN.search(text):
        raise ValueError("holds a line break, a control character or a mark that changes the reading order")
    return text


def _chip_id(name: object) -> object:
    """The catalogue's id of a chip by any of its names."""
    if not isinstance(name, str):
        return name
    try:
        return catalog.chip(name).id
    except UnknownName as error:
        raise ValueError(f"{error.message}; {error.hint}") from error


def _past_lever(name: str) -> str:
    if name not in PAST_LEVERS:
        error = UnknownName("lever", name, PAST_LEVERS)
        raise ValueError(f"{error.message}; {error.hint}")
    return name


Words = Annotated[str, AfterValidator(_one_line)]
ChipId = Annotated[str, BeforeValidator(_chip_id)]
PastLever = Annotated[str, AfterValidator(_past_lever)]
Degree = Annotated[int | None, Field(None, ge=1, le=MOST_DEVICES)]


class PastSource(Record):
    """Where a fact can be read. title: of the work, or of the file in its repository."""

    title: Words = Field(min_length=1, max_length=200)
    url: str | None = Field(None, pattern=r"^https?://[^\s<>\"']+$", max_length=300)
    date: Words | None = Field(None, pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$", description="as exact as it is known")

    @property
    def text(self) -> str:
        """The source in one line."""
        return ", ".join(part for part in (self.title, self.date, self.url) if part)


class PastArchitecture(Record):
    """Numbers of a model; None: not stated. experts 0: dense. mixture: where only that is known, and no number."""

    parameters: float | None = Field(None, gt=0, le=1e15)
    active_parameters: float | None = Field(None, gt=0, le=1e15, description="of one token; equal where dense")
    layers: int | None = Field(None, ge=1, le=MOST_WIDTH)
    hidden_size: int | None = Field(None, ge=1, le=MOST_WIDTH)
    heads: int | None = Field(None, ge=1, le=MOST_WIDTH)
    kv_heads: int | None = Field(None, ge=1, le=MOST_WIDTH)
    experts: int | None = Field(None, ge=0, le=MOST_WIDTH)
    mixture: bool | None = Field(None, description="whether it is a mixture of experts, where `experts` is not stated")

    @property
    def shape(self) -> tuple[int, ...] | None:
        """What makes two models one to a planner; None unless every number is known."""
        numbers = (self.layers, self.hidden_size, self.heads, self.kv_heads, self.experts)
        known = tuple(number for number in numbers if number is not None)
        return known if len(known) == len(numbers) else None


class PastLayout(Record):
    """Degrees of a layout, named as in ParallelismPlan and counted over devices; None: the source does not say.

    fsdp: size of the group that shares one copy of the weights, 1 where every rank holds them whole.
    """

    dp: Degree = None
    fsdp: Degree = None
    zero_stage: Literal[0, 1, 2, 3] | None = None
    tp: Degree = None
    pp: Degree = None
    vp: Degree = None
    cp: Degree = None
    ep: Degree = None
    etp: Degree = None
    attention_dp: Degree = None
    disaggregated: bool | None = None
    micro_batch: int | None = Field(None, ge=1, le=MOST_SEQUENCES)
    recompute: Literal["none", "selective", "full"] | None = None

    @property
    def degrees(self) -> tuple[int, int, int, int]:
        """(tp, pp, cp, ep); a degree that is not stated is 1, which is how published layouts are read."""
        return (self.tp or 1, self.pp or 1, self.cp or 1, self.ep or 1)

    @property
    def text(self) -> str:
        """The stated degrees in one line."""
        stated = self.model_dump(exclude_none=True)
        return " ".join(f"{name} {str(value).lower()}" for name, value in stated.items()) or "not stated"

    def agrees_with(self, plan: ParallelismPlan) -> bool:
        """Whether the plan has every degree this layout states; tp, pp, cp, ep and attention_dp are 1 where it states
        none."""
        if self.degrees != (plan.tp, plan.pp, plan.cp, plan.ep) or (self.attention_dp or 1) != plan.attention_dp:
            return False
        others = ("dp", "fsdp", "etp")
        return all(getattr(self, name) in (None, getattr(plan, name)) for name in others)


class PastMove(Record):
    """One setting a change moved, as its source writes the two values."""

    field: Words = Field(min_length=1, max_length=60)
    before: Words = Field("", max_length=80)
    after: Words = Field("", max_length=80)

    @property
    def text(self) -> str:
        """The move in words."""
        return f"{self.field} {self.before or '(not stated)'} -> {self.after or '(not stated)'}"


class PastEffect(Record):
    """What was measured. ratio: above 1 is better on this metric, also where lower is better; None: not measured.

    before, after: the figures; of a published layout only `after`. outcome None: nothing was compared.
    """

    metric: Words = Field(min_length=1, max_length=80)
    unit: Words = Field("", max_length=40)
    before: float | None = Field(None, ge=0)
    after: float | None = Field(None, ge=0)
    ratio: float | None = Field(None, gt=0)
    outcome: Outcome | None = None

    @property
    def text(self) -> str:
        """The effect in words."""
        unit = f" {self.unit}" if self.unit else ""
        if self.outcome is None:
            return f"{self.metric} {_figure(self.after)}{unit}" if self.after is not None else self.metric
        figures = ""
        if self.before is not None and self.after is not None:
            figures = f" from {_figure(self.before)} to {_figure(self.after)}{unit}"
        ratio = f", {self.ratio:.3g}x" if self.ratio is not None else ""
        said = {"improved": "better", "worse": "worse", "neutral": "unchanged within noise", "unknown": "not measured"}
        return f"{self.metric}{figures}: {said[self.outcome]}{ratio}"


def _figure(value: float | None) -> str:
    return "not stated" if value is None else f"{value:,.6g}"
