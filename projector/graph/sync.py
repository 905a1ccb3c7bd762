"""What ranks exchange besides the layers' own collectives (FSDP, data, pipeline), and the optimizer."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from projector.graph.columns import Column, Switch, switched
from projector.graph.gemm import communication
from projector.graph.groups import Degrees
from projector.graph.offload import host_copy
from projector.graph.operator import (
    Collective,
    CollectiveKind,
    GroupName,
    Operator,
    Pass,
    Place,
    in_layers,
    sort_number,
)
from projector.graph.optimizer import (
    MASTER_BYTES,
    NEWTON_SCHULZ_BYTES,
    UPDATE_BYTES,
    Update,
    is_matrix,
    newton_schulz_flop,
)
from projector.graph.scope import Scope

# Bytes a weight and a gradient travel with under FSDP and MaxText, which gather and reduce in 16 bit.
WEIGHT_WIRE_BYTES = 2.0
SHARDED_GRADIENT_WIRE_BYTES = 2.0

# Weights a data-parallel message carries: Megatron-Core's bucket, the larger of 40 million and a million a rank, so
# that more ranks do not mean smaller pieces.
BUCKET_PARAMETERS, BUCKET_PARAMETERS_A_RANK = 4.0e7, 1.0e6


def owned_parameters(operators: Iterable[Operator], zero: Column) -> dict[tuple[Place, bool], Column]:
    """Trained weights a device would hold a place if no data rank shared them out, by (place, whether experts)."""
    owned: dict[tuple[Place, bool], Column] = defaultdict(lambda: zero)
    for operator in operators:
        if operator.parameters is not None and operator.frozen_bytes is None:
            key = (operator.place, operator.expert)
            owned[key] = owned[key] + operator.parameters
    return dict(owned)


def _frozen_weights(operators: Iterable[Operator], zero: Column) -> dict[tuple[Place, bool], Column]:
    """Bytes of frozen weights as they travel when they are gathered, keyed as in `owned_parameters`."""
    frozen: dict[tuple[Place, bool], Column] = defaultdict(lambda: zero)
    for operator in operators:
        if operator.parameters is not None and operator.frozen_bytes is not None:
            key = (operator.place, operator.expert)
            frozen[key] = frozen[key] + operator.parameters * min(operator.frozen_bytes, WEIGHT_WIRE_BYTES)
    return dict(frozen)


@dataclass(frozen=True)
class Holding:
    """The weights of one place on one device and the groups that share them out (columns).

    weights     before any data rank shares them out
    shards      devices a copy is sharded over (1: whole), copies: how many such copies data parallelism keeps
    state       devices the optimizer state is shared out over
    share       these weights over all that a stage holds
    """

    place: Place
    expert: bool
    weights: Column
    shards: Column
    copies: Column
    state: Column
    share: Column

    @classmethod
    def of(cls, place: Place, expert: bool, weights: Column, degrees: Degrees, whole: Column) -> "Holding":
        """Dense weights over the data and context ranks, expert weights over what ep * etp leaves of them."""
        if expert:
            shards, state, ranks = degrees.expert_shard, degrees.expert_state, degrees.expert_data
        else:
            shards, state, ranks = degrees.shard, degrees.state, degrees.dp * degrees.cp
        copies = ranks * degrees.copies / shards
        return cls(place, expert, weights, shards, copies, state, weights / np.maximum(whole, 1.0))

    def named(self, name: str) -> str:
        """Name of an operator on these weights."""
        return f"{self.place}_{'expert' if self.expert else 'dense'}_{name}"


def data_parallel(forward: Sequence[Operator], scope: Scope, degrees: Degrees, update: Update) -> Iterator[Operator]:
    """Weight gathers, gradient reductions and the optimizer, one operator a place.

    fsdp > 1: gather before forward and before backward and reduce-scatter after it, in every micro-batch (once a step
    where stages stay gathered); shards of different replicas are reduced once a step. Otherwise once a step:
    all-reduce, or with zero_stage >= 1 reduce-scatter of gradients and all-gather of updated weights, in buckets that
    span layers; with an optimizer_shard smaller than the data group the scattered parts are then summed over its
    copies.
    Frozen weights are only gathered, as they are stored, where fsdp > 1.
    Left out: ZeRO-2's reduction in every micro-batch, shards kept gathered for the backward pass.
    """
    owned = owned_parameters(forward, scope.zero)
    whole = sum((weights * _passages(scope, place) for (place, _), weights in owned.items()), start=scope.zero)
    for (place, expert), weights in owned.items():
        holding = Holding.of(place, expert, weights, degrees, whole)
        yield from _sharded(scope, holding)
        yield from _replicated(scope, holding, degrees)
        here = [o for o in forward if o.parameters is not None and (o.place, o.expert) == (place, expert)]
        yield from _update(scope, holding, [o for o in here if o.frozen_bytes is None], update)
    for (place, expert), stored_bytes in _frozen_weights(forward, scope.zero).items():
        holding = Holding.of(place, expert, stored_bytes, degrees, scope.zero)
        yield from _gathers(scope, holding, "frozen_", stored_bytes)


def _passages(scope: Scope, place: Place) -> Column:
    """How often a stage passes a place, roughly: layers over stages, the ends once."""
    if not in_layers(place):
        return scope.one
    if place == "mtp_layer":
        return scope.one
    number = sort_number(place)
    return (scope.model.layers if number is None else scope.model.sorts[number].layers) / scope.pp


def _weight_wire_bytes(scope: Scope) -> Column:
    if scope.software.narrow_weight_gather:
        return np.minimum(WEIGHT_WIRE_BYTES, scope.linear_bytes)
    return WEIGHT_WIRE_BYTES * scope.one


def _sharded(scope: Scope, holding: Holding) -> Iterator[Operator]:
    """FSDP traffic: of one micro-batch, or of a step where a pipeline's stages stay gathered through it."""
    yield from _gathers(scope, holding, "", holding.weights * _weight_wire_bytes(scope))
    gradients = holding.weights * SHARDED_GRADIENT_WIRE_BYTES
    yield from _shard_exchange(scope, holding, "gradient_scatter", "backward", "reduce_scatter", gradients)


def _gathers(scope: Scope, holding: Holding, prefix: str, gathered_bytes: Column) -> Iterator[Operator]:
    """The shards of one place gathered for the forward pass and again for the backward one."""
    yield from _shard_exchange(scope, holding, f"{prefix}gather", "forward", "all_gather", gathered_bytes)
    yield from _shard_exchange(scope, holding, f"{prefix}gather_again", "backward", "all_gather", gathered_bytes)


def _shard_exchange(
    scope: Scope, holding: Holding, name: str, run: Pass, kind: CollectiveKind, payload_bytes: Column
) -> Iterator[Operator]:
    """In every micro-batch; where stages stay gathered once a step, and nothing is gathered again."""
    group: GroupName = "expert_shard" if holding.expert else "shard"
    sharded, whole = holding.shards > 1, stages_stay_gathered(scope)
    collective = Collective(kind, group, "fsdp", payload_bytes, flat=scope.software.flat_gathers)
    yield communication(scope, holding.named(name), holding.place, collective, switched(sharded & ~whole), run=run)
    if (sharded & whole).any() and not name.endswith("gather_again"):
        once = switched(sharded & whole)
        yield communication(scope, holding.named(f"{name}_once"), holding.place, collective, once, run="sync")


def stages_stay_gathered(scope: Scope) -> Switch:
    """Plans whose stages keep their weights gathered, and their gradients whole, from the first micro-batch to the
    last: `Software.gathers_stages`, in a pipeline."""
    stay: Switch = (scope.pp > 1) & scope.software.gathers_stages
    return stay


def _replicated(scope: Scope, holding: Holding, degrees: Degrees) -> Iterator[Operator]:
    """Traffic between copies of the weights, once a step."""
    group: GroupName = "expert_replica" if holding.expert else "replica"
    state: GroupName = "expert_state" if holding.expert else "state"
    beyond: GroupName = "expert_state_replica" if holding.expert else "state_replica"
    several, split = holding.copies > 1, (degrees.zero_stage >= 1) & (holding.shards == 1)
    wire = np.where(degrees.fsdp > 1, SHARDED_GRADIENT_WIRE_BYTES, scope.software.gradient_wire_bytes)
    gradients, updated = holding.weights / holding.shards * wire, holding.weights * _weight_wire_bytes(scope)
    partial = split & (holding.state < holding.copies)
    bucket = np.maximum(BUCKET_PARAMETERS, BUCKET_PARAMETERS_A_RANK * holding.copies)
    buckets = np.maximum(holding.weights / holding.shards / bucket, holding.share)
    one_by_one = scope.software.zero_update == "broadcast"
    parts = holding.state * holding.share if one_by_one else buckets
    exchanges: tuple[tuple[str, CollectiveKind, GroupName, Column, Switch, Column], ...] = (
        ("gradient_reduce", "all_reduce", group, gradients, several & ~split, buckets),
        ("gradient_split", "reduce_scatter", state, gradients, several & split, buckets),
        ("gradient_join", "all_reduce", beyond, gradients / holding.state, several & partial, buckets),
        ("weight_gather", "all_gather", state, updated, several & split, parts),
    )
    for name, kind, over, payload, on, messages in exchanges:
        message_s = scope.software.broadcast_s if one_by_one and name == "weight_gather" else 0.0
        collective = Collective(kind, over, "dp", payload, messages=messages, message_s=message_s)
        yield communication(scope, holding.named(name), holding.place, collective, switched(on), run="sync")


def _update(scope: Scope, holding: Holding, trained: Sequence[Operator], update: Update) -> Iterator[Operator]:
    """The optimizer on this device's share of the state.

    Muon needs whole matrices: ranks that share weights trade their pieces of the moments, 16-bit, so that each has some
    matrices whole, and trade the updates back. Offloaded state comes over the host link and goes back beside the
    update.
    """
    moments = sum(
        ((o.parameters if o.parameters is not None else scope.zero) * update.moments_of(o) for o in trained),
        start=scope.zero,
    )
    moved = holding.weights * (UPDATE_BYTES + update.extra_bytes) + 2 * moments
    if update.spectral.any():
        matrices = [o for o in trained if is_matrix(o)]
        weights = sum((o.parameters for o in matrices if o.parameters is not None), start=scope.zero)
        yield Operator(
            name=holding.named("orthogonalise"),
            kind="optimizer",
            place=holding.place,
            run="update",
            count=switched(update.spectral & (weights > 0)),
            flop=newton_schulz_flop(matrices, scope.zero) / holding.state,
            moved_bytes=NEWTON_SCHULZ_BYTES * weights / holding.state,
            math="wide",
        )
        group: GroupName = "expert_shard" if holding.expert else "shard"
        trade = Collective("all_to_all", group, "fsdp", weights / holding.shards * 2.0)
        on = switched(update.spectral & (holding.shards > 1))
        yield communication(scope, holding.named("moment_trade"), holding.place, trade, 2 * on, run="sync")
    yield Operator(
        name=holding.named("update"),
        kind="optimizer",
        place=holding.place,
        run="update",
        count=scope.one,
        flop=scope.zero,
        moved_bytes=moved / holding.state,
    )
    if update.offloads.any():
        state = (holding.weights * MASTER_BYTES + moments) / holding.state
        yield host_copy(scope, holding.named("state_copy"), holding.place, state, switched(update.offloads), "update")


def pipeline_sends(scope: Scope, virtual_stages: Column, runs: tuple[Pass, ...]) -> Iterator[Operator]:
    """Hidden state to the next stage (and its gradient back), once a virtual stage and micro-batch in each of `runs`.

    Each TP rank sends its tp-th over its own link and the receivers gather it (Narayanan et al. 2021, section 4.1).
    Left out: that gather, which stays inside the fast domain.
    """
    payload = scope.tokens / scope.tp * scope.model.hidden_size * scope.act_bytes
    count = np.where(scope.pp > 1, virtual_stages, 0.0)
    for run in runs:
        yield communication(
            scope, f"stage_send_{run}", "stage", Collective("send", "pp", "pp", payload), count, run=run
        )
