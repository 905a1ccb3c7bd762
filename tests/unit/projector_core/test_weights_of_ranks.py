"""Weights of a serving engine, summed over its ranks: the checkpoint, and every copy that is told."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

from projector.catalog import architecture
from projector.cost.serving_memory import serving_weights_bytes
from projector.cost.stages import Stage, stages
from projector.graph.columns import Column
from projector.graph.serving_graph import StepWork, serving_graph
from projector.legality import legal_mask
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import WorkloadSpec

# dense with grouped and with all heads; latents with and without query latents, shared experts; experts alone; a first
# dense layer; sliding windows; tied embeddings; recurrent layers beside attention; an indexer
MODELS = (
    "llama-3-70b", "llama-2-13b", "deepseek-v3", "deepseek-v2-lite", "qwen3-235b-a22b", "mixtral-8x7b", "gpt-oss-120b",
    "gemma-3-27b", "llama-3.2-1b", "nemotron-h-56b", "qwen3-next-80b-a3b", "glm-5", "llama-4-maverick",
)  # fmt: skip
DEGREES = (1, 2, 4, 8, 16)
DEVICES = 16


@dataclass(frozen=True)
class Part:
    """Weights of the checkpoint that are shared out in one way: how many, stored wide or narrow, copies over an engine
    (columns)."""

    parameters: float
    wide: bool
    copies: Column


def plans(model: ModelArchitecture) -> PlanBatch:
    """Every legal engine of up to 16 devices."""
    found: list[ParallelismPlan] = []
    experts = DEGREES if model.is_moe else (1,)
    for tp, pp, attention_dp, ep, etp in product(DEGREES, DEGREES, DEGREES, experts, experts):
        if tp * pp * attention_dp > DEVICES or (attention_dp * tp) % (ep * etp):
            continue
        found.append(
            ParallelismPlan(phase="serving", dp=attention_dp, attention_dp=attention_dp, tp=tp, pp=pp, ep=ep, etp=etp)
        )
    kept = []
    for devices in DEGREES:
        batch = PlanBatch.from_plans([plan for plan in found if plan.devices == devices])
        load = WorkloadSpec(phase="serving", input_len=1024, output_len=128, concurrency=64)
        cluster = ClusterSpec(chip="gb300", chips=devices)
        kept.append(batch.take(legal_mask(batch, load, model, cluster, None)))
    return PlanBatch.concat(kept)


def resident_bytes(model: ModelArchitecture, batch: PlanBatch) -> Column:
    """What the projector holds on all ranks of an engine together: the stages of its pipeline one by one."""
    one = np.ones(len(batch))
    work = StepWork(one, one, one, one, one, one)
    operators = serving_graph(batch, model, batch.compute_dtype, work)
    weight_bytes = np.where(batch.weight_dtype == "bf16", 2.0, 1.0)
    pp = batch.pp.astype(np.float64)
    found = stages(model, pp, one, one, 0 * one)

    def held(stage: Stage) -> Column:
        return serving_weights_bytes(operators, stage, weight_bytes, weight_bytes)

    # `longer` stages hold a layer more than the others; the last one is never among them
    longer = np.mod(model.layers, pp)
    fewer = np.floor(model.layers / pp) / np.ceil(model.layers / pp)
    between = np.where(longer > 0, longer - 1 + (pp - longer - 1) * fewer, pp - 2)
    several = held(found.first) + between * held(found.middle) + held(found.last)
    return batch.tp * batch.attention_dp * np.where(pp == 1, held(found.first), several)


def parts(model: ModelArchitecture, batch: PlanBatch) -> Iterator[Part]:
    """The checkpoint by how engines share it out; formulas of the descriptions, not of the operators."""
    ranks = (batch.attention_dp * batch.tp).astype(np.float64)
    whole, once = ranks, batch.attention_dp.astype(np.float64)
    table = model.embedding_parameters + model.layer_embedding_parameters
    yield Part(table, True, once)
    yield Part(model.embedding_parameters, True, np.where(model.tied_embeddings, once * (batch.pp > 1), once))
    yield Part(model.norm_parameters, True, whole)
    for one in model.by_sort():
        yield from _mixers(one, batch, whole, once)
        moe = one.moe_layers
        yield Part((one.layers - moe) * one.dense_mlp_parameters if one.has_dense_mlp else 0, False, once)
        if moe:
            routed = one.experts * one.expert_parameters
            narrow = 2 * one.hidden_size * one.expert_latent_size
            shared = one.moe_block_parameters - routed - narrow - one.hidden_size * one.experts
            yield Part(moe * routed, False, ranks / (batch.ep * batch.etp))
            yield Part(moe * shared, False, once)
            yield Part(moe * narrow, False, whole)
            yield Part(moe * one.hidden_size * one.experts, True, whole)


def _mixers(one: ModelArchitecture, batch: PlanBatch, whole: Column, once: Column) -> Iterator[Part]:
    if one.attention_layers:
        layers, keys = one.attention_layers, 0
        if one.is_mla:
            keys = one.hidden_size * (one.kv_lora_rank + one.qk_rope_head_dim + one.q_lora_rank)
            copies = whole
        else:
            keys = one.hidden_size * one.kv_heads * (one.head_dim + one.value_dim)
            copies = once * np.maximum(batch.tp / one.kv_heads, 1.0)
        yield Part(layers * keys, False, copies)
        yield Part(layers * (one.attention_parameters - keys), False, once)
        yield Part(layers * one.index_parameters, False, whole)
    if one.recurrence is not None:
        mixer = one.recurrence
        keys = 2 * mixer.key_features * one.hidden_size
        yield Part(one.layers * keys, False, once * np.maximum(batch.tp / mixer.groups, 1.0))
        yield Part(one.layers * mixer.vector_parameters, True, once)
        rest = one.recurrence_parameters - keys - mixer.vector_parameters
        yield Part(one.layers * rest, False, once)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
def test_ranks_hold_the_checkpoint_and_the_copies_that_are_told(name: str, dtype: str) -> None:
    model = architecture(name)
    batch = plans(model)
    batch = PlanBatch({**batch.columns, "weight_dtype": np.full(len(batch), dtype)})
    assert len(batch) > 20
    linear = 2.0 if dtype == "bf16" else 1.0
    told = list(parts(model, batch))
    # the parts are the checkpoint
    tied = model.embedding_parameters if model.tied_embeddings else 0
    assert sum(part.parameters for part in told) - tied == pytest.approx(model.parameters, rel=1e-6)
    expected = sum(part.parameters * (2.0 if part.wide else linear) * part.copies for part in told)
    assert resident_bytes(model, batch) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("name", MODELS)
def test_one_device_holds_the_checkpoint(name: str) -> None:
    model = architecture(name)
    batch = PlanBatch.from_plans([ParallelismPlan(phase="serving")])
    assert resident_bytes(model, batch)[0] == pytest.approx(2.0 * model.parameters, rel=1e-9)


def test_experts_stand_once_whatever_shares_them_out() -> None:
    # the defect this would find: experts divided by ep and again by tp
    model = architecture("deepseek-v3")
    shared_out = [(8, 1, 8, 1), (8, 1, 1, 8), (8, 1, 2, 4), (1, 8, 8, 1), (2, 4, 4, 2)]
    batch = PlanBatch.from_plans(
        [
            ParallelismPlan(phase="serving", dp=dp, attention_dp=dp, tp=tp, ep=ep, etp=etp, weight_dtype="fp8")
            for tp, dp, ep, etp in shared_out
        ]
    )
    one = np.ones(len(batch))
    operators = serving_graph(batch, model, batch.compute_dtype, StepWork(one, one, one, one, one, one))
    stage = stages(model, one, one, one, 0 * one).first
    routed = [operator for operator in operators if operator.expert]
    held = serving_weights_bytes(routed, stage, one, one) * batch.tp * batch.attention_dp
    assert held == pytest.approx(58 * 256 * 3 * 7168 * 2048)


def test_leading_dense_layers_stand_on_the_first_stage() -> None:
    model = architecture("deepseek-v3")
    two = 2.0 * np.ones(1)
    found = stages(model, two, np.ones(1), np.ones(1), np.zeros(1))
    assert [float(stage.places["dense_layer"][0]) for stage in (found.first, found.last)] == [3, 0]
    assert [float(stage.places["moe_layer"][0]) for stage in (found.first, found.last)] == [28, 30]
