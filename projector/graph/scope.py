"""Scope: everything the operators of a layer depend on, as columns; the same for training and for serving."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from projector.graph.columns import DTYPE_BYTES, Column, Switch, lookup
from projector.specs.architecture import ModelArchitecture
from projector.specs.plan_batch import Column as AnyColumn
from projector.specs.recurrence import Recurrence
from projector.specs.software import Software


@dataclass(frozen=True)
class AttentionWork:
    """One kind of query a pass brings to attention (training rows, a prefill chunk, decoding rows).

    queries                     query tokens on the device's data rank
    full_pairs, window_pairs    (query, key) pairs a causal kernel computes, without and with the sliding window
    full_keys, window_keys      tokens whose keys and values are read from memory, likewise
    kv_bytes                    bytes of one stored key or value element
    absorbed                    latent attention computes on the cached latents themselves (decoding)
    expanded_again              cached tokens whose latents are expanded to keys and values once more
    shaped                      the rate follows the shape (training); serving engines are calibrated as a whole
    rounds                      kernels the work is cut into, each on so many-th of the keys (a ring of cp ranks: cp)
    """

    queries: Column
    full_pairs: Column
    window_pairs: Column
    full_keys: Column
    window_keys: Column
    kv_bytes: Column
    absorbed: bool = False
    expanded_again: Column | float = 0.0
    rounds: Column | float = 1.0
    shaped: bool = False


@dataclass(frozen=True)
class RoutedExperts:
    """What a serving engine does with routed experts and their tokens; columns.

    weight_bytes, linear_bytes, quantised   of their products, where `Scope` has those of all others
    imbalance       tokens the busiest rank of an expert group gets over the mean, before copies of experts share them
    spare           copies of busy experts over the whole group, beside one of each expert
    sent_bytes      bytes of an element on its way to an expert
    notified        plans whose ranks tell each other how much they will send before they do
    """

    weight_bytes: Column
    linear_bytes: Column
    quantised: Switch
    imbalance: Column
    spare: Column
    sent_bytes: Column
    notified: Switch


@dataclass(frozen=True)
class Scope:
    """What a pass through a layer works on, on one device.

    tokens          rows one (data, context) rank pushes through the layer at once, whole over its TP group
    head_tokens     rows that reach the vocabulary projection
    sp              Megatron sequence parallelism: norms and residuals hold tokens / tp rows
    act_bytes       bytes of an activation element between operators
    linear_bytes    bytes of a GEMM operand (1 with fp8), weight_bytes of a weight as it is read
    quantised       whether activations are cast before each GEMM
    sorts           the same for each sort of layers of a model that lists them
    prediction      the same for a prediction layer, where some are trained
    one_copy        whether one copy of a token goes to a domain, which forwards it to its experts there
    block_scaled    whether a cast is made once along rows and once along columns; None: it never is
    gathers_tokens  whether every rank of an expert group gets all tokens of the group; None: none does
    routed          how a serving engine keeps and feeds routed experts; None: like all else (training)
    """

    model: ModelArchitecture
    software: Software
    tokens: Column
    head_tokens: Column
    tp: Column
    pp: Column
    sp: Switch
    ep: Column
    etp: Column
    act_bytes: Column
    linear_bytes: Column
    weight_bytes: Column
    quantised: Switch
    attention: tuple[AttentionWork, ...]
    one_copy: Switch
    gathers_tokens: Switch | None = None
    block_scaled: Switch | None = None
    sorts: tuple["Scope", ...] = ()
    prediction: "Scope | None" = None
    routed: RoutedExperts | None = None

    def of_experts(self) -> "Scope":
        """The scope of the products of routed experts."""
        routed = self.routed
        if routed is None:
            return self
        return replace(
            self,
            weight_bytes=routed.weight_bytes,
            linear_bytes=routed.linear_bytes,
            quantised=routed.quantised,
        )

    def with_sorts(self, attention: Callable[[ModelArchitecture], tuple[AttentionWork, ...]]) -> "Scope":
        """The scope with one for each sort of layers, where the model lists them, and for its prediction layers."""

        def of(model: ModelArchitecture) -> Scope:
            return replace(self, model=model, attention=attention(model))

        sorts = tuple(of(one) for one in self.model.by_sort()) if self.model.sorts else ()
        prediction = of(self.model.prediction_layer()) if self.model.trained_mtp_layers else None
        return replace(self, sorts=sorts, prediction=prediction) if sorts or prediction else self

    @property
    def one(self) -> Column:
        """Ones of shape [n]."""
        return np.ones_like(self.tp)

    @property
    def zero(self) -> Column:
        """Zeros of shape [n]."""
        return np.zeros_like(self.tp)

    @property
    def edge_tokens(self) -> Column:
        """Rows a norm or residual works on: tokens, over tp with sequence parallelism."""
        return np.where(self.sp, self.tokens / self.tp, self.tokens)

    @property
    def expanded_tokens(self) -> Column:
        """Rows whose latents become keys and values: the pass's own, and cached ones that are expanded again."""
        rows = self.tokens
        for work in self.attention:
            rows = rows + work.expanded_again
        return rows

    @property
    def heads(self) -> Column:
        """Query heads on one TP rank."""
        return self.model.heads / self.tp

    @property
    def q_width(self) -> Column:
        """Query features on one TP rank."""
        return self.heads * self.model.head_dim

    @property
    def k_width(self) -> Column:
        """Key features on one TP rank: kv_heads / tp heads, never less than one (ranks beyond hold copies)."""
        return np.maximum(self.model.kv_heads / self.tp, 1.0) * self.model.head_dim

    @property
    def v_width(self) -> Column:
        """Value features on one TP rank, heads as for keys."""
        return np.maximum(self.model.kv_heads / self.tp, 1.0) * self.model.value_dim

    @property
    def recurrence(self) -> Recurrence:
        """The recurrent mixer, of a model or sort that has one."""
        assert self.model.recurrence is not None
        return self.model.recurrence

    @property
    def recurrent_input_width(self) -> Column:
        """Features the mixer's input projection has on one TP rank; beyond its groups ranks hold copies of keys."""
        mixer = self.recurrence
        keys = 2 * mixer.key_features if mixer.kind != "mamba1" else 0
        width: Column = (mixer.input_features - keys) / self.tp + keys / np.minimum(self.tp, mixer.groups)
        return width

    @property
    def projected_width(self) -> Column:
        """Features of queries, keys and values (and gate) one TP rank projects the hidden state to."""
        kept = self.model.key_value_projections
        width = self.q_width + self.k_width + self.v_width if kept == 2 else self.q_width + kept * self.k_width
        return width + self.out_width if self.model.attention_gate else width

    @property
    def out_width(self) -> Column:
        """Features attention hands to the output projection on one TP rank."""
        return self.heads * self.model.value_dim


def kv_bytes_per_token(model: ModelArchitecture, tp: Column, kv_cache_dtype: AnyColumn) -> Column:
    """KV bytes one TP rank keeps for one token and layer, shape [n].

    grouped heads   max(kv_heads / tp, 1) (head_dim + value_dim) bytes: beyond kv_heads ranks keep copies
    indexer         its one key beside, on every rank
    latent          (kv_lora_rank + qk_rope_head_dim) bytes on every rank: all heads share it
    """
    element = lookup(kv_cache_dtype, DTYPE_BYTES)
    if model.key_value_projections == 0:
        return 0.0 * element
    index = element * model.index_head_dim if model.index_heads else 0.0
    if model.is_mla:
        return element * (model.kv_lora_rank + model.qk_rope_head_dim) + index
    return index + np.maximum(model.kv_heads / tp, 1.0) * (model.head_dim + model.value_dim) * element


def causal_pairs(tokens: Column | float, window: int | None, *, chunked: bool = False) -> Column:
    """(query, key) pairs of one causal sequence of s tokens.

    s (s + 1) / 2; with a moving window of w < s keys s w - w (w - 1) / 2; in fixed chunks of w s (w + 1) / 2.
    """
    s = np.asarray(tokens, dtype=np.float64)
    w = s if window is None else np.minimum(s, float(window))
    pairs: Column = s * (w + 1) / 2 if chunked else s * w - w * (w - 1) / 2
    return pairs
