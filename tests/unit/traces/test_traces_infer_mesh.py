"""Degrees from process groups: descriptions, where ranks lie, what runs in a group, what is left of the world."""

from collections.abc import Iterable

import pytest
from trace_examples import Event, annotation, kernel, op, trace_of

from traces.infer_descriptions import spanned
from traces.summary import summarise
from traces.summary_types import Implied

AXES = ("tp", "dp", "fsdp", "pp", "cp", "ep")


def group(description: str, ranks: Iterable[int], name: str = "") -> dict[str, object]:
    listed = list(ranks)
    return {"pg_name": name or description, "pg_desc": description, "pg_size": len(listed), "ranks": listed}


def collective(name: str, group_name: str, ranks: Iterable[int], start: float = 50) -> Event:
    """A kernel of a collective with the arguments a profiler writes."""
    listed = list(ranks)
    return kernel(
        "ncclDevKernel_Generic(x)",
        start,
        1,
        **{
            "Collective name": name,
            "Process Group Name": group_name,
            "Process Group Description": "undefined",
            "Process Group Ranks": str(listed),
            "Group size": len(listed),
            "In msg nelems": 1 << 20,
            "Out msg nelems": 1 << 20,
            "dtype": "BFloat16",
        },
    )


def implied(world: int, *events: Event, groups: Iterable[dict[str, object]] = (), rank: int = 0) -> Implied:
    info = {"rank": rank, "world_size": world, "pg_config": list(groups)}
    return summarise([trace_of(*(events or (kernel("nvjet", 0, 1),)), distributedInfo=info)]).implied


def degrees(found: Implied) -> dict[str, int]:
    return {axis: value.value for axis in AXES if (value := getattr(found, axis)) is not None}


def test_a_job_of_megatron_describes_every_axis() -> None:
    """tp 4, cp 2, dp 2, pp 2 of 32 ranks, in the order Megatron lays them out."""
    found = implied(
        32,
        groups=[
            group("TENSOR_MODEL_PARALLEL_GROUP", range(4)),
            group("CONTEXT_PARALLEL_GROUP", (0, 4)),
            group("DATA_PARALLEL_GROUP", (0, 8)),
            group("DATA_PARALLEL_GROUP_WITH_CP", (0, 4, 8, 12)),
            group("PIPELINE_MODEL_PARALLEL_GROUP", (0, 16)),
            group("TENSOR_AND_CONTEXT_PARALLEL_GROUP", range(8)),
            group("EXPERT_MODEL_PARALLEL_GROUP", range(2)),
            group("EXPERT_DATA_PARALLEL_GROUP", range(0, 16, 2)),
            group("EMBEDDING_GROUP", (0, 16)),
        ],
    )
    assert degrees(found) == {"tp": 4, "cp": 2, "dp": 2, "pp": 2, "ep": 2}
    assert found.unresolved == ()
    assert found.framework is not None
    assert found.framework.value == "megatron"
    assert {one.description: one.axis for one in found.groups}["CONTEXT_PARALLEL_GROUP"] == "cp"


def test_torchtitan_shards_over_context_parallel_ranks_too() -> None:
    """Its fsdp group spans cp: 2 replicas x (4 shards x 2 cp) x tp 2 = 32."""
    found = implied(
        32,
        groups=[
            group("mesh_tp", range(2)),
            group("mesh_cp", (0, 2)),
            group("mesh_fsdp", range(0, 16, 2)),
            group("mesh_dp_replicate", (0, 16)),
            group("mesh_batch", range(0, 32, 4)),
        ],
    )
    assert degrees(found) == {"tp": 2, "cp": 2, "fsdp": 4, "dp": 8, "pp": 1}
    assert found.framework is not None
    assert found.framework.value == "torchtitan"


def test_a_product_of_axes_tells_the_one_that_is_open() -> None:
    found = implied(
        16, groups=[group("mesh_tp", range(2)), group("mesh_cp", (0, 2)), group("mesh_dp_cp", range(0, 16, 2))]
    )
    assert degrees(found) == {"tp": 2, "cp": 2, "dp": 4, "pp": 1}
    assert found.dp is not None
    assert "mesh_dp_cp" in found.dp.basis


def test_what_described_axes_leave_of_the_world_is_data_parallelism() -> None:
    found = implied(64, groups=[group("tp:0", range(8))])
    assert degrees(found) == {"tp": 8, "dp": 8, "pp": 1, "cp": 1}
    assert found.dp is not None
    assert (found.dp.confidence, found.dp.basis) == (0.6, "tp 8 leaves 8 of 64 ranks")


def test_an_expert_group_alone_says_nothing_of_the_other_axes() -> None:
    assert degrees(implied(64, groups=[group("mesh_ep", range(8))])) == {"ep": 8}


@pytest.mark.parametrize(
    ("groups", "unknown", "why"),
    [
        (
            [group("mesh_tp", range(4)), group("mesh_tp", range(8), "other")],
            ["tp"],
            "its groups have 4 and 8 ranks",
        ),
        (
            [group("mesh_tp", range(3))],
            ["tp"],
            "tp 3 make 3 ranks, which do not divide the world of 16",
        ),
        (
            [
                group("mesh_tp", range(4)),
                group("mesh_cp", (0, 4)),
                group("TENSOR_AND_CONTEXT_PARALLEL_GROUP", range(16)),
            ],
            ["tp", "cp"],
            "process group described as 'TENSOR_AND_CONTEXT_PARALLEL_GROUP' has 16 ranks, tp 4 x cp 2 are 8",
        ),
        (
            [group("mesh_dp", range(4)), group("mesh_dp_shard", range(4)), group("mesh_dp_replicate", (0, 4))],
            ["dp", "fsdp"],
            "dp 4 is not fsdp 4 x replicas 2",
        ),
    ],
)
def test_descriptions_that_contradict_each_other_leave_the_axes_unknown(
    groups: list[dict[str, object]], unknown: list[str], why: str
) -> None:
    found = implied(16, groups=groups)
    assert not degrees(found).keys() & set(unknown)
    assert dict(found.unresolved) == dict.fromkeys(unknown, why)


def test_ranks_tell_the_order_of_the_mesh_where_nobody_describes_it() -> None:
    """Neighbours reduce inside the layers, strided ranks reduce gradients, the outermost send to one another."""
    found = implied(
        16,
        collective("allreduce", "1", range(4)),
        collective("allreduce", "2", (0, 4), 60),
        collective("send", "3", (0, 8), 70),
    )
    assert degrees(found) == {"tp": 4, "dp": 2, "pp": 2, "cp": 1}
    assert found.tp is not None
    assert found.pp is not None
    assert (found.tp.confidence, found.tp.basis) == (0.6, "reductions run among 4 neighbours (0, 1, 2, 3)")
    assert found.pp.basis == "sends and receives run among 2 ranks 8 apart (0, 8), the outermost axis"
    assert {one.name: one.axis for one in found.groups} == {"1": "tp", "2": "dp", "3": "pp"}


def test_the_axis_of_a_collective_is_that_of_its_group() -> None:
    info = {"rank": 0, "world_size": 16}
    events = [
        collective("allreduce", "1", range(4)),
        collective("allreduce", "2", (0, 4), 60),
        collective("send", "3", (0, 8), 70),
        collective("all_to_all", "4", range(8), 80),
    ]
    summary = summarise([trace_of(*events, distributedInfo=info)])
    assert {line.group: line.axis for line in summary.collectives} == {"1": "tp", "2": "dp", "3": "pp", "4": "ep"}


def test_hybrid_sharding_has_its_shards_inside() -> None:
    marks = annotation("FSDP::pre_forward", 0, 9)
    found = implied(
        16,
        marks,
        collective("_allgather_base", "1", range(8)),
        collective("_reduce_scatter_base", "1", range(8), 60),
        collective("allreduce", "2", (0, 8), 70),
    )
    assert degrees(found) == {"fsdp": 8, "dp": 16, "tp": 1, "pp": 1, "cp": 1}


def test_groups_that_are_no_axes_of_one_mesh_are_told() -> None:
    found = implied(24, collective("allreduce", "1", range(4)), collective("allreduce", "2", (0, 6, 12, 18), 60))
    assert degrees(found) == {}
    assert dict(found.unresolved)["tp"] == (
        "groups of 4 neighbours (0, 1, 2, 3) and of 4 ranks 6 apart (0, 6, 12, 18) are no axes of one mesh"
    )


def test_sends_between_inner_ranks_are_stages_or_parts_of_a_context() -> None:
    found = implied(16, collective("send", "1", range(4)), collective("allreduce", "2", range(0, 16, 4), 60))
    assert found.pp is None
    assert dict(found.unresolved)["pp"].endswith("stages, or parts of a context")


def test_context_parallel_attention_without_a_group_is_told() -> None:
    found = implied(8, op("AttnFuncWithCPAndKVP2P", 0, 1), annotation("DistributedDataParallel.forward", 2, 1))
    assert found.cp is None
    assert "no group says how many" in dict(found.unresolved)["cp"]


def test_a_world_that_one_axis_takes_up_has_no_other() -> None:
    found = implied(8, annotation("DistributedDataParallel.forward", 0, 9), collective("allreduce", "0", range(8)))
    assert degrees(found) == {"dp": 8, "fsdp": 1, "tp": 1, "pp": 1, "cp": 1}
    assert found.pp is not None
    assert found.pp.basis == "dp 8 takes up all 8 ranks"


def test_sequence_parallelism_gathers_and_scatters_what_tensor_parallelism_reduces() -> None:
    marks = op("LinearWithGradAccumulationAndAsyncCommunication", 0, 1)
    scattered = implied(
        4,
        marks,
        collective("_allgather_base", "1", range(4)),
        collective("_reduce_scatter_base", "1", range(4), 60),
        groups=[group("TENSOR_MODEL_PARALLEL_GROUP", range(4), "1")],
    )
    reduced = implied(
        4,
        marks,
        collective("allreduce", "1", range(4)),
        groups=[group("TENSOR_MODEL_PARALLEL_GROUP", range(4), "1")],
    )
    assert scattered.sp is not None
    assert reduced.sp is not None
    assert (scattered.sp.value, reduced.sp.value) == (True, False)
    assert scattered.sp.basis == ("in the tensor-parallel group: 1 all-gathers, 1 reduce-scatters, 0 all-reduces")


def test_groups_of_several_sizes_that_share_the_time_tell_no_degree() -> None:
    marks = annotation("DistributedDataParallel.forward", 0, 9)
    lists = [
        kernel(
            "ncclKernel_x", 50, 1, **{"Collective name": "allreduce", "Process Group Name": name, "Group size": size}
        )
        for name, size in (("a", 2), ("b", 8))
    ]
    assert degrees(implied(16, marks, *lists)) == {}


@pytest.mark.parametrize(
    ("description", "spans"),
    [
        ("TENSOR_AND_DATA_PARALLEL_GROUP_WITH_CP", ("tp", "dp", "cp")),
        ("MODEL_PARALLEL_GROUP", ("tp", "pp")),
        ("DATA_PARALLEL_GROUP_WITH_CP", ("dp", "cp")),
        ("mesh_dp_shard_cp", ("fsdp", "cp")),
        ("mesh_dp_replicate", ("replicate",)),
        ("INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP", ()),
        ("EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP", ()),
        ("mesh_efsdp", ()),
        ("HYBRID_DP_CP_GROUP_8", ()),
        ("x" * 5000 + "_tp", ()),
    ],
)
def test_axes_a_description_spans(description: str, spans: tuple[str, ...]) -> None:
    assert spanned(description) == spans
