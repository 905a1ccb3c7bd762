"""Process groups and parallelism degrees a trace implies, and the axis each communication serves."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from projector.breakdown import Axis
from projector.specs.plan import Phase
from projector.specs.record import MOST_DEVICES
from traces.collectives import Communication
from traces.facts import Facts, any_case, matching
from traces.implied_types import Inferred, ProcessGroup
from traces.infer_descriptions import Degree, described_axis
from traces.infer_groups import process_groups
from traces.infer_layout import Layout, Run, by_description, by_ranks, complete, runs
from traces.infer_products import split_ways

_DDP: Final = any_case(r"DistributedDataParallel|distributed::reducer|distributed\.ddp\.reducer")
_FSDP: Final = any_case(r"^FSDP::|^fsdp::|FullyShardedDataParallel")
_DTENSOR_TP: Final = any_case(r"^Redistribute|^NestedRedistribute|^_c10d_functional::all_reduce")
_MEGATRON_TP: Final = any_case(r"LinearWithGradAccumulationAndAsyncCommunication$|^_ReduceFromModelParallelRegion$")
_CONTEXT: Final = any_case(r"^AttnFuncWithCP")
_MOE: Final = any_case(r"moe|expert|\bep::(?:inter|intra)node|deep_ep")
_SERVING_REDUCE: Final = any_case(
    r"^(?:vllm|sglang|sgl_kernel|_C_custom_ar|symm_mem|trtllm)::.{0,100}all_?reduce"
    r"|cross_device_reduce|multimem_all_reduce"
)
_LABEL: Final = re.compile(r"(?<![a-z])(tp|dp|pp|ep|cp)(\d{1,5})(?![0-9a-z])")
_LABELLED: Final[dict[str, Degree]] = {"tp": "tp", "dp": "dp", "pp": "pp", "ep": "ep", "cp": "cp"}
_EXPERT_COLLECTIVES: Final = frozenset({"expert_dispatch", "expert_combine", "expert_notify"})
_SHARDING: Final = frozenset({"all_gather", "reduce_scatter"})
_REDUCING: Final = frozenset({"all_reduce", "all_gather", "reduce_scatter", "broadcast", "nccl", "wait"})
_ALONE: Final[tuple[Degree, ...]] = ("tp", "dp", "fsdp", "pp", "cp", "ep")
_MOST_OF_THE_TIME: Final = 0.8


@dataclass(frozen=True, slots=True)
class Mesh:
    """Degrees, each None where the trace does not say, and how to tell the axis of a communication.

    unresolved: (degree, why it is not known although the trace speaks of it).
    """

    world_size: Inferred[int] | None
    groups: tuple[ProcessGroup, ...]
    tp: Inferred[int] | None
    dp: Inferred[int] | None
    fsdp: Inferred[int] | None
    pp: Inferred[int] | None
    cp: Inferred[int] | None
    ep: Inferred[int] | None
    sp: Inferred[bool] | None
    unresolved: tuple[tuple[str, str], ...]
    axis_of: Callable[[Communication], Axis]


@dataclass(frozen=True, slots=True)
class _Signs:
    """Which kinds of parallelism leave their names in the trace."""

    serving: bool
    ddp: bool
    fsdp: bool
    dtensor_tp: bool
    megatron_tp: bool
    serving_tp: bool
    context: bool
    moe: bool

    @property
    def splits(self) -> bool:
        """Whether something speaks of tensor parallelism. DTensor does so of FSDP too."""
        return self.serving_tp or self.megatron_tp or (self.dtensor_tp and not self.fsdp)


def mesh(facts: Facts, phase: Inferred[Phase] | None) -> Mesh:
    """World size, groups and degrees: what descriptions say goes before where groups lie, that before what only one
    kind of parallelism calls, and that before labels. What contradicts itself stays unknown, with the reason.
    """
    groups = process_groups(facts)
    world = _world_size(facts)
    size = world.value if world else None
    signs = _signs(facts, phase)
    found = runs(groups, size)
    layout = _layout(facts, groups, found, size, signs)
    groups = _with_axes(groups, found, layout)
    axes = {(group.name, group.ranks): group.axis for group in groups}
    by_name = {name: axis for (name, _), axis in axes.items()}

    def axis_of(one: Communication) -> Axis:
        known = described_axis(one.group_description) or by_name.get(one.group, "unknown")
        return known if known != "unknown" else _axis(one, signs)

    return Mesh(
        world_size=world,
        groups=groups,
        tp=layout.degrees.get("tp"),
        dp=layout.degrees.get("dp"),
        fsdp=layout.degrees.get("fsdp"),
        pp=layout.degrees.get("pp"),
        cp=layout.degrees.get("cp"),
        ep=layout.degrees.get("ep"),
        sp=_sequence_parallel(facts.communications, layout.value("tp"), axis_of),
        unresolved=tuple((axis, why) for axis, why in layout.unresolved.items() if axis != "replicate"),
        axis_of=axis_of,
    )


def _layout(
    facts: Facts, groups: tuple[ProcessGroup, ...], found: tuple[Run, ...], world: int | None, signs: _Signs
) -> Layout:
    layout = Layout()
    if world == 1:
        for axis in _ALONE:
            layout.find(axis, 1, 0.9, "a world of one rank")
        return layout
    by_description(layout, groups, world)
    _by_split(layout, facts, world)
    if len(found) > 1 or any(run.group.use in ("pair", "expert") for run in found):
        by_ranks(layout, found, world, shards_first=signs.fsdp and not signs.splits, splits=signs.splits)
    else:
        _by_names(layout, facts, world, signs)
    _by_label(layout, facts)
    if signs.context and layout.value("cp") in (None, 1):
        layout.give_up(["cp"], "attention runs in parts of a context, and no group says how many there are")
    complete(layout, world)
    return layout


def _world_size(facts: Facts) -> Inferred[int] | None:
    metadata = facts.trace.metadata
    if metadata.world_size:
        return Inferred(value=metadata.world_size, confidence=1.0, basis=metadata.world_size_basis)
    sizes = [one.group_size for one in facts.communications if one.group_size and one.group_size <= MOST_DEVICES]
    if sizes:
        return Inferred(value=max(sizes), confidence=0.5, basis="size of the largest group that communicated; at least")
    return None


def _signs(facts: Facts, phase: Inferred[Phase] | None) -> _Signs:
    def names(pattern: re.Pattern[str]) -> bool:
        return any(matching(table, pattern) for table in (facts.operators, facts.annotations, facts.kernels))

    serving = phase is not None and phase.value == "serving"
    return _Signs(
        serving=serving,
        ddp=names(_DDP),
        fsdp=names(_FSDP),
        dtensor_tp=matching(facts.operators, _DTENSOR_TP) > 0,
        megatron_tp=matching(facts.operators, _MEGATRON_TP) > 0,
        serving_tp=serving and names(_SERVING_REDUCE),
        context=matching(facts.operators, _CONTEXT) > 0,
        moe=names(_MOE),
    )


def _by_split(layout: Layout, facts: Facts, world: int | None) -> None:
    """DTensor states whole and local shapes: their ratio is the tensor-parallel degree."""
    split = split_ways(facts)
    if split is not None and (world is None or world % split[0] == 0):
        layout.find("tp", split[0], 0.9, split[1])


def _by_names(layout: Layout, facts: Facts, world: int | None, signs: _Signs) -> None:
    """Degrees from what only one kind of parallelism calls, of the size of the group it spends its time in."""
    sharding = signs.fsdp and not signs.serving_tp
    size, source, sure = _group_in_use(facts, _SHARDING if sharding else _REDUCING, world)
    if size is None:
        return
    if signs.serving_tp:
        layout.find("tp", size, sure, f"the engine all-reduces inside its layers; {source} is {size}")
    elif signs.fsdp or signs.ddp:
        named = "FSDP" if signs.fsdp else "DistributedDataParallel"
        basis = f"{named} is in use; {source} is {size}"
        if not signs.fsdp or size == world or world is None:
            layout.find("dp", size, sure, basis)
        layout.find("fsdp", size if signs.fsdp else 1, sure, basis)
    elif signs.dtensor_tp or signs.megatron_tp:
        named = "DTensor redistributes activations" if signs.dtensor_tp else "Megatron splits products"
        layout.find("tp", size, sure / 2, f"{named} inside the layers; {source} is {size}")


def _group_in_use(facts: Facts, collectives: frozenset[str], world: int | None) -> tuple[int | None, str, float]:
    """(size, what it is the size of, how sure) of the group these collectives spend their time in; None where they are
    spread over groups of several sizes.
    """
    times: Counter[int] = Counter()
    for one in facts.communications:
        if one.collective in collectives and one.group_size is not None and one.group_size > 1:
            times[one.group_size] += int(facts.trace.duration_ns[one.row]) + 1
    if not times:
        return world, "world size", 0.6
    size, time = times.most_common(1)[0]
    if time < _MOST_OF_THE_TIME * times.total():
        return None, "", 0.0
    return size, "size of the group that communicated", 0.9 if len(times) == 1 else 0.7


def _by_label(layout: Layout, facts: Facts) -> None:
    """Degrees whoever made the trace wrote into its name, such as ep64_tp1."""
    name = facts.trace.metadata.trace_name.lower().rpartition("/")[2]
    for axis, degree in _LABEL.findall(name):
        if 0 < int(degree) <= MOST_DEVICES:
            layout.find(_LABELLED[axis], int(degree), 0.5, f"the trace calls itself {name!r}")


def _with_axes(groups: tuple[ProcessGroup, ...], found: Iterable[Run], layout: Layout) -> tuple[ProcessGroup, ...]:
    """The groups with the axes that where they lie told."""
    told: dict[tuple[str, tuple[int, ...]], Axis] = {}
    for run in found:
        expert = run.group.use == "expert"
        axis = next((a for a, far in layout.strides.items() if far == run.stride and (a == "ep") == expert), None)
        if axis is not None:
            told[run.group.name, run.group.ranks] = "dp" if axis == "replicate" else axis
    return tuple(group.model_copy(update={"axis": told.get((group.name, group.ranks), group.axis)}) for group in groups)


def _sequence_parallel(
    communications: Iterable[Communication], tp: int | None, axis_of: Callable[[Communication], Axis]
) -> Inferred[bool] | None:
    """Whether activations are gathered and scattered over the tensor-parallel group instead of all-reduced."""
    if tp is None or tp == 1:
        return None
    counts = Counter(one.collective for one in communications if axis_of(one) == "tp")
    gathered, scattered, reduced = counts["all_gather"], counts["reduce_scatter"], counts["all_reduce"]
    if not scattered and not reduced:
        return None
    counted = f"{gathered:,} all-gathers, {scattered:,} reduce-scatters, {reduced:,} all-reduces"
    basis = f"in the tensor-parallel group: {counted}"
    return Inferred(value=scattered > 0 and gathered > 0, confidence=0.8, basis=basis)


def _axis(communication: Communication, signs: _Signs) -> Axis:
    if communication.collective in _EXPERT_COLLECTIVES:
        return "ep"
    if communication.collective == "all_to_all":
        return "ep" if signs.moe else "unknown"
    if communication.collective in _REDUCING:
        if signs.serving:
            return "tp" if signs.serving_tp else "unknown"
        if signs.fsdp and not signs.ddp:
            return "fsdp"
        if signs.ddp and not signs.fsdp:
            return "dp" if communication.collective in ("all_reduce", "broadcast", "nccl", "wait") else "unknown"
        if signs.dtensor_tp and not (signs.ddp or signs.fsdp):
            return "tp"
    return "unknown"
