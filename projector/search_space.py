"""The legal space of a workload as columns: every layout of the devices, crossed with what else a plan can change.

What is searched, and what bounds it:
- axes: every ordered factorisation of the device count over dp, cp, tp, pp (serving: dp, tp, pp). On GPUs tp stays
  within the fast domain; on a torus pp stays at 1, because a TPU mesh has no such axis. A current plan or a constraint
  that goes further opens the axis.
- cp stays at 1 unless each rank keeps 4096 tokens of the sequence, or the current plan has as much of it, or a
  constraint names cp.
- expert layouts: whole experts spread over ep, or sliced by tp, or both, over every divisor of the expert count; in
  serving over all ranks of an engine, as engines launch them.
- prefill pools (serving): none, and a small menu of them (`search.pools`).
- optimizer, offloading, token dispatch, kind of context parallelism: as the current plan or a constraint has them.
- the rest: see `search.training` and `search.serving`. Precision changes only where constraints allow it.
- size: at most about MAX_CANDIDATES plans at once, MOST_IN_BLOCKS block by block. Beyond, other choices are narrowed in
  a fixed order, the axes never; the notes say what was left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd

from projector.errors import InvalidDescription, UnknownName
from projector.legality import legal_mask
from projector.search.blocks import (
    GROWTHS,
    PLANS_AT_ONCE,
    Growth,
    bounded_rows,
    even_blocks,
    fewest_narrowings,
    row_blocks,
)
from projector.search.factors import divisors, ordered_factorisations
from projector.search.layouts import FEWEST_TOKENS_A_CP_RANK, as_batch, short_of_tokens
from projector.search.menu import Search, require_usable
from projector.search.rows import Rows
from projector.search.training import sequences_per_step
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Constraints
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import MESH_AXES, MeshForm, ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import WorkloadSpec

MAX_CANDIDATES = 60_000
MOST_IN_BLOCKS = 1_000_000


@dataclass(frozen=True)
class Space:
    """The legal plans of a search, and what was left out of it or could not be checked, in words."""

    plans: PlanBatch
    notes: tuple[str, ...]


def enumerate_meshes(devices: int, axes: Sequence[str]) -> tuple[MeshForm, ...]:
    """Every mesh form of `devices` over the given axes (of replica, data, seq, model), the others at 1.

    All ordered factorisations; for 2**k devices these are the binomial(k + axes - 1, axes - 1) power-of-two forms.
    UnknownName for an axis that is none, InvalidDescription for a repeated or missing axis or no device.
    """
    for axis in axes:
        if axis not in MESH_AXES:
            raise UnknownName("mesh axis", axis, MESH_AXES)
    if not axes or len(set(axes)) != len(axes):
        raise InvalidDescription(f"mesh axes have to be distinct and at least one: {list(axes)}")
    if devices < 1:
        raise InvalidDescription(f"a mesh of {devices} devices")
    return tuple(
        MeshForm(**dict(zip(axes, sizes, strict=True))) for sizes in ordered_factorisations(devices, len(axes)).tolist()
    )


def candidates(
    workload: WorkloadSpec,
    architecture: ModelArchitecture | None,
    cluster: ClusterSpec,
    hardware: HardwareProfile | None,
    constraints: Constraints,
    current: ParallelismPlan | None,
) -> PlanBatch:
    """The legal plans that keep the constraints, the current one among them where it is one of these.

    Plans cover `usable_cluster(cluster, constraints, hardware)`. InvalidDescription where constraints contradict
    themselves, the current plan is of another phase, or a training space has neither global batch nor current plan.
    """
    return explore(workload, architecture, cluster, hardware, constraints, current).plans


def explore(
    workload: WorkloadSpec,
    architecture: ModelArchitecture | None,
    cluster: ClusterSpec,
    hardware: HardwareProfile | None,
    constraints: Constraints,
    current: ParallelismPlan | None,
) -> Space:
    """As `candidates`, with notes on what was narrowed or could not be checked."""
    search = _search(workload, architecture, cluster, hardware, constraints, current)
    growth = GROWTHS[workload.phase]
    rows, narrowed = bounded_rows(search, growth, MAX_CANDIDATES)
    notes = (*_notes(search, cluster), *_narrowing_notes(growth, narrowed, MAX_CANDIDATES))
    return Space(_legal(search, rows), notes)


@dataclass(frozen=True)
class BlockedSpace:
    """The legal plans of a search, block after block in the order of the search, without ever holding them all.

    cluster: the part of the cluster that plans cover.
    """

    blocks: Iterator[PlanBatch]
    cluster: ClusterSpec
    notes: tuple[str, ...]


def explore_in_blocks(
    workload: WorkloadSpec,
    architecture: ModelArchitecture | None,
    cluster: ClusterSpec,
    hardware: HardwareProfile | None,
    constraints: Constraints,
    current: ParallelismPlan | None,
    *,
    most: int = MOST_IN_BLOCKS,
    plans_at_once: int = PLANS_AT_ONCE,
) -> BlockedSpace:
    """As `explore` for spaces of up to `most` plans, narrowed only beyond that; memory grows with one block alone.

    Every block but the last has plans_at_once plans, the last up to half as many again. InvalidDescription beside the
    reasons of `candidates` where more than `most` plans stand although everything that may be narrowed was.
    """
    search = _search(workload, architecture, cluster, hardware, constraints, current)
    growth = GROWTHS[workload.phase]
    narrowed = fewest_narrowings(search, growth, most)
    if narrowed is None:
        raise InvalidDescription(
            f"more than {most} plans for {search.devices} devices, however much is left out",
            hint="fix or bound axes in constraints",
        )
    legal = (_legal(search, rows) for rows in row_blocks(search, growth, narrowed, plans_at_once))
    notes = (*_notes(search, cluster), *_narrowing_notes(growth, narrowed, most))
    return BlockedSpace(even_blocks(legal, plans_at_once), search.cluster, notes)


def _search(
    workload: WorkloadSpec,
    architecture: ModelArchitecture | None,
    cluster: ClusterSpec,
    hardware: HardwareProfile | None,
    constraints: Constraints,
    current: ParallelismPlan | None,
) -> Search:
    require_usable(constraints, workload)
    if current is not None and current.phase != workload.phase:
        raise InvalidDescription(f"a {current.phase} current plan for a {workload.phase} workload")
    usable = usable_cluster(cluster, constraints, hardware)
    base = current or _plan_from_scratch(workload, hardware)
    return Search(workload, architecture, usable, hardware, constraints, current, base)


def _notes(search: Search, cluster: ClusterSpec) -> tuple[str, ...]:
    return (
        *_cluster_note(cluster, search.cluster),
        *_unknown_notes(search.architecture, search.hardware),
        *_training_notes(search),
    )


def _narrowing_notes(growth: Growth, narrowed: int, most: int) -> tuple[str, ...]:
    return tuple(f"more than {most} plans: {text}" for text in growth.narrowings[:narrowed])


def _legal(search: Search, rows: Rows) -> PlanBatch:
    plans = as_batch(search, rows)
    given = (search.workload, search.architecture, search.cluster, search.hardware)
    return plans.take(search.kept(plans.columns) & legal_mask(plans, *given))


def usable_cluster(cluster: ClusterSpec, constraints: Constraints, hardware: HardwareProfile | None) -> ClusterSpec:
    """The part of the cluster that `max_chips` leaves: whole slices, or whole nodes, or a power of two of one.

    The topology of a part of a slice is unknown. Unchanged where nothing is capped.
    """
    most = constraints.max_chips
    if most is None or most >= cluster.chips:
        return cluster
    per_slice = cluster.chips // cluster.slices
    if most >= per_slice and cluster.slices > 1:
        slices = most // per_slice
        return cluster.model_copy(update={"chips": slices * per_slice, "slices": slices})
    node = hardware.chips_per_node if hardware is not None and hardware.kind == "gpu" else None
    chips = most - most % node if node is not None and most >= node else 1 << (most.bit_length() - 1)
    return ClusterSpec(chip=cluster.chip, chips=chips)


def _plan_from_scratch(workload: WorkloadSpec, hardware: HardwareProfile | None) -> ParallelismPlan:
    """Fields that are not searched, where no current plan says them."""
    precision = workload.precision
    if workload.phase == "training":
        # with tensor parallelism always: without it a rank keeps more and moves as much
        return ParallelismPlan(phase="training", compute_dtype=precision, sp=True)
    # fp4 weights are served with wider activations unless a plan says otherwise
    wanted = "fp8" if precision == "fp4" else precision
    computed = wanted if hardware is None or wanted in hardware.peak_flop_per_s else "bf16"
    return ParallelismPlan(phase="serving", compute_dtype=computed, weight_dtype=precision)


def _cluster_note(cluster: ClusterSpec, usable: ClusterSpec) -> tuple[str, ...]:
    if usable.chips == cluster.chips:
        return ()
    return (f"max_chips caps the plans at {usable.chips} of {cluster.chips} chips",)


def _training_notes(search: Search) -> tuple[str, ...]:
    """What bounds context and data parallelism of a training search, where it does."""
    if search.workload.phase != "training":
        return ()
    notes, devices, sequences = [], search.devices, sequences_per_step(search)
    constrained = "cp" in search.constraints.fixed or "cp" in search.constraints.bounds
    if not constrained and any(short_of_tokens(search, degree) for degree in divisors(devices)):
        notes.append(f"context parallelism under {FEWEST_TOKENS_A_CP_RANK} tokens a rank is left out")
    if devices > 1 and gcd(sequences, devices) == 1:
        notes.append(
            f"a global batch of {sequences} shares no factor with {devices} devices: no data parallelism divides both"
        )
    return tuple(notes)


def _unknown_notes(architecture: ModelArchitecture | None, hardware: HardwareProfile | None) -> tuple[str, ...]:
    model = "the model is unknown: heads, widths, layers and experts were not checked, pp and ep do not grow"
    chip = "the chip is unknown: fast domain, torus and precision were not checked"
    return (*((model,) if architecture is None else ()), *((chip,) if hardware is None else ()))
