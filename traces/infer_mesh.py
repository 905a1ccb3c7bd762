"""Process groups and parallelism degrees a trace implies, and the axis each communication serves."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from projector.breakdown import Axis
from projector.specs.plan import Phase
from projector.specs.record import MOST_DEVICES
from traces.collectives import Communication
from traces.facts import Facts, any_case, matching
from traces.summary_types import Inferred, ProcessGroup

_DDP: Final = any_case(r"DistributedDataParallel|distributed::reducer|distributed\.ddp\.reducer")
_FSDP: Final = any_case(r"^FSDP::|^fsdp::|FullyShardedDataParallel")
_DTENSOR_TP: Final = any_case(r"^Redistribute|^NestedRedistribute|^_c10d_functional::all_reduce")
_MOE: Final = any_case(r"moe|expert|\bep::(?:inter|intra)node|deep_ep")
_SERVING_REDUCE: Final = any_case(
    r"^(?:vllm|sglang|sgl_kernel|_C_custom_ar|symm_mem)::.*all_?reduce|cross_device_reduce|multimem_all_reduce"
)
_LABEL: Final = re.compile(r"(?<![a-z])(tp|dp|pp|ep)(\d{1,5})(?![0-9a-z])")
_EXPERT_COLLECTIVES: Final = frozenset({"expert_dispatch", "expert_combine", "expert_notify"})
_REDUCING: Final = frozenset({"all_reduce", "all_gather", "reduce_scatter", "broadcast", "nccl", "wait"})

# Descriptions under which trainers register their groups (DeviceMesh, Megatron, vLLM).
_SPANNING: Final = any_case(r"_and_|with_cp|expert\w*(?:tensor|data)|embedding")
_DESCRIBED: Final[tuple[tuple[Axis, re.Pattern[str]], ...]] = (
    ("tp", any_case(r"(?:^|[_:])tp(?:$|[_:0-9])|tensor_model_parallel|tensor_parallel")),
    ("pp", any_case(r"(?:^|[_:])pp(?:$|[_:0-9])|pipeline")),
    ("cp", any_case(r"(?:^|[_:])cp(?:$|[_:0-9])|context_parallel")),
    ("ep", any_case(r"(?:^|[_:])ep(?:$|[_:0-9])|expert")),
    ("fsdp", any_case(r"fsdp|(?:^|[_:])dp_shard")),
    ("dp", any_case(r"(?:^|[_:])dp(?:$|[_:0-9])|data_parallel|(?:^|[_:])dp_replicate")),
)


@dataclass(frozen=True, slots=True)
class Mesh:
    """Degrees, each None where the trace does not say, and how to tell the axis of a communication."""

    world_size: Inferred[int] | None
    groups: tuple[ProcessGroup, ...]
    tp: Inferred[int] | None
    dp: Inferred[int] | None
    pp: Inferred[int] | None
    ep: Inferred[int] | None
    axis_of: Callable[[Communication], Axis]


@dataclass(frozen=True, slots=True)
class _Signs:
    """Which kinds of parallelism leave their names in the trace."""

    serving: bool
    ddp: bool
    fsdp: bool
    dtensor_tp: bool
    serving_tp: bool
    moe: bool


def mesh(facts: Facts, phase: Inferred[Phase] | None) -> Mesh:
    """World size, groups and degrees, from group descriptions, names that one axis alone leaves, and labels."""
    metadata = facts.trace.metadata
    groups = tuple(
        ProcessGroup(name=group.name, size=group.size, ranks=group.ranks, description=group.description)
        for group in metadata.groups
    )
    world = _world_size(facts)
    signs = _signs(facts, phase)
    degrees = _degrees(facts, world.value if world else None, signs)
    return Mesh(
        world_size=world,
        groups=groups,
        tp=degrees.get("tp"),
        dp=degrees.get("dp"),
        pp=degrees.get("pp"),
        ep=degrees.get("ep"),
        axis_of=lambda communication: _axis(communication, signs),
    )


def described_axis(description: str) -> Axis | None:
    """Axis a group description names; None where it names none, or a group that spans several axes."""
    if _SPANNING.search(description):
        return None
    return next((axis for axis, pattern in _DESCRIBED if pattern.search(description)), None)


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
        serving_tp=serving and names(_SERVING_REDUCE),
        moe=names(_MOE),
    )


def _degrees(facts: Facts, world: int | None, signs: _Signs) -> dict[str, Inferred[int]]:
    found = _alone() if world == 1 else {}
    for source in (_by_description(facts), _by_names(facts, world, signs), _by_label(facts)):
        for axis, degree in source.items():
            found.setdefault(axis, degree)
    return _rest_is_one(found, world)


def _alone() -> dict[str, Inferred[int]]:
    return {axis: Inferred(value=1, confidence=0.9, basis="a world of one rank") for axis in ("tp", "dp", "pp", "ep")}


def _by_description(facts: Facts) -> dict[str, Inferred[int]]:
    found: dict[str, Inferred[int]] = {}
    for group in facts.trace.metadata.groups:
        axis = described_axis(group.description)
        if axis in ("tp", "dp", "pp", "ep", "fsdp"):
            name = "dp" if axis == "fsdp" else axis
            known = found.get(name)
            if known is None or group.size > known.value:
                basis = f"process group described as {group.description!r} has {group.size} ranks"
                found[name] = Inferred(value=group.size, confidence=0.9, basis=basis)
    return found


def _by_names(facts: Facts, world: int | None, signs: _Signs) -> dict[str, Inferred[int]]:
    """Degrees from what only one kind of parallelism calls; the size is that of the group that communicated."""
    if world == 1:
        return {}
    reducing = [one.group_size for one in facts.communications if one.collective in _REDUCING and one.group_size]
    size = max(reducing, default=0) or world
    if not size:
        return {}
    source = "size of the group that communicated" if reducing else "world size"
    sure = 0.9 if reducing else 0.6
    if signs.serving_tp:
        basis = f"the engine all-reduces inside its layers; {source} is {size}"
        return {"tp": Inferred(value=size, confidence=sure, basis=basis)}
    if signs.ddp or signs.fsdp:
        basis = f"{'FSDP' if signs.fsdp else 'DistributedDataParallel'} is in use; {source} is {size}"
        return {"dp": Inferred(value=size, confidence=sure, basis=basis)}
    if signs.dtensor_tp:
        basis = f"DTensor redistributes activations inside the layers; {source} is {size}"
        return {"tp": Inferred(value=size, confidence=sure / 2, basis=basis)}
    return {}


def _by_label(facts: Facts) -> dict[str, Inferred[int]]:
    """Degrees whoever made the trace wrote into its name, such as ep64_tp1."""
    name = facts.trace.metadata.trace_name.lower().rpartition("/")[2]
    return {
        axis: Inferred(value=int(degree), confidence=0.5, basis=f"the trace calls itself {name!r}")
        for axis, degree in _LABEL.findall(name)
        if int(degree) > 0
    }


def _rest_is_one(found: dict[str, Inferred[int]], world: int | None) -> dict[str, Inferred[int]]:
    """Where one of tp and dp takes up the whole world, the other and pp are 1."""
    whole = next((axis for axis in ("tp", "dp") if world != 1 and axis in found and found[axis].value == world), None)
    if whole is None:
        return found
    basis = f"{whole} takes up all {world} ranks"
    rest: dict[str, Inferred[int]] = {
        axis: Inferred(value=1, confidence=found[whole].confidence, basis=basis) for axis in ("tp", "dp", "pp")
    }
    return rest | found


def _axis(communication: Communication, signs: _Signs) -> Axis:
    described = described_axis(communication.group_description)
    if described is not None:
        return described
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
