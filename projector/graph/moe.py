"""The mixture-of-experts part of a layer: router, dispatch, experts, combine."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from projector.graph.columns import Column, Switch, switched
from projector.graph.gemm import communication, gemm, hidden_state_collective, quantise
from projector.graph.mlp import mlp_end, shared_experts
from projector.graph.operator import Collective, CollectiveKind, Operator, Product
from projector.graph.pointwise import activation
from projector.graph.scope import Scope

GEMM_TILE_ROWS = 128.0
# Streams on which Transformer Engine runs the products of several experts side by side.
EXPERT_STREAMS = 4.0


@dataclass(frozen=True)
class Routing:
    """How tokens meet experts on one device, all columns.

    rows             (token, expert) pairs the busiest device computes: tokens k etp / tp times the load, whatever ep is
    copies           pairs it sends away: tokens k / tp, times the load
    local_experts    experts / ep, copies of busy ones included; active_experts of them see at least one token
    replicated       without sequence parallelism and with ep * etp <= tp every rank already holds all tokens: nothing
                     is dispatched, partial results are summed over tp
    """

    rows: Column
    copies: Column
    local_experts: Column
    active_experts: Column
    replicated: Switch


def routing(scope: Scope) -> Routing:
    """Routing without dropped tokens, of the busiest rank of its ep group.

    The ep group sees tokens * ep * etp / tp tokens; an expert stays idle with probability (1 - k / E) to that power.
    A rank that holds all experts sees all tokens; otherwise the busiest gets Software.expert_imbalance of the mean
    (`_busiest` of a serving engine's). All rows are multiplied with Software.expert_load. Half a tile of padding an
    expert is `_grouped_gemm`'s.
    """
    model = scope.model
    share, load = model.experts_per_token / model.experts, scope.software.expert_load
    seen = scope.tokens * scope.ep * scope.etp / scope.tp
    held = model.experts if scope.routed is None else model.experts + scope.routed.spare
    local = held / scope.ep
    busiest = np.where(scope.ep > 1, _busiest(scope), 1.0)
    # 1 - (1 - share)^seen without losing digits for small shares; share = 1 means every expert is used
    idle = np.exp(seen * np.log1p(-min(share, 1 - 1e-12)))
    return Routing(
        rows=load * busiest * scope.tokens * model.experts_per_token * scope.etp / scope.tp,
        copies=load * busiest * scope.tokens * model.experts_per_token / scope.tp,
        local_experts=local,
        active_experts=np.maximum(local * (1 - idle), np.minimum(local, 1.0)),
        replicated=~scope.sp & (scope.ep * scope.etp <= scope.tp),
    )


def _busiest(scope: Scope) -> Column | float:
    """Tokens of the busiest expert rank over the mean; with R copies of busy experts over ep ranks

        1 + (imbalance - 1) / (1 + R / ep)

    What lies above the mean is the work of a rank's busiest expert, and balancers (DeepSeek's EPLB, section 3.4 of
    arXiv:2412.19437) give the busiest expert of each rank a copy on another one: with one spare place a rank it has two
    homes and half of the excess, with two a third. Assumed, not measured. Left out: the time to move copies about.
    """
    routed = scope.routed
    if routed is None:
        return scope.software.expert_imbalance
    return 1 + (routed.imbalance - 1) / (1 + routed.spare / scope.ep)


def moe_block(scope: Scope) -> Iterator[Operator]:
    """Forward operators of router, routed and shared experts of one layer."""
    route = routing(scope)
    yield replace(_router(scope), pause_s=scope.software.expert_pause_s)
    yield from _latent(scope, "expert_latent_down", down=True)
    yield from _dispatch(scope, route)
    yield from _experts(scope, route)
    yield from _combine(scope, route)
    yield from _latent(scope, "expert_latent_up", down=False)
    yield from shared_experts(scope)
    yield from mlp_end(scope, "moe", "moe_layer")


def _router(scope: Scope) -> Operator:
    """[tokens, hidden] x [hidden, experts] in 16 bit, held whole on every rank."""
    hidden, experts, rows = scope.model.hidden_size, scope.model.experts, scope.edge_tokens
    return Operator(
        name="router",
        kind="gemm",
        place="moe_layer",
        run="forward",
        count=scope.one,
        flop=2 * rows * hidden * experts,
        moved_bytes=rows * (hidden + experts) * scope.act_bytes + hidden * experts * scope.act_bytes,
        math="wide",
        kernels=3.0,
        parameters=scope.one * hidden * experts,
        saved_bytes=rows * experts * 4.0,
        kept_bytes=rows * experts * 4.0,
    )


def _latent(scope: Scope, name: str, *, down: bool) -> Iterator[Operator]:
    """Projection of a token to the latent its experts work on, or back; every rank holds it whole and projects the
    rows it holds, so what travels to experts is a latent."""
    latent, hidden = scope.model.expert_latent_size, scope.one * scope.model.hidden_size
    if not latent:
        return
    rows = replace(scope, tokens=scope.edge_tokens)
    inner, outer = (hidden, scope.one * latent) if down else (scope.one * latent, hidden)
    yield from quantise(rows, f"{name}_cast", "moe_layer", rows.tokens * inner)
    yield gemm(
        rows, name, "moe_layer", inner=inner, outer=outer, input_tokens_kept=scope.zero if down else rows.tokens,
        recomputable_input=False,
    )  # fmt: skip


def _permute(scope: Scope, route: Routing, name: str) -> Operator:
    """Tokens sorted by expert and back: one read and one write of every copy."""
    copies = route.rows * scope.model.expert_features * scope.act_bytes
    return Operator(
        name=name,
        kind="moe",
        place="moe_layer",
        run="forward",
        count=scope.one,
        flop=scope.zero,
        moved_bytes=2 * copies * scope.software.expert_passes,
        kernels=2.0,
    )


def _dispatch(scope: Scope, route: Routing) -> Iterator[Operator]:
    yield from _notice(scope, route)
    yield _all_to_all(scope, route, "expert_dispatch")
    yield from _all_tokens(scope, route, "expert_tokens", "all_gather")
    yield _expert_tp(scope, route, "expert_gather", "all_gather")
    yield _permute(scope, route, "expert_permute")


def _combine(scope: Scope, route: Routing) -> Iterator[Operator]:
    yield _permute(scope, route, "expert_unpermute")
    yield _expert_tp(scope, route, "expert_scatter", "reduce_scatter")
    yield _all_to_all(scope, route, "expert_combine")
    yield from _all_tokens(scope, route, "expert_sums", "reduce_scatter")
    several = scope.tp > 1
    whole = several & ~scope.sp & ~route.replicated
    yield hidden_state_collective(scope, "expert_regather", "moe_layer", "all_gather", switched(whole))
    yield hidden_state_collective(
        scope, "expert_reduce", "moe_layer", "all_reduce", switched(several & route.replicated)
    )


def _sends_tokens(scope: Scope, route: Routing) -> Switch:
    """Plans whose ranks send tokens to the ranks of their experts."""
    on = (scope.ep > 1) & ~route.replicated
    return on if scope.gathers_tokens is None else on & ~scope.gathers_tokens


def _notice(scope: Scope, route: Routing) -> Iterator[Operator]:
    """Ranks learn how many tokens of each expert are to come, 4 bytes an expert, before buffers are laid out: DeepEP's
    normal kernels, which forward tokens inside a domain; its low-latency ones have a fixed place for each."""
    routed = scope.routed
    if routed is None or not routed.notified.any():
        return
    counts = Collective("all_gather", "ep", "ep", scope.ep * scope.model.experts * 4.0)
    yield communication(
        scope, "expert_notice", "moe_layer", counts, switched(_sends_tokens(scope, route) & routed.notified)
    )


def _all_to_all(scope: Scope, route: Routing, name: str) -> Operator:
    to_experts = name == "expert_dispatch"
    element = scope.routed.sent_bytes if scope.routed is not None and to_experts else scope.act_bytes
    payload = route.copies * scope.model.expert_features * element
    on = _sends_tokens(scope, route)
    model = scope.model
    copies = np.where(scope.one_copy, float(model.experts_per_token), 1.0)
    collective = Collective(
        "all_to_all", "ep", "ep", payload, copies, groups=model.expert_groups, reach=model.groups_per_token
    )
    return communication(scope, name, "moe_layer", collective, switched(on))


def _all_tokens(scope: Scope, route: Routing, name: str, kind: CollectiveKind) -> Iterator[Operator]:
    """All tokens of the ep group to each of its ranks, which picks those of its experts; and their sums back.

    Megatron-Core's allgather dispatcher: whatever k is, ep times the tokens of a rank travel.
    """
    if scope.gathers_tokens is None:
        return
    payload = scope.ep * scope.tokens / scope.tp * scope.model.expert_features * scope.act_bytes
    on = (scope.ep > 1) & ~route.replicated & scope.gathers_tokens
    yield communication(scope, name, "moe_layer", Collective(kind, "ep", "ep", payload), switched(on))


def _expert_tp(scope: Scope, route: Routing, name: str, kind: str) -> Operator:
    """Tokens of the etp ranks joined before their experts, and results scattered after; single copies when ep = 1."""
    k = np.where(scope.ep > 1, scope.model.experts_per_token, 1.0)
    if scope.gathers_tokens is not None:
        k = np.where(scope.gathers_tokens, scope.ep, k)
    payload = scope.etp * scope.tokens / scope.tp * k * scope.model.expert_features * scope.act_bytes
    count = switched((scope.etp > 1) & ~route.replicated)
    collective = Collective("all_gather" if kind == "all_gather" else "reduce_scatter", "etp", "tp", payload)
    return communication(scope, name, "moe_layer", collective, count)


def _experts(scope: Scope, route: Routing) -> Iterator[Operator]:
    scope = scope.of_experts()
    width = scope.model.moe_intermediate_size / scope.etp
    hidden = scope.one * scope.model.expert_features
    up_widths = 2 if scope.model.gated_mlp else 1
    software = scope.software
    passes = software.expert_passes / software.pointwise_passes
    if scope.model.clamped_experts:
        passes = max(passes, software.clamped_passes)
    yield from quantise(scope, "expert_up_cast", "moe_layer", route.rows * hidden)
    yield _grouped_gemm(scope, route, "expert_up", hidden, up_widths * width)
    between = activation(scope, "expert_activation", "moe_layer", route.rows * width)
    yield replace(between, moved_bytes=between.moved_bytes * passes)
    yield from quantise(scope, "expert_down_cast", "moe_layer", route.rows * width)
    yield _grouped_gemm(scope, route, "expert_down", width, hidden)


def _grouped_gemm(scope: Scope, route: Routing, name: str, inner: Column, outer: Column) -> Operator:
    """One GEMM an active local expert, on a few streams or in one kernel (`Software.expert_products`).

    FLOP counts real rows only, plus half a tile of rows an active expert that tensor cores pad to; bytes read the
    weights of active experts. Expert width, not FLOP, decides the size: narrow experts are memory-bound.
    """
    padded = route.rows + GEMM_TILE_ROWS / 2 * route.active_experts
    kept = route.rows * inner * scope.linear_bytes
    again = scope.software.attention == "fused"
    each = scope.software.expert_products == "each"
    return Operator(
        name=name,
        kind="moe",
        parts=np.maximum(route.active_experts / EXPERT_STREAMS, 1.0) if each else 1.0,
        place="moe_layer",
        run="forward",
        count=scope.one,
        flop=2 * padded * inner * outer,
        moved_bytes=route.rows * (inner * scope.linear_bytes + outer * scope.act_bytes)
        + route.active_experts * inner * outer * scope.weight_bytes,
        math="linear",
        parameters=route.local_experts * inner * outer,
        expert=True,
        saved_bytes=kept,
        kept_bytes=scope.zero if again and name == "expert_down" else kept,
        product=Product(route.rows, inner, outer, route.local_experts, route.active_experts),
    )
