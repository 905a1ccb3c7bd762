"""What runs again in the backward pass: which forward operators a recompute mode repeats, and what share of each."""

from collections.abc import Iterable, Iterator

import numpy as np

from projector.graph.backward import in_pass
from projector.graph.columns import Column, Switch, lookup
from projector.graph.operator import Operator, changed, in_layers
from projector.graph.scope import Scope
from projector.specs.plan_batch import Column as AnyColumn


def recompute_mode(names: AnyColumn) -> Column:
    """0 none, 1 selective, 2 full, as a column."""
    return lookup(names, {"none": 0.0, "selective": 1.0, "full": 2.0})


def recompute(operators: Iterable[Operator], scope: Scope, mode: Column, by_module: Switch) -> Iterator[Operator]:
    """Forward operators that run again: all of a layer with mode 2 (full), with 1 (selective) what the stack repeats,
    or the modules of plans that name some (by_module).

    A stack that stops early (`Software.recompute_stops_early`) leaves out those that end the layer, whose results only
    the next layer reads.
    """
    selective, full = mode == 1, mode == 2
    for operator in operators:
        if not in_layers(operator.place):
            continue
        if scope.software.recompute_stops_early and operator.ends_layer:
            continue
        share = _selective_share(operator, scope, by_module)
        again = np.where(selective, share, full * 1.0)
        if again.any():
            yield changed(in_pass(operator, "recompute"), count=operator.count * again)


def keeps_every_other_product(scope: Scope) -> bool:
    """Whether "selective" keeps the results of every other matrix product (torchtitan, of dense models)."""
    return scope.software.selective_products and not scope.model.is_moe and not scope.model.sorts


def _selective_share(operator: Operator, scope: Scope, by_module: Switch) -> Column:
    """Share of an operator that "selective" repeats: all of those marked, or what a policy over products leaves out."""
    marked: Column = operator.rerun * scope.one
    if not keeps_every_other_product(scope):
        return marked
    return np.where(by_module, marked, _outside_products(operator, scope))


def _outside_products(operator: Operator, scope: Scope) -> Column | float:
    """Share of an operator that a policy over products repeats.

    Every other product, in the order q, k, v, output, then gate, up, down or up, down: k, output and up of gated MLPs;
    with them all that is no product and no collective. The result of attention is kept.
    """
    if operator.collective is not None or operator.kind == "attention":
        return 0.0
    if operator.kind != "gemm":
        return 1.0
    if operator.name == "qkv":
        return scope.k_width / (scope.q_width + scope.k_width + scope.v_width)
    shares = {"out_proj": 1.0, "mlp_up": 0.5 if scope.model.gated_mlp else 0.0, "mlp_down": 0.0}
    if not scope.model.gated_mlp:
        shares["mlp_down"] = 1.0
    return shares.get(operator.name, 0.5)
