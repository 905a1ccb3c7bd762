"""Drafting: what a speculating engine runs beside each step to guess the tokens the next step verifies."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from math import gcd

import numpy as np

from projector.graph.columns import Column, Switch
from projector.graph.edges import head
from projector.graph.engine_kernels import ChipKernels, engine_kernels
from projector.graph.gemm import gemm, hidden_state_collective
from projector.graph.layer import forward, layer_of_sort
from projector.graph.operator import DRAFT, Operator, changed, in_layers
from projector.graph.prediction import entry
from projector.graph.scope import Scope
from projector.graph.step_work import StepWork
from projector.specs.architecture import ModelArchitecture
from projector.specs.plan import Speculation
from projector.specs.plan_batch import PlanBatch

ScopeOf = Callable[[ModelArchitecture, StepWork], Scope]

# EAGLE-3's heads score the commonest tokens alone (arXiv:2503.01840, its published heads of Llama 3: 32,000).
EAGLE_VOCABULARY = 32_000
# A small model drafts for a large one that has so many times its layers and its width. Of Llama 3 70B that is a model
# of 1.3 billion weights, near the 1.2 of Llama 3.2 1B, its usual drafter.
DRAFT_MODEL_RATIO = 4
# Engines keep drafters that were trained apart in 16 bit.
DRAFT_BYTES = 2.0


@dataclass(frozen=True)
class Drafter:
    """What drafts for some plans of a batch.

    plans       whose, shape [n]
    model       the drafter, a prediction layer or a draft layer as a model of that layer alone
    layers      layers with weights and keys and values of their own, shape [n]
    """

    kind: Speculation
    plans: Switch
    model: ModelArchitecture
    layers: Column


def drafters(batch: PlanBatch, model: ModelArchitecture) -> tuple[Drafter, ...]:
    """The drafters of a batch that have weights; n-grams have none, and mtp without prediction layers is nobody's."""
    if not batch.speculative_tokens.any():
        return ()
    found = []
    one = np.ones(len(batch))
    kinds: tuple[tuple[Speculation, Callable[[ModelArchitecture], ModelArchitecture]], ...] = (
        ("mtp", _prediction_layer),
        ("eagle", _eagle_layer),
        ("draft_model", draft_model_of),
    )
    for kind, make in kinds:
        plans = np.asarray(batch.speculation == kind)
        if not plans.any() or (kind == "mtp" and not model.mtp_layers):
            continue
        drafter = make(model)
        layers = np.minimum(batch.speculative_tokens, model.mtp_layers) if kind == "mtp" else drafter.layers * one
        found.append(Drafter(kind, plans, drafter, layers))
    return tuple(found)


def drafts(
    batch: PlanBatch, model: ModelArchitecture, work: StepWork, scope_of: ScopeOf, kernels: ChipKernels
) -> Iterator[Operator]:
    """Operators of the k passes a drafter makes beside one step, at the place `DRAFT`; columns of shape [n].

    The first pass takes all rows of the step, k + 1 of each request and its share of prompts, as the drafter keeps keys
    and values of its own; each further one takes one row a request. As k passes of the mean content: 2 rows a request,
    a k-th of the prompts. Every pass ends in a choice among the vocabulary.
    Left out: trees of drafts, copies of the embedding on the last stage, the host's work between two passes.
    """
    for drafter in drafters(batch, model):
        passes = np.maximum(batch.speculative_tokens, 1.0)
        scope = scope_of(drafter.model, replace(work, prompts=work.prompts / passes, rows_each=2.0))
        scope = replace(scope, head_tokens=work.decoding + 0.0, pp=scope.one)
        for operator in engine_kernels(_operators(drafter, scope), batch, scope, kernels):
            repeated = float(drafter.model.layers) if in_layers(operator.place) else 1.0
            on = np.where(drafter.plans, passes * repeated, 0.0)
            held = np.where(drafter.plans, drafter.layers if in_layers(operator.place) else 1.0, 0.0)
            owned = None if operator.parameters is None else held * operator.parameters
            yield changed(operator, place=DRAFT, part=None, count=on * operator.count, parameters=owned)


def _operators(drafter: Drafter, scope: Scope) -> Iterator[Operator]:
    """One pass through a drafter whose layers are passed once."""
    if drafter.kind == "mtp":
        yield from entry(scope)
        yield from layer_of_sort(scope)
        for operator in head(scope, training=False):
            yield changed(operator, parameters=None)  # the model's own, on the same device
        return
    scope = _in_16_bit(scope)
    if drafter.kind == "eagle":
        yield from _wide((*_eagle_entry(scope), *layer_of_sort(scope), *head(scope, training=False)))
    else:
        yield from _wide(forward(scope, training=False))


def _in_16_bit(scope: Scope) -> Scope:
    wide, never = DRAFT_BYTES * scope.one, np.zeros(len(scope.one), dtype=np.bool_)

    def of(one: Scope) -> Scope:
        return replace(one, linear_bytes=wide, weight_bytes=wide, quantised=never)

    return replace(of(scope), sorts=tuple(of(sort) for sort in scope.sorts))


def _wide(operators: Iterable[Operator]) -> Iterator[Operator]:
    for operator in operators:
        yield changed(operator, math="wide") if operator.math == "linear" else operator


def _eagle_entry(scope: Scope) -> Iterator[Operator]:
    """Hidden states of three layers of the model, joined and projected to one (EAGLE-3, section 3.2), and the width
    that the embedding of the token adds to the layer's input."""
    hidden = scope.one * scope.model.hidden_size
    yield gemm(scope, "draft_in", "layer", inner=4 * hidden, outer=hidden / scope.tp, input_tokens_kept=scope.zero)
    yield hidden_state_collective(scope, "draft_gather", "layer", "all_gather", np.where(scope.tp > 1, 1.0, 0.0))


def _prediction_layer(model: ModelArchitecture) -> ModelArchitecture:
    return model.prediction_layer()


def _eagle_layer(model: ModelArchitecture) -> ModelArchitecture:
    """One layer with the attention of the model and a dense MLP, and a head of its own."""
    layer = model.prediction_layer()
    return layer.model_copy(
        update={
            "sorts": (layer.sorts[0].model_copy(update={"mlp": "dense"}),),
            "experts": 0,
            "shared_experts": 0,
            "vocab_size": min(model.vocab_size, EAGLE_VOCABULARY),
            "tied_embeddings": False,
        }
    )


def draft_model_of(model: ModelArchitecture) -> ModelArchitecture:
    """The small dense model that is assumed to draft for this one, since no plan states which."""
    hidden = max(model.hidden_size // DRAFT_MODEL_RATIO, 1)
    heads = max(model.heads // DRAFT_MODEL_RATIO, 1)
    return ModelArchitecture(
        name=f"drafter of {model.name}",
        layers=max(model.layers // DRAFT_MODEL_RATIO, 1),
        hidden_size=hidden,
        heads=heads,
        kv_heads=gcd(model.kv_heads, heads),
        head_dim=max(hidden // heads, 1),
        intermediate_size=4 * hidden,
        vocab_size=model.vocab_size,
        tied_embeddings=True,
        source="assumed",
    )
