"""The operator graph of one step of a serving engine: decoding requests, with or without a prefill chunk."""

from dataclasses import dataclass

import numpy as np

from projector.graph.columns import DTYPE_BYTES, Column, lookup
from projector.graph.drafting import drafts
from projector.graph.engine_kernels import BEST_KERNELS, ChipKernels, engine_kernels
from projector.graph.groups import Degrees
from projector.graph.layer import forward
from projector.graph.operator import Operator
from projector.graph.scope import AttentionWork, RoutedExperts, Scope, causal_pairs
from projector.graph.step_work import StepWork as StepWork
from projector.graph.sync import pipeline_sends
from projector.specs.architecture import ModelArchitecture
from projector.specs.plan_batch import Column as AnyColumn
from projector.specs.plan_batch import PlanBatch
from projector.specs.software import SERVING

# Bytes of an element DeepEP sends to a narrow expert: 8 bit with an fp32 scale for 128 of them (its README).
NARROW_SENT_BYTES = 1.0 + 4.0 / 128.0


def serving_graph(
    batch: PlanBatch,
    model: ModelArchitecture,
    math_dtype: AnyColumn,
    work: StepWork,
    experts: "Experts | None" = None,
    kernels: ChipKernels = BEST_KERNELS,
) -> tuple[Operator, ...]:
    """Operators of one step on one rank, columns of shape [len(batch)]; the same layer as in training, with the
    kernels of an engine.

    math_dtype is what GEMMs run in (the narrower of weight and compute dtype the chip offers); weights are read at
    weight_dtype, keys and values at kv_cache_dtype. No backward pass, no sharding over data ranks. Where tokens are
    speculated on, what drafts them runs beside the step, on the last stage.
    """
    degrees = Degrees.of(batch)

    def scope_of(of: ModelArchitecture, on: StepWork) -> Scope:
        return serving_scope(batch, degrees, of, math_dtype, on, experts)

    scope = scope_of(model, work)
    operators = (*forward(scope, training=False), *pipeline_sends(scope, scope.one, ("forward",)))
    return (*engine_kernels(operators, batch, scope, kernels), *drafts(batch, model, work, scope_of, kernels))


@dataclass(frozen=True)
class Experts:
    """Routed experts of a batch: the dtypes they are stored and multiplied in, tokens of the busiest rank over the
    mean (None: the stack's)."""

    stored: AnyColumn
    math: AnyColumn
    imbalance: float | None = None


def expert_dtypes(batch: PlanBatch) -> AnyColumn:
    """The dtype routed experts are stored in."""
    same = batch.expert_dtype == "same"
    return batch.weight_dtype if same.all() else np.where(same, batch.weight_dtype, batch.expert_dtype)


def serving_scope(
    batch: PlanBatch,
    degrees: Degrees,
    model: ModelArchitecture,
    math_dtype: AnyColumn,
    work: StepWork,
    experts: Experts | None = None,
) -> Scope:
    """The columns a layer's serving operators depend on. experts None: multiplied in math_dtype.

    Engines with DeepEP decode with its low-latency kernels, which send every copy by itself, and prefill with those
    that send one copy to a domain.
    """
    element = lookup(math_dtype, DTYPE_BYTES)
    kv_bytes = lookup(batch.kv_cache_dtype, DTYPE_BYTES)
    act_bytes = np.maximum(lookup(batch.compute_dtype, DTYPE_BYTES), 2.0)
    gathers = batch.expert_dispatch == "all_gather"

    def attention(of: ModelArchitecture) -> tuple[AttentionWork, ...]:
        return (_prefill_attention(of, work, kv_bytes), _decode_attention(of, work, kv_bytes))

    return Scope(
        model=model,
        software=SERVING,
        tokens=work.tokens,
        head_tokens=work.decoded_rows + work.prompts,
        tp=degrees.tp,
        pp=degrees.pp,
        sp=np.zeros(len(batch), dtype=np.bool_),
        ep=degrees.ep,
        etp=degrees.etp,
        act_bytes=act_bytes,
        linear_bytes=element,
        weight_bytes=lookup(batch.weight_dtype, DTYPE_BYTES),
        quantised=element < 2.0,
        one_copy=(batch.expert_dispatch == "deepep") & (work.prompts > 0),
        gathers_tokens=gathers if gathers.any() else None,
        routed=_routed(batch, experts or Experts(expert_dtypes(batch), math_dtype), act_bytes, work)
        if model.is_moe
        else None,
        attention=attention(model),
    ).with_sorts(attention)


def _routed(batch: PlanBatch, experts: Experts, act_bytes: Column, work: StepWork) -> RoutedExperts:
    element = lookup(experts.math, DTYPE_BYTES)
    deepep = batch.expert_dispatch == "deepep"
    imbalance = SERVING.expert_imbalance if experts.imbalance is None else experts.imbalance
    return RoutedExperts(
        weight_bytes=lookup(experts.stored, DTYPE_BYTES),
        linear_bytes=element,
        quantised=element < 2.0,
        imbalance=np.full(len(batch), imbalance),
        spare=batch.redundant_experts.astype(np.float64),
        sent_bytes=np.where(deepep & (element < 2.0), NARROW_SENT_BYTES, act_bytes),
        notified=deepep & (work.prompts > 0),
    )


def _decode_attention(model: ModelArchitecture, work: StepWork, kv_bytes: Column) -> AttentionWork:
    """Every request reads its whole context (or window) once, for all of its rows: memory-bound.

    With fixed chunks a token sees half of one in the mean, and all of its context in the first.
    """
    limit = float(model.window or np.inf)
    seen = np.where(work.context > limit, limit / 2, work.context) if model.chunked_window else work.context
    window = np.minimum(seen, limit)
    return AttentionWork(
        queries=work.decoded_rows,
        full_pairs=work.decoded_rows * work.context,
        window_pairs=work.decoded_rows * window,
        full_keys=work.decoding * work.context,
        window_keys=work.decoding * window,
        kv_bytes=kv_bytes,
        absorbed=True,
    )


def _prefill_attention(model: ModelArchitecture, work: StepWork, kv_bytes: Column) -> AttentionWork:
    """The mean chunk of a prompt: a chunks-th of its pairs; keys read back are the cached ones, half of the others and
    half a chunk. Cached tokens ask nothing, and are asked by all that follow them."""
    keys = (work.prompt + work.cached + work.chunk) / 2
    window = keys if model.window is None else np.minimum(keys, model.window + work.chunk)
    each = work.prompts / work.chunks

    def pairs(limit: int | None, *, chunked: bool = False) -> Column:
        whole = causal_pairs(work.prompt, limit, chunked=chunked)
        return each * (whole - causal_pairs(work.cached, limit, chunked=chunked))

    return AttentionWork(
        queries=work.prompts * work.chunk,
        full_pairs=pairs(None),
        window_pairs=pairs(model.window, chunked=model.chunked_window),
        full_keys=work.prompts * keys,
        window_keys=work.prompts * window,
        kv_bytes=kv_bytes,
        # sparse attention works on the latents themselves
        expanded_again=0.0 if model.index_topk else work.prompts * (keys - work.chunk),
    )
