"""A disaggregated row as a plan of a prefill and a decode pool."""

from dataclasses import replace
from typing import Literal

from agents.evaluation.refusal import Refused
from agents.evaluation.serving_rows import ServingRow, StatedEngine
from projector.specs.architecture import ModelArchitecture
from projector.specs.plan import Dtype, KvTransfer, ParallelismPlan

# Stacks of the rows: SGLang and TensorRT-LLM under NVIDIA's Dynamo and vLLM's connector all move caches by NIXL.
TRANSFER: KvTransfer = "nixl"
# 8-bit weights of DeepSeek's kind have a scale a block of 128 x 128 (arXiv:2412.19437, section 3.3.2): engines do not
# cut a block
NARROWEST_SLICE = 128


def plan_of_pools(
    row: ServingRow,
    model: ModelArchitecture,
    *,
    weight_dtype: Dtype,
    expert_dtype: Literal["same", Dtype],
    kv_cache_dtype: Dtype,
    prefill_tokens: int,
    assumed: list[str],
) -> ParallelismPlan:
    """The plan of a row with two pools (`row.pools`): every engine as the row lays it out.

    Decode engines have seats for the requests in flight, shared evenly. Refused where a layout is none of one engine.
    """
    assert row.pools is not None
    if row.concurrency is None:
        raise Refused("requests in flight not stated")
    count = row.pools.decode_engines
    prefill, decode = (_experts_whole(engine, model, assumed) for engine in (row.pools.prefill, row.pools.decode))
    for pool, engine in (("prefill", prefill), ("decode", decode)):
        _check(pool, engine, model)
    assumed.append("caches are moved by NIXL, once a prompt is prefilled")
    return ParallelismPlan(
        phase="serving",
        dp=decode.attention_dp * count,
        attention_dp=decode.attention_dp,
        tp=decode.tp,
        pp=decode.pp,
        ep=decode.ep if model.is_moe else 1,
        etp=decode.etp if model.is_moe else 1,
        weight_dtype=weight_dtype,
        expert_dtype=expert_dtype,
        kv_cache_dtype=kv_cache_dtype,
        max_num_seqs=max(-(-row.concurrency // count), decode.attention_dp),
        chunked_prefill_tokens=prefill_tokens,
        prefill_replicas=row.pools.prefill_engines,
        prefill_tp=prefill.tp,
        prefill_pp=prefill.pp,
        prefill_attention_dp=prefill.attention_dp,
        prefill_ep=prefill.ep if model.is_moe else 1,
        prefill_etp=prefill.etp if model.is_moe else 1,
        kv_transfer=TRANSFER,
    )


def _experts_whole(engine: StatedEngine, model: ModelArchitecture, assumed: list[str]) -> StatedEngine:
    """The engine, its experts whole on its ranks where a slice of one would be narrower than a block of scales."""
    if not model.is_moe or engine.ep != 1 or model.moe_intermediate_size >= NARROWEST_SLICE * max(engine.etp, 1):
        return engine
    assumed.append(f"experts over all {engine.etp} ranks: slices of one would be narrower than a block of scales")
    return replace(engine, ep=engine.etp, etp=1)


def _check(pool: str, engine: StatedEngine, model: ModelArchitecture) -> None:
    if model.is_moe and engine.ep * engine.etp == 0:
        raise Refused(f"over how many devices the experts of a {pool} engine lie is not stated")
    if model.heads % engine.tp:
        raise Refused(f"tp {engine.tp} of the {pool} pool does not divide the heads: several engines counted as one")
    if model.is_moe and (engine.attention_dp * engine.tp) % (engine.ep * engine.etp):
        raise Refused(f"experts of the {pool} pool lie over other devices than an engine's")
