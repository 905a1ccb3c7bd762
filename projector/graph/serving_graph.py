"""The operator graph of one step of a serving engine: decoding requests, with or without a prefill chunk."""

from dataclasses import dataclass

import numpy as np

from projector.graph.columns import DTYPE_BYTES, Column, lookup
from projector.graph.groups import Degrees
from projector.graph.layer import forward
from projector.graph.operator import Operator
from projector.graph.scope import AttentionWork, Scope, causal_pairs
from projector.graph.sync import pipeline_sends
from projector.specs.architecture import ModelArchitecture
from projector.specs.plan_batch import Column as AnyColumn
from projector.specs.plan_batch import PlanBatch
from projector.specs.software import SERVING


@dataclass(frozen=True)
class StepWork:
    """What one step of one attention rank works on (columns).

    decoding        requests that decode, `context` tokens behind each
    prompts         prompts whose chunk is in the step (0 in a pure decode step)
    chunk           prompt tokens of each, prompt: their whole length, chunks: how many chunks a prompt is cut into
    cached          prompt tokens that a prefix cache holds: they are read and not computed
    rows_each       rows of each decoding request: its last token, and the drafted ones that are verified with it
    """

    decoding: Column
    context: Column
    prompts: Column
    chunk: Column
    prompt: Column
    chunks: Column
    cached: Column | float = 0.0
    rows_each: Column | float = 1.0

    @property
    def decoded_rows(self) -> Column:
        """Rows of decoding requests."""
        return self.decoding * self.rows_each

    @property
    def tokens(self) -> Column:
        """Rows that pass the layers."""
        return self.decoded_rows + self.prompts * self.chunk


def serving_graph(
    batch: PlanBatch, model: ModelArchitecture, math_dtype: AnyColumn, work: StepWork
) -> tuple[Operator, ...]:
    """Operators of one step on one rank, columns of shape [len(batch)]; the same layer as in training.

    math_dtype is what GEMMs run in (the narrower of weight and compute dtype the chip offers); weights are read at
    weight_dtype, keys and values at kv_cache_dtype. No backward pass, no sharding over data ranks.
    """
    scope = serving_scope(batch, Degrees.of(batch), model, math_dtype, work)
    return (*forward(scope, training=False), *pipeline_sends(scope, scope.one, ("forward",)))


def serving_scope(
    batch: PlanBatch, degrees: Degrees, model: ModelArchitecture, math_dtype: AnyColumn, work: StepWork
) -> Scope:
    """The columns a layer's serving operators depend on."""
    element = lookup(math_dtype, DTYPE_BYTES)
    kv_bytes = lookup(batch.kv_cache_dtype, DTYPE_BYTES)
    act_bytes = np.maximum(lookup(batch.compute_dtype, DTYPE_BYTES), 2.0)

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
        one_copy=np.full(len(batch), SERVING.expert_dispatch == "token"),
        attention=attention(model),
    ).with_sorts(attention)


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
