"""Which axis crosses which links, and at which rate."""

import math

import pytest
from projector_examples import cluster, dense_model, ideal, moe_model, switched_chip, torus_chip, training

from projector.breakdown import AxisLink
from projector.catalog import architecture, chip
from projector.project import project
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan
from projector.specs.workload import WorkloadSpec

S = 2048


def links(plan: ParallelismPlan, **changes: object) -> dict[tuple[str, str], AxisLink]:
    hardware = switched_chip(calibration=ideal(link_efficiency_frac=0.8), **changes)
    batch = training(plan.dp * plan.micro_batch * plan.grad_accum, S)
    model = moe_model() if plan.ep > 1 else dense_model()
    found = project(plan, batch, model, cluster(hardware, plan.devices), hardware).links
    return {(link.axis, link.tier): link for link in found}


def test_inner_axes_stay_on_fast_links_and_outer_ones_cross_the_network() -> None:
    found = links(ParallelismPlan(dp=2, tp=4, pp=4, grad_accum=4))
    assert set(found) == {("tp", "nvlink"), ("dp", "nvlink"), ("pp", "nic")}
    assert found["tp", "nvlink"].group_size == 4
    assert found["tp", "nvlink"].one_way_bytes_per_s == pytest.approx(0.8 * 100e9)
    assert found["pp", "nic"].ranks_per_domain == 1
    assert found["pp", "nic"].one_way_bytes_per_s == pytest.approx(0.8 * 25e9)


def test_a_group_larger_than_a_domain_crosses_both_tiers() -> None:
    found = links(ParallelismPlan(dp=32, fsdp=32, zero_stage=3))
    assert set(found) == {("fsdp", "nvlink"), ("fsdp", "nic")}
    assert {(link.group_size, link.ranks_per_domain) for link in found.values()} == {(32, 8)}


def test_experts_trade_with_all_at_once_and_lose_nothing_to_a_ring() -> None:
    found = links(ParallelismPlan(dp=64, ep=64, fsdp=64, zero_stage=3))
    assert found["ep", "nic"].one_way_bytes_per_s > found["fsdp", "nic"].one_way_bytes_per_s


def test_an_axis_of_experts_alone_has_their_links() -> None:
    found = links(ParallelismPlan(dp=16, ep=8, etp=2))
    assert found["tp", "nvlink"].group_size == 2
    found = links(ParallelismPlan(tp=8, ep=2))
    assert found["dp", "nvlink"].group_size == 4


def test_an_axis_that_does_not_communicate_has_no_links() -> None:
    assert links(ParallelismPlan()) == {}


def test_a_tpu_has_ici_inside_a_slice_and_dcn_between() -> None:
    hardware = torus_chip()
    plan = ParallelismPlan(dp=512, fsdp=256, zero_stage=3)
    found = project(
        plan,
        training(512, S),
        dense_model(),
        ClusterSpec(chip="torus", chips=512, topology=(16, 16), slices=2),
        hardware,
    ).links
    # a wrapped axis of 16 has two links of 10 GB/s each way in both dimensions
    assert [(one.axis, one.tier, one.group_size, one.ranks_per_domain) for one in found] == [
        ("fsdp", "ici", 256, 256),
        ("dp", "dcn", 2, 1),
    ]
    assert found[0].one_way_bytes_per_s == pytest.approx(4 * 10e9)
    assert found[1].one_way_bytes_per_s == pytest.approx(5e9 / 1.15)  # a ring over 2 domains gets a bit less


@pytest.mark.parametrize(
    ("name", "inside"), [("h100-sxm", "nvlink"), ("mi300x", "xgmi"), ("tpu-v6e", "ici"), ("l40s", "pcie")]
)
def test_links_are_named_for_the_chip(name: str, inside: str) -> None:
    plan = ParallelismPlan(dp=2)
    batch = WorkloadSpec(seq_len=S, global_batch=2)
    found = project(plan, batch, architecture("llama-3.1-8b"), ClusterSpec(chip=name, chips=2), chip(name))
    assert [(link.axis, link.tier) for link in found.links] == [("dp", inside)]


def test_an_engine_shows_its_links_too() -> None:
    hardware = switched_chip()
    load = WorkloadSpec(phase="serving", input_len=100, output_len=100, concurrency=8)
    plan = ParallelismPlan(phase="serving", tp=4, dp=2)
    found = project(plan, load, dense_model(), cluster(hardware, 8), hardware)
    assert [(link.axis, link.tier, link.group_size) for link in found.links] == [("tp", "nvlink", 4)]


@pytest.mark.parametrize(
    ("name", "shape", "rings"),
    [("tpu-v5p", (2, 2, 4), 0), ("tpu-v5p", (4, 4, 4), 3), ("tpu-v5e", (8, 16), 1), ("tpu-v5e", (4, 4), 0)],
)
def test_cubes_close_all_their_rings_or_none_and_flat_slices_each_whole_axis(
    name: str, shape: tuple[int, ...], rings: int
) -> None:
    """A closed dimension gives a ring two links, an open one a link."""
    chips, hardware = math.prod(shape), chip(name)
    plan = ParallelismPlan(dp=chips, fsdp=chips, zero_stage=3)
    batch = WorkloadSpec(seq_len=S, global_batch=chips)
    machine = ClusterSpec(chip=name, chips=chips, topology=shape)
    found = project(plan, batch, architecture("llama-3.1-8b"), machine, hardware).links[0]
    figure = hardware.intra.bytes_per_s_one_way
    assert figure is not None
    link = figure.value / (2 * len(shape)) * hardware.calibration.link_efficiency_frac
    assert found.one_way_bytes_per_s == pytest.approx((len(shape) + rings) * link)
