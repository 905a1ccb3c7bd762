"""Low-rank adapters: the forward operators of a model whose own weights are frozen, with trained products beside them.

What freezing changes: a frozen product has no weight gradient, so it runs once in the backward pass instead of twice
and keeps its input only where an adapter reads it, or attention does; the embedding has no backward pass at all; an
input gathered for tensor parallelism is gathered again only for an adapter. Norms and element-wise operators cost what
they cost. Weights stored narrower than they are multiplied in are widened before each product of each pass.

Left out: the backward pass of layers below the first adapter, which autograd skips; dropout in front of an adapter;
collectives of rank-wide activations (an adapter's partial sums join those of the product it stands beside).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from projector.errors import InvalidDescription
from projector.graph.columns import DTYPE_BYTES, Column
from projector.graph.operator import Operator, Product, sort_number
from projector.graph.scope import Scope
from projector.specs.architecture import ModelArchitecture
from projector.specs.fine_tuning import ATTENTION_TARGETS, Adapter, AdapterTarget

# Storage of what no recipe quantises: embedding, head, norms, routers.
WIDE_BYTES = 2.0
Part = tuple[AdapterTarget, Column]


def check_targets(model: ModelArchitecture, adapter: Adapter) -> None:
    """InvalidDescription where the model lacks a projection that shall have adapters, or takes them only together."""
    targets = set(adapter.targets)
    lacks = [
        *(["experts"] if "experts" in targets and not model.is_moe else []),
        *(["gate"] if "gate" in targets and not model.gated_mlp else []),
    ]
    if lacks:
        raise InvalidDescription(f"{model.name} has no {' and no '.join(lacks)} to put adapters beside")
    inputs = targets & {"query", "key", "value"}
    if model.is_mla and inputs and len(inputs) < 3:
        raise InvalidDescription(
            f"{model.name} has latent attention: adapters stand beside query, key and value together or beside none",
            hint=f"targets {', '.join(ATTENTION_TARGETS[:3])}",
        )


def with_adapters(forward: Iterable[Operator], scope: Scope, adapter: Adapter) -> Iterator[Operator]:
    """The forward operators with frozen weights, and the trained products behind the frozen ones they add to."""
    operators = tuple(forward)
    whole = scope
    for place, operator in enumerate(operators):
        number = sort_number(operator.place)
        scope = whole if number is None else whole.sorts[number]
        if operator.collective is not None:
            yield _collective(operator, operators[place:], scope, adapter)
        elif operator.parameters is None:
            yield operator
        elif operator.product is None:
            yield _frozen_end(operator)
        else:
            parts = _adapted(operator.name, operator.product, scope, adapter)
            frozen = _frozen_product(operator, scope, adapter, adapted=bool(parts))
            yield from _widened(frozen, scope)
            yield frozen
            yield from _adapters(frozen, operator.product, parts, scope, adapter)


def _collective(operator: Operator, behind: Sequence[Operator], scope: Scope, adapter: Adapter) -> Operator:
    if operator.place == "embedding":
        return replace(operator, back=())
    reader = next((one for one in behind if one.product is not None or one.place == "head"), None)
    adapted = (
        reader is not None and reader.product is not None and _adapted(reader.name, reader.product, scope, adapter)
    )
    return replace(operator, regathered=bool(adapted))


def _frozen_end(operator: Operator) -> Operator:
    """Embedding, head, norms and routers. The last three pass a gradient on, so only weight gradients fall away."""
    frozen = replace(operator, frozen_bytes=WIDE_BYTES)
    if operator.kind == "embedding":
        return replace(frozen, back=())
    if operator.kind != "gemm":
        return frozen
    frozen = replace(frozen, back=(frozen,))
    # what a router keeps are its scores, which the choice of experts needs
    return frozen if operator.name == "router" else replace(frozen, saved_bytes=None, kept_bytes=None)


def _frozen_product(operator: Operator, scope: Scope, adapter: Adapter, *, adapted: bool) -> Operator:
    """The input of an adapter is kept at the width of activations, whatever the frozen product reads it in.

    Fused attention keeps its output, which is the input of the output projection, for its own backward pass.
    """
    own = operator.name == "out_proj" and scope.software.attention == "fused"
    widened = scope.act_bytes / scope.linear_bytes if adapted or own else scope.zero
    return replace(
        operator,
        frozen_bytes=DTYPE_BYTES[adapter.frozen_dtype],
        back=(operator,),
        saved_bytes=None if operator.saved_bytes is None else operator.saved_bytes * widened,
        kept_bytes=None if operator.kept_bytes is None else operator.kept_bytes * widened,
    )


def _widened(operator: Operator, scope: Scope) -> Iterator[Operator]:
    """Frozen weights brought to the width they are multiplied in: one read as stored, one write; in every pass."""
    assert operator.frozen_bytes is not None
    assert operator.product is not None
    narrow = operator.frozen_bytes < scope.linear_bytes
    if not narrow.any():
        return
    product = operator.product
    weights = product.active * product.inner * product.outer
    widen = Operator(
        name=f"{operator.name}_widen",
        kind="quantise",
        place=operator.place,
        run="forward",
        count=narrow * operator.count,
        flop=scope.zero,
        moved_bytes=weights * (operator.frozen_bytes + scope.linear_bytes),
        ends_layer=operator.ends_layer,
        rerun=operator.rerun,
    )
    yield replace(widen, back=(widen,))


def _adapted(name: str, product: Product, scope: Scope, adapter: Adapter) -> tuple[Part, ...]:
    """The parts of a product that have adapters, each with the features it makes."""
    return tuple(part for part in _parts(name, product, scope) if part[0] in adapter.targets)


def _parts(name: str, product: Product, scope: Scope) -> tuple[Part, ...]:
    """The projections one product of the graph holds, by the name the graph gives it; () of no known projection."""
    model = scope.model
    if name == "qkv":
        queries = scope.q_width + (scope.out_width if model.attention_gate else 0)
        keys: tuple[Part, ...] = (("key", scope.k_width), ("value", scope.v_width))
        return (("query", queries), *keys[: model.key_value_projections])
    if name == "latent_down":
        latents: tuple[Part, ...] = (("key", scope.one * (model.kv_lora_rank + model.qk_rope_head_dim)),)
        return (("query", scope.one * model.q_lora_rank), *latents) if model.q_lora_rank else latents
    if name in ("query_up", "key_value_up"):
        return (("query" if name == "query_up" else "value", product.outer),)
    if name == "out_proj":
        return (("output", product.outer),)
    if name.startswith("expert_latent"):
        return ()
    if name in ("expert_up", "expert_down"):
        halves: tuple[Part, ...] = (("experts", product.outer / 2), ("experts", product.outer / 2))
        return halves if name == "expert_up" and model.gated_mlp else (("experts", product.outer),)
    if name in ("mlp_up", "shared_expert_up"):
        if not model.gated_mlp:
            return (("up", product.outer),)
        return (("gate", product.outer / 2), ("up", product.outer / 2))
    return (("down", product.outer),) if name in ("mlp_down", "shared_expert_down") else ()


def _adapters(
    frozen: Operator, product: Product, parts: tuple[Part, ...], scope: Scope, adapter: Adapter
) -> Iterator[Operator]:
    """For each adapted part x A, (x A) B and their sum with the frozen result; with `joint` one A for all."""
    groups = (parts,) if adapter.joint and parts else tuple((part,) for part in parts)
    for group in groups:
        name = f"{frozen.name}_{'_'.join(dict.fromkeys(target for target, _ in group))}"
        yield _thin(frozen, f"{name}_a", replace(product, outer=scope.one * adapter.rank), scope)
        outer = sum((width for _, width in group), start=scope.zero)
        yield _thin(frozen, f"{name}_b", replace(product, inner=scope.one * adapter.rank, outer=outer), scope)
        added = _sum(frozen, f"{name}_sum", product.rows * outer, scope)
        yield replace(added, back=(_sum(frozen, f"{name}_sum", product.rows * product.inner, scope),))


def _thin(frozen: Operator, name: str, product: Product, scope: Scope) -> Operator:
    """One trained product in 16 bit. The narrow result between the two is kept for the gradient of the second."""
    rows, inner, outer = product.rows, product.inner, product.outer
    kept = rows * inner * scope.act_bytes if name.endswith("_b") else scope.zero
    return Operator(
        name=name,
        kind="gemm",
        place=frozen.place,
        run="forward",
        count=frozen.count,
        flop=2 * rows * inner * outer,
        moved_bytes=(rows * (inner + outer) + product.active * inner * outer) * scope.act_bytes,
        math="wide",
        parameters=product.matrices * inner * outer,
        expert=frozen.expert,
        saved_bytes=kept,
        kept_bytes=np.where(frozen.rerun, 0.0, kept),
        ends_layer=frozen.ends_layer,
        rerun=frozen.rerun,
    )


def _sum(frozen: Operator, name: str, elements: Column, scope: Scope) -> Operator:
    """Scaled and added to the frozen result, and backward to the gradient of its input: two reads and one write."""
    return Operator(
        name=name,
        kind="elementwise",
        place=frozen.place,
        run="forward",
        count=frozen.count,
        flop=scope.zero,
        moved_bytes=3 * elements * scope.act_bytes * scope.software.pointwise_passes,
        ends_layer=frozen.ends_layer,
        rerun=frozen.rerun,
    )


def widest_product_bytes(forward: Iterable[Operator], scope: Scope) -> Column:
    """Bytes of the largest frozen weight array while it stands widened; 0 where none is stored narrower."""
    widest = scope.zero
    for operator in forward:
        if operator.product is not None and operator.frozen_bytes is not None and operator.parameters is not None:
            narrow = operator.frozen_bytes < scope.linear_bytes
            widest = np.maximum(widest, narrow * operator.parameters * scope.linear_bytes)
    return widest
