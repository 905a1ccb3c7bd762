"""What a post-training row trains: all weights, or adapters of the rank and on the projections it states or implies.

Rank and projections hardly move a step; a row that leaves them out takes what its framework's recipes use unless told
otherwise and is marked. Which dtype frozen weights are stored in does matter where products run in 8 bit: both it and
16 bit are tried.
"""

from collections.abc import Iterator
from typing import cast

from agents.evaluation.refusal import Refused
from agents.evaluation.rows import MeasuredRow
from projector.graph.columns import DTYPE_BYTES
from projector.specs.fine_tuning import ATTENTION_TARGETS, LINEAR_TARGETS, Adapter, AdapterTarget
from projector.specs.plan import ComputeDtype, Dtype

# what a step trains by the phase of a row, or by the method it prints
ALL_WEIGHTS = ("pretrain", "sft", "full")
ADAPTERS = ("lora", "qlora")
PHASES = ("pretrain", "sft", *ADAPTERS)
# QLoRA's 4-bit frozen weights (NF4) carry as many bytes as fp4 with block scales
QUANTISED: Dtype = "fp4"
# what is stored in place of products with scales of blocks
UNSCALED: dict[ComputeDtype, Dtype] = {"mxfp8": "fp8", "nvfp4": "fp4"}
OPEN = "adapter"
STORED = "frozen_dtype"

# Defaults of the frameworks' own recipes: the performance recipes of Megatron-Bridge and NeMo (dim 32, the joint
# projection of query, key and value), torchtune's lora configurations (8 and 16 by size of model, q, v, output and the
# MLP), LitGPT's fine-tuning scripts (8, q and v).
RECIPES: tuple[tuple[str, Adapter], ...] = (
    *((name, Adapter(rank=32, targets=("query", "key", "value"), joint=True)) for name in ("megatron", "nemo")),
    ("torchtune", Adapter(rank=16, targets=("query", "value", "output", "gate", "up", "down"))),
    ("litgpt", Adapter(rank=8, targets=("query", "value"))),
)
# the setting of the paper (arXiv:2106.09685, section 4.2)
USUAL = Adapter(rank=8, targets=("query", "value"))
SCOPES: dict[str, tuple[AdapterTarget, ...]] = {"attention": ATTENTION_TARGETS, "all linear": LINEAR_TARGETS}


def adapters_of(
    row: MeasuredRow, dtype: ComputeDtype, *, gated: bool
) -> tuple[tuple[Adapter | None, ...], tuple[str, ...]]:
    """(what the row may mean, which knobs of it are assumed); a lone None: all weights are trained.

    Refused for a phase or a method that is no such step.
    """
    method = (row.plan.method or row.phase).lower()
    if row.phase not in PHASES or method not in (*ALL_WEIGHTS, *ADAPTERS):
        raise Refused(f"{row.plan.method or row.phase}: neither a step on all weights nor one on low-rank adapters")
    if method in ALL_WEIGHTS:
        return (None,), ()
    found = _stated(row)
    choices = tuple(
        found.model_copy(update={"frozen_dtype": stored, "targets": _without_gate(found.targets, gated=gated)})
        for stored in _stored(method, dtype)
    )
    whole = row.plan.adapter_rank is not None and row.plan.adapter_scope is not None
    return choices, (*(() if whole else (OPEN,)), *((STORED,) if len(choices) > 1 else ()))


def _stated(row: MeasuredRow) -> Adapter:
    framework = row.framework.lower()
    recipe = next((adapter for name, adapter in RECIPES if name in framework), USUAL)
    rank, scope = row.plan.adapter_rank, row.plan.adapter_scope
    if scope is not None and scope not in SCOPES:
        raise Refused(f"adapters on {scope!r}: which projections that means is not known")
    return Adapter(
        rank=rank or recipe.rank,
        targets=recipe.targets if scope is None else SCOPES[scope],
        joint=recipe.joint,
    )


def _without_gate(targets: tuple[AdapterTarget, ...], *, gated: bool) -> tuple[AdapterTarget, ...]:
    """All linear layers of a model without gated MLPs are those it has."""
    return tuple(target for target in targets if gated or target != "gate")


def _stored(method: str, dtype: ComputeDtype) -> Iterator[Dtype]:
    if method == "qlora":
        yield QUANTISED
        return
    yield "bf16"
    if DTYPE_BYTES[dtype] < DTYPE_BYTES["bf16"]:
        yield UNSCALED.get(dtype, cast(Dtype, dtype))
