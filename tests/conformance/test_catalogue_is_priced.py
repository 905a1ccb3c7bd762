"""Every model and chip of the catalogue goes through the projector: priced whole, or refused with what is missing."""

import numpy as np
import pytest

from projector.catalog import architecture, architectures, chip, chips
from projector.cost.memory import stage_parameters
from projector.cost.serving_memory import kv_bytes_per_request
from projector.cost.stages import Stages, stages
from projector.errors import InvalidDescription
from projector.graph.training_graph import training_graph
from projector.project import project
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.software import CURRENT
from projector.specs.workload import WorkloadSpec

MODELS = pytest.mark.parametrize("model", architectures(), ids=lambda model: model.name)
CHIPS = pytest.mark.parametrize("profile", chips(), ids=lambda profile: profile.id)
ONE = np.ones(1)
BF16 = np.array(["bf16"])
RACK = ClusterSpec(chip="gb300", chips=72)


def whole(model) -> Stages:
    return stages(model, ONE, ONE, ONE, 0 * ONE)


@MODELS
def test_the_operators_own_exactly_the_weights_of_the_model(model):
    graph = training_graph(PlanBatch.from_plans([ParallelismPlan()]), model, 2048, BF16, CURRENT)
    dense, expert = stage_parameters(graph.forward, whole(model).whole, 0 * ONE)
    assert dense[0] + expert[0] == model.parameters
    assert (expert[0] > 0) == model.is_moe


@MODELS
def test_every_model_trains_and_serves_on_a_rack(model):
    training = project(
        ParallelismPlan(dp=72, fsdp=72, zero_stage=3, recompute="full"),
        WorkloadSpec(seq_len=4096, global_batch=72),
        model, RACK, chip("gb300"),
    )  # fmt: skip
    assert 0 < training.mfu_frac < 1
    serving = project(
        ParallelismPlan(phase="serving", dp=9, tp=8, max_num_seqs=64),
        WorkloadSpec(phase="serving", input_len=1024, output_len=256, concurrency=9),
        model, RACK, chip("gb300"),
    )  # fmt: skip
    assert serving.step_time_s > 0
    assert (serving.tpot_s is None) == (serving.max_concurrency < 9)


@CHIPS
def test_every_chip_is_priced_or_says_what_it_lacks(profile):
    devices = 2 * profile.devices_per_chip
    plan = ParallelismPlan(dp=devices, zero_stage=1)
    workload = WorkloadSpec(seq_len=1024, global_batch=devices)
    cluster = ClusterSpec(chip=profile.id, chips=2)
    if profile.intra.bytes_per_s_one_way is None:
        with pytest.raises(InvalidDescription, match=f"{profile.id} states no bandwidth between its chips"):
            project(plan, workload, architecture("llama-3.2-1b"), cluster, profile)
    else:
        assert 0 < project(plan, workload, architecture("llama-3.2-1b"), cluster, profile).mfu_frac < 1


@pytest.mark.parametrize(("name", "chips_over_the_domain"), [("rtx-pro-6000", 16), ("tpu-v7x", 9216 * 2)])
def test_a_network_without_a_figure_is_refused_where_a_plan_needs_it(name, chips_over_the_domain):
    profile = chip(name)
    devices = chips_over_the_domain * profile.devices_per_chip
    cluster = ClusterSpec(chip=profile.id, chips=chips_over_the_domain)
    with pytest.raises(InvalidDescription, match="states no bandwidth between domains"):
        project(
            ParallelismPlan(dp=devices), WorkloadSpec(seq_len=1024, global_batch=devices),
            architecture("llama-3.2-1b"), cluster, profile,
        )  # fmt: skip


def test_a_bridge_joins_pairs_and_only_pairs():
    profile = chip("h100-nvl")
    pair, four = (
        project(
            ParallelismPlan(tp=tp, sp=True), WorkloadSpec(seq_len=4096, global_batch=1),
            architecture("llama-3.1-8b"), ClusterSpec(chip="h100-nvl", chips=tp), profile,
        )
        for tp in (2, 4)
    )  # fmt: skip
    assert four.breakdown.exposed_communication_s > 3 * pair.breakdown.exposed_communication_s


def test_a_latent_cache_is_the_latent_on_every_rank():
    """DeepSeek-V3: 512 + 64 elements a token and layer, 61 layers, two bytes each, whatever tp is."""
    model = architecture("deepseek-v3")
    for tp in (1.0, 8.0):
        held = kv_bytes_per_request(model, tp * ONE, BF16, whole(model).whole, 1000)
        assert held[0] == 1000 * 61 * 576 * 2


def test_a_grouped_cache_is_keys_and_values_of_the_heads_a_rank_has():
    model = architecture("llama-3.1-70b")
    assert kv_bytes_per_request(model, 8 * ONE, BF16, whole(model).whole, 1000)[0] == 1000 * 80 * 2 * 128 * 2
