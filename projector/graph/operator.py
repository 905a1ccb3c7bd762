"""Operator: one row of the operator graph, with every quantity a column over the batch.

Step time, memory, the list of collectives and the projected breakdown are all read off one list of operators.
"""

from dataclasses import dataclass, fields
from typing import Literal

from projector.breakdown import Axis, OperatorKind
from projector.graph.columns import Column, Switch

# Where an operator occurs: in every layer, in the layers of one sort, at the ends of the model, once a stage.
# "layer", "dense_layer", "moe_layer", "full_attention_layer" and "sliding_attention_layer" are places of models whose
# layers differ in no other way; a model that lists the sorts of its layers has `sort_place` for each.
Place = str
# What drafts tokens for a serving engine, beside the head, is a place of its own.
DRAFT: Place = "draft"
OUTSIDE_LAYERS: frozenset[Place] = frozenset({"embedding", "head", "mtp_head", DRAFT, "stage"})


def sort_place(number: int) -> Place:
    """The place of the layers of one sort, by its number in `ModelArchitecture.sorts`."""
    return f"sort_{number}"


def sort_number(place: Place) -> int | None:
    """The number of the sort a place belongs to; None for places that are no sort's."""
    return int(place.removeprefix("sort_")) if place.startswith("sort_") else None


def in_layers(place: Place) -> bool:
    """Whether a place lies inside layers: what activation recompute repeats and FSDP gathers layer by layer."""
    return place not in OUTSIDE_LAYERS


# "forward", "recompute" and "backward" run once a micro-batch, "sync" and "update" once a step; serving runs "forward".
Pass = Literal["forward", "recompute", "backward", "sync", "update"]

CollectiveKind = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send"]

# The process group a collective runs over (`projector.graph.groups` says which ranks that is).
GroupName = Literal[
    "tp",
    "cp",
    "etp",
    "ep",
    "shard",
    "replica",
    "data",
    "state",
    "state_replica",
    "expert_shard",
    "expert_replica",
    "expert_state",
    "expert_state_replica",
    "pp",
]

# Which peak a FLOP runs at: the plan's compute dtype, or the 16-bit dtype attention and the head stay in.
Math = Literal["linear", "wide", "none"]


@dataclass(frozen=True)
class Algorithms:
    """What plans of an engine ask of a collective; plans that no entry names take the fastest. Shapes [n].

    named       (algorithm, plans that name it), those that occur
    one_kernel  plans whose all-reduce is a kernel of the engine, not the library's ring: one shot or two
    """

    named: tuple[tuple[str, Switch], ...] = ()
    one_kernel: Switch | None = None


@dataclass(frozen=True)
class Collective:
    """One collective of one device.

    payload_bytes: all_reduce and reduce_scatter: the whole buffer of a rank; all_gather: the gathered result;
    all_to_all: what a rank sends in all, its own share included; send: the message.
    copies: how often each piece of an all_to_all payload is in it, where one copy a domain is enough; `reach` groups of
    ranks out of `groups` are all that these copies may go to.
    messages: parts the payload travels in, one after the other; each pays the latency
    message_s: host time each of them pays on top.
    flat: every rank pulls the whole payload over its own network link; those of one node do not share the work.
    algorithms: what the plans of a serving engine ask for; None: the library chooses (training).
    """

    kind: CollectiveKind
    group: GroupName
    axis: Axis
    payload_bytes: Column
    copies: Column | float = 1.0
    groups: int = 1
    reach: int = 1
    messages: Column | float = 1.0
    message_s: float = 0.0
    flat: bool = False
    algorithms: Algorithms | None = None


@dataclass(frozen=True)
class HeadShape:
    """What the rate of a fused attention kernel depends on: keys a query sees in the mean, features of a head."""

    keys: Column
    score_width: int
    value_width: int


@dataclass(frozen=True)
class Product:
    """A matrix product, [rows, inner] x [inner, outer] on one device; columns of shape [n].

    matrices    how many such weights share the rows out (local experts, of which `active` have any), else 1
    """

    rows: Column
    inner: Column
    outer: Column
    matrices: Column | float = 1.0
    active: Column | float = 1.0


@dataclass(frozen=True)
class Operator:
    """One operator of one layer (or model end) on one device. Columns have shape [n].

    flop, moved_bytes     of one execution: multiply-adds count 2; bytes read and written in HBM
    count                 executions each time its place is passed (0 switches it off for a plan)
    kernels               launches an execution costs the host
    parameters            weights it owns on the device before any sharding over data ranks
    expert                whether those weights are shared out over ep * etp instead of tp
    saved_bytes           activations an execution keeps for the backward pass with recompute "none"
    kept_bytes            the same with recompute "selective"
    rerun                 whether "selective" runs it again in the backward pass
    host_bytes            bytes an execution moves over the host link, one way, beside whatever else runs
    slowdown              its arithmetic takes so many times as long as that of the usual kernel of its kind
    lengthened            so do its arithmetic and its memory traffic
    weight_gradient       whether it makes a gradient of weights, for which no other operator of the pass waits
    parts                 products it is cut into that follow each other: each pays the ramp
    pause_s               seconds the device waits for the host before it
    head                  shape of a fused attention kernel; None: priced at the reference shape
    ends_layer            whether only the next layer reads its result: a recompute that stops early leaves it out
    product               the matrix product it is, where its weights are a matrix adapters can stand beside
    frozen_bytes          bytes a weight is stored in that is not trained; None: it is trained
    back                  what runs for it in the backward pass; None: as usual for its kind
    part                  the place it would have where layers are alike; None: `place`
    regathered            whether a gathered input is gathered once more in the backward pass, for weight gradients
    """

    name: str
    kind: OperatorKind
    place: Place
    run: Pass
    count: Column
    flop: Column
    moved_bytes: Column
    math: Math = "none"
    kernels: Column | float = 1.0
    parameters: Column | None = None
    expert: bool = False
    saved_bytes: Column | None = None
    kept_bytes: Column | None = None
    rerun: Switch | bool = False
    weight_gradient: bool = False
    ends_layer: bool = False
    slowdown: float = 1.0
    lengthened: Column | float = 1.0
    parts: Column | float = 1.0
    pause_s: float = 0.0
    head: HeadShape | None = None
    collective: Collective | None = None
    host_bytes: Column | None = None
    product: Product | None = None
    frozen_bytes: float | None = None
    back: "tuple[Operator, ...] | None" = None
    regathered: bool = True
    part: Place | None = None

    @property
    def block(self) -> Place:
        """The part of a layer it belongs to, whatever the sort: "dense_layer" and "moe_layer" are the MLP's."""
        return self.place if self.part is None else self.part


OPERATOR_FIELDS = frozenset(field.name for field in fields(Operator))


def changed(operator: Operator, **values: object) -> Operator:
    """The operator with these fields changed: `dataclasses.replace` in a fifth of its time, which a projection of one
    plan would spend half of itself on."""
    assert values.keys() <= OPERATOR_FIELDS, f"an operator has no {sorted(values.keys() - OPERATOR_FIELDS)}"
    made = object.__new__(Operator)
    vars(made).update(vars(operator), **values)
    return made
