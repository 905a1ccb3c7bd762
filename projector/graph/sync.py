"""What ranks exchange besides the layers' own collectives (FSDP, data, context, pipeline), and the optimizer."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from projector.graph.columns import Column, Switch, switched
from projector.graph.gemm import communication
from projector.graph.groups import Degrees
from projector.graph.operator import Collective, CollectiveKind, GroupName, Operator, Pass, Place
from projector.graph.scope import Scope

# Bytes a weight and a gradient travel with. FSDP and MaxText gather and reduce in 16 bit; Megatron's data-parallel
# buffers reduce in fp32 by default.
WEIGHT_WIRE_BYTES = 2.0
SHARDED_GRADIENT_WIRE_BYTES = 2.0
REPLICATED_GRADIENT_WIRE_BYTES = 4.0

# Mixed-precision Adam reads gradient (4), master weight and two moments (12), writes the three (12) and the 16-bit
# weight (2).
ADAM_BYTES_PER_PARAMETER = 30.0


def owned_parameters(operators: Iterable[Operator], zero: Column) -> dict[tuple[Place, bool], Column]:
    """Weights a device would hold a place if no data rank shared them out, by (place, whether they are experts)."""
    owned: dict[tuple[Place, bool], Column] = defaultdict(lambda: zero)
    for operator in operators:
        if operator.parameters is not None:
            key = (operator.place, operator.expert)
            owned[key] = owned[key] + operator.parameters
    return dict(owned)


@dataclass(frozen=True)
class Holding:
    """The weights of one place on one device and the groups that share them out (columns).

    weights     before any data rank shares them out
    shards      devices a copy is sharded over (1: whole), copies: how many such copies data parallelism keeps
    state       devices the optimizer state is shared out over
    """

    place: Place
    expert: bool
    weights: Column
    shards: Column
    copies: Column
    state: Column

    @classmethod
    def of(cls, place: Place, expert: bool, weights: Column, degrees: Degrees) -> "Holding":
        """Dense weights over the data and context ranks, expert weights over what ep * etp leaves of them."""
        if expert:
            shards, state, ranks = degrees.expert_shard, degrees.expert_state, degrees.expert_data
        else:
            shards, state, ranks = degrees.shard, degrees.state, degrees.dp * degrees.cp
        return cls(place, expert, weights, shards, ranks / shards, state)

    def named(self, name: str) -> str:
        """Name of an operator on these weights."""
        return f"{self.place}_{'expert' if self.expert else 'dense'}_{name}"


def data_parallel(forward: Iterable[Operator], scope: Scope, degrees: Degrees) -> Iterator[Operator]:
    """Weight gathers, gradient reductions and the optimizer, one operator a place.

    fsdp > 1: gather before forward and before backward and reduce-scatter after it, in every micro-batch; shards of
    different replicas are reduced once a step. Otherwise once a step: all-reduce, or with zero_stage >= 1
    reduce-scatter of gradients and all-gather of updated weights.
    Left out: ZeRO-2's reduction in every micro-batch, shards kept gathered for the backward pass, buckets over layers.
    """
    for (place, expert), weights in owned_parameters(forward, scope.zero).items():
        holding = Holding.of(place, expert, weights, degrees)
        yield from _sharded(scope, holding)
        yield from _replicated(scope, holding, degrees)
        yield _update(scope, holding)


def _sharded(scope: Scope, holding: Holding) -> Iterator[Operator]:
    """FSDP traffic of one micro-batch."""
    group: GroupName = "expert_shard" if holding.expert else "shard"
    on = switched(holding.shards > 1)
    gathered, gradients = holding.weights * WEIGHT_WIRE_BYTES, holding.weights * SHARDED_GRADIENT_WIRE_BYTES
    exchanges: tuple[tuple[str, Pass, CollectiveKind, Column], ...] = (
        ("gather", "forward", "all_gather", gathered),
        ("gather_again", "backward", "all_gather", gathered),
        ("gradient_scatter", "backward", "reduce_scatter", gradients),
    )
    for name, run, kind, payload in exchanges:
        collective = Collective(kind, group, "fsdp", payload)
        yield communication(scope, holding.named(name), holding.place, collective, on, run=run)


def _replicated(scope: Scope, holding: Holding, degrees: Degrees) -> Iterator[Operator]:
    """Traffic between copies of the weights, once a step."""
    group: GroupName = "expert_replica" if holding.expert else "replica"
    several, split = holding.copies > 1, (degrees.zero_stage >= 1) & (holding.shards == 1)
    wire = np.where(degrees.fsdp > 1, SHARDED_GRADIENT_WIRE_BYTES, REPLICATED_GRADIENT_WIRE_BYTES)
    gradients, updated = holding.weights / holding.shards * wire, holding.weights * WEIGHT_WIRE_BYTES
    exchanges: tuple[tuple[str, CollectiveKind, Column, Switch], ...] = (
        ("gradient_reduce", "all_reduce", gradients, several & ~split),
        ("gradient_split", "reduce_scatter", gradients, several & split),
        ("weight_gather", "all_gather", updated, several & split),
    )
    for name, kind, payload, on in exchanges:
        collective = Collective(kind, group, "dp", payload)
        yield communication(scope, holding.named(name), holding.place, collective, switched(on), run="sync")


def _update(scope: Scope, holding: Holding) -> Operator:
    """The optimizer on this device's share of the state."""
    return Operator(
        name=holding.named("update"),
        kind="optimizer",
        place=holding.place,
        run="update",
        count=scope.one,
        flop=scope.zero,
        moved_bytes=holding.weights / holding.state * ADAM_BYTES_PER_PARAMETER,
    )


def context_parallel(scope: Scope, cp: Column) -> Iterator[Operator]:
    """Ring attention: keys and values travel once around the cp ring; backward they travel again with their gradients.

    A ring of (cp - 1) steps over local keys moves as much as an all-gather of all of them.
    """
    payload = cp * scope.tokens * (scope.k_width + scope.v_width) * scope.act_bytes
    on = switched(cp > 1)
    exchanges: tuple[tuple[str, Pass, CollectiveKind], ...] = (
        ("kv_ring", "forward", "all_gather"),
        ("kv_ring_again", "backward", "all_gather"),
        ("kv_gradient_ring", "backward", "reduce_scatter"),
    )
    for name, run, kind in exchanges:
        yield communication(scope, name, "layer", Collective(kind, "cp", "cp", payload), on, run=run)


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
