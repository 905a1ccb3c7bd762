"""What a fine-tuning step trains beside, or in place of, all weights."""

from typing import Literal

from pydantic import Field, field_validator

from projector.specs.plan import Dtype
from projector.specs.record import MOST_WIDTH, Record

AdapterTarget = Literal["query", "key", "value", "output", "gate", "up", "down", "experts"]
ATTENTION_TARGETS: tuple[AdapterTarget, ...] = ("query", "key", "value", "output")
LINEAR_TARGETS: tuple[AdapterTarget, ...] = (*ATTENTION_TARGETS, "gate", "up", "down")


class Adapter(Record):
    """Low-rank adapters on frozen weights (LoRA, arXiv:2106.09685; with narrow frozen weights QLoRA, arXiv:2305.14314).

    Beside a frozen product y = x W of width k x n stand two trained ones, (x A) B of widths k x rank and rank x n, and
    their sum. Everything else is frozen too: embedding, head, norms and routers.

    targets       the projections that have adapters; gate, up and down are those of dense MLPs and shared experts,
                  experts all matrices of every routed expert
    frozen_dtype  what the frozen matrices of the layers are stored in; narrower than the compute dtype they are widened
                  before every product. Embedding, head, norms and routers stay in 16 bit. fp4 stands for NF4 too: both
                  carry about half a bit a weight in scales
    joint         whether query, key and value share one A, and gate and up another, as where a stack holds them as one
                  matrix (Megatron); False: each projection has its own (PEFT, torchtune)
    """

    rank: int = Field(ge=1, le=MOST_WIDTH, description="width between the two trained matrices")
    targets: tuple[AdapterTarget, ...] = Field(LINEAR_TARGETS, min_length=1, description="projections with adapters")
    frozen_dtype: Dtype = Field("bf16", description="dtype the frozen matrices are stored in")
    joint: bool = Field(False, description="whether projections of one input share their first matrix")

    @field_validator("targets")
    @classmethod
    def _each_once(cls, targets: tuple[AdapterTarget, ...]) -> tuple[AdapterTarget, ...]:
        twice = sorted({target for target in targets if targets.count(target) > 1})
        if twice:
            raise ValueError(f"{', '.join(twice)} named more than once")
        return targets

    @property
    def text(self) -> str:
        """The adapters in a few words."""
        quantised = "" if self.frozen_dtype in ("fp32", "bf16", "fp16") else f", frozen weights in {self.frozen_dtype}"
        return f"rank {self.rank} on {', '.join(self.targets)}{quantised}"
