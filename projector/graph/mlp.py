"""The dense MLP of a layer, and the same shape for shared experts."""

from collections.abc import Iterator
from dataclasses import replace

from projector.graph.columns import Column
from projector.graph.gemm import gemm, quantise, tensor_parallel_entry, tensor_parallel_exit
from projector.graph.operator import Operator, Place
from projector.graph.pointwise import activation, norm, residual
from projector.graph.scope import Scope


def mlp_norm(scope: Scope) -> Iterator[Operator]:
    """The norm before the MLP; a parallel block shares that of attention."""
    if not scope.model.parallel_block:
        yield norm(scope, "mlp_norm", "layer")


def mlp_end(scope: Scope, name: str, place: Place) -> Iterator[Operator]:
    """What follows the MLP: the second norm of models that have one, and the residual."""
    if scope.model.post_norms:
        yield norm(scope, f"{name}_post_norm", place)
    yield residual(scope, f"{name}_residual", place)


def dense_mlp(scope: Scope) -> Iterator[Operator]:
    """Forward operators of the dense MLP; its width is really divided by tp.

    In a parallel block attention has gathered and keeps the same input.
    """
    shared = scope.model.parallel_block
    if not shared:
        yield from tensor_parallel_entry(scope, "mlp_gather", "dense_layer")
    kept = scope.zero if shared else scope.edge_tokens
    # the second norm of models that have one reads what the block computed, a residual only passes it on
    last = not scope.model.post_norms
    for operator in mlp_gemms(scope, "mlp", "dense_layer", scope.model.intermediate_size / scope.tp, kept):
        yield replace(operator, ends_layer=last and operator.name == "mlp_down")
    for operator in tensor_parallel_exit(scope, "mlp_reduce", "dense_layer"):
        yield replace(operator, ends_layer=last)
    for operator in mlp_end(scope, "mlp", "dense_layer"):
        yield replace(operator, ends_layer=operator.name == "mlp_residual")


def mlp_gemms(scope: Scope, name: str, place: Place, width: Column, input_tokens_kept: Column) -> Iterator[Operator]:
    """up (and gate) -> activation -> down, `width` features on this device.

    Bytes kept a token (Korthikanti et al. 2022): input 2h, activation input 2 width (4 with a gate), down input
    2 width.
    """
    model, tokens = scope.model, scope.tokens
    up_widths = 2 if model.gated_mlp else 1
    yield from quantise(scope, f"{name}_up_cast", place, tokens * model.hidden_size)
    yield gemm(
        scope,
        f"{name}_up",
        place,
        inner=scope.one * model.hidden_size,
        outer=up_widths * width,
        input_tokens_kept=input_tokens_kept,
    )
    yield activation(scope, f"{name}_activation", place, tokens * width)
    yield from quantise(scope, f"{name}_down_cast", place, tokens * width)
    yield gemm(
        scope,
        f"{name}_down",
        place,
        inner=width,
        outer=scope.one * model.hidden_size,
        input_tokens_kept=tokens,
    )


def shared_experts(scope: Scope) -> Iterator[Operator]:
    """Experts every token passes: a dense MLP of moe_intermediate_size each, sharded by tp like one."""
    model = scope.model
    if not model.shared_experts:
        return
    yield from tensor_parallel_entry(scope, "shared_gather", "moe_layer")
    width = model.shared_experts * model.moe_intermediate_size / scope.tp
    for operator in mlp_gemms(scope, "shared_expert", "moe_layer", width, scope.edge_tokens):
        yield replace(operator, kind="moe") if operator.kind == "gemm" else operator
    yield from tensor_parallel_exit(scope, "shared_reduce", "moe_layer")
