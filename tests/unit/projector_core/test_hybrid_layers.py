"""Models whose layers differ: counts, work and memory of a small hybrid, worked out on paper."""

import numpy as np
import pytest
from projector_examples import cluster, dense_model, latent_model, switched_chip, training
from pydantic import ValidationError

from projector.cost.memory import stage_parameters
from projector.cost.serving_memory import kv_bytes_per_request
from projector.cost.stages import Stages, stages
from projector.graph.operator import Operator
from projector.graph.recurrent_scan import scan_cost
from projector.graph.training_graph import TrainingGraph, training_graph
from projector.legality import check
from projector.model_flop import model_flop_per_token
from projector.project import project
from projector.specs.architecture import ModelArchitecture
from projector.specs.layer_sort import LayerSort
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.recurrence import Recurrence
from projector.specs.software import CURRENT, MEGATRON_RECIPES, MEGATRON_RECIPES_FUSED_EXPERTS
from projector.specs.software_of_model import software_of_model

ONE = np.ones(1)
BF16 = np.array(["bf16"])
# 8 heads of 16 features, 2 groups of 32 key features: 4,096 numbers of state
MAMBA = Recurrence(kind="mamba2", heads=8, head_dim=16, groups=2, state_size=32, conv_kernel=4, chunk=64)


def hybrid(**changes: object) -> ModelArchitecture:
    """Five layers with Mamba-2 alone, two with attention and an MLP, one MLP alone; hidden 1024."""
    sorts = (
        LayerSort(layers=5, attention=False, recurrent=True, mlp="none"),
        LayerSort(layers=2),
        LayerSort(layers=1, attention=False),
    )
    return dense_model(**({"name": "hybrid", "sorts": sorts, "recurrence": MAMBA} | changes))


def graph_of(model: ModelArchitecture, **plan: object) -> TrainingGraph:
    plans = PlanBatch.from_plans([ParallelismPlan.model_validate(plan)])
    return training_graph(plans, model, 2048, BF16, CURRENT)


def whole(model: ModelArchitecture, pp: float = 1.0) -> Stages:
    return stages(model, pp * ONE, ONE, ONE, 0 * ONE)


def named(graph: TrainingGraph, name: str, run: str = "forward") -> Operator:
    return next(found for found in graph.operators if found.name == name and found.run == run)


def test_parameters_are_those_of_each_sort_times_its_layers() -> None:
    inner, keys, heads = 128, 2 * 64, 8
    mamba = 1024 * (2 * inner + keys + heads) + inner * 1024 + (inner + keys) * 5 + 3 * heads + inner
    attention, mlp = 1024 * (2 * 1024 + 2 * 256), 3 * 1024 * 4096
    norms = (5 + 2 * 2 + 1 + 1) * 1024
    assert hybrid().parameters == 5 * mamba + 2 * attention + 3 * mlp + norms + 2 * 32000 * 1024


def test_operators_own_the_models_weights_and_shards_sum_to_them() -> None:
    model = hybrid()
    for tp in (1, 2):
        dense, _ = stage_parameters(graph_of(model, tp=tp).forward, whole(model).whole, 0 * ONE)
        split = model.parameters - model.norm_parameters
        assert dense[0] == pytest.approx(split / tp + model.norm_parameters)


def test_sorts_are_spread_evenly_over_stages() -> None:
    places = whole(hybrid(), pp=4.0).middle.places
    assert [places[f"sort_{number}"][0] for number in range(3)] == [2 * 5 / 8, 2 * 2 / 8, 2 * 1 / 8]


def test_attention_of_two_layers_costs_two_layers_of_attention() -> None:
    model = hybrid()
    recurrence = 5 * 3 * (5 * 4096 + 2 * 4 * 256)
    weights = model.parameters - model.norm_parameters - 32000 * 1024 - 5 * MAMBA.vector_parameters
    expected = 6 * weights + 2 * 12 * 1024 * 2048 + recurrence
    assert model_flop_per_token(model, 2048) == pytest.approx(expected)


def test_chunked_state_space_work_is_that_of_the_paper() -> None:
    """Scores 2 Q N G, their product 2 Q P H, states in and out 4 N P H (arXiv:2405.21060, section 6)."""
    assert scan_cost(MAMBA).flop == 2 * 64 * 32 * 2 + 2 * 64 * 16 * 8 + 4 * 4096
    halved = scan_cost(MAMBA.model_copy(update={"chunk": 32}))
    assert halved.flop < scan_cost(MAMBA).flop
    assert halved.fixed_bytes > scan_cost(MAMBA).fixed_bytes


def test_delta_rule_costs_more_than_decay_alone() -> None:
    delta = MAMBA.model_copy(update={"kind": "gated_delta", "groups": 8})
    alike = MAMBA.model_copy(update={"groups": 8})
    assert scan_cost(delta).flop > scan_cost(alike).flop
    assert delta.model_flop_per_token > alike.model_flop_per_token


def test_time_of_recurrent_layers_grows_with_tokens_and_not_with_their_square() -> None:
    model, hardware = hybrid(sorts=(LayerSort(layers=8, attention=False, recurrent=True),)), switched_chip()
    short, long = (
        project(ParallelismPlan(), training(1, seq_len), model, cluster(hardware, 1), hardware).step_time_s
        for seq_len in (8192, 16384)
    )
    assert 1.5 * short < long <= 2 * short


def test_context_ranks_trade_tokens_for_heads_around_a_recurrence() -> None:
    graph = graph_of(hybrid(), cp=2)
    sent = [op for op in graph.operators if op.name.startswith("recurrent_to_")]
    assert {(op.run, op.place) for op in sent} == {("forward", "sort_0"), ("backward", "sort_0")}
    assert all(op.collective is not None and op.collective.kind == "all_to_all" for op in sent)
    assert named(graph, "kv_ring").place == "sort_1"


def test_a_request_holds_keys_of_attention_layers_and_a_state_of_recurrent_ones() -> None:
    held = [
        kv_bytes_per_request(hybrid(), ONE, BF16, whole(hybrid()).whole, float(tokens))[0] for tokens in (1000, 2000)
    ]
    state = 5 * (4 * 4096 + 2 * 3 * 256)
    assert held[0] == pytest.approx(state + 1000 * 2 * 2 * 256 * 2)
    assert held[1] - held[0] == pytest.approx(1000 * 2 * 2 * 256 * 2)


def test_decoding_reads_and_writes_the_state_of_every_request() -> None:
    hardware = switched_chip()
    plan = ParallelismPlan(phase="serving", max_num_seqs=64)
    serving = training(1, 1).model_copy(
        update={"phase": "serving", "seq_len": None, "global_batch": None, "input_len": 512, "output_len": 64,
                "concurrency": 64}
    )  # fmt: skip
    assert project(plan, serving, hybrid(), cluster(hardware, 1), hardware).tpot_s is not None


@pytest.mark.parametrize(
    ("tp", "cp", "broken"), [(2, 1, set()), (2, 8, {"recurrent_heads"}), (4, 1, {"recurrent_groups"})]
)
def test_tensor_parallelism_splits_groups_and_heads_of_a_recurrence(tp: int, cp: int, broken: set[str]) -> None:
    hardware = switched_chip(domain_chips=64)
    plan = ParallelismPlan(tp=tp, cp=cp)
    found = check(plan, training(1, 2048), hybrid(), cluster(hardware, tp * cp), hardware)
    assert {rejection.rule for rejection in found} == broken


def test_fused_expert_kernels_are_for_gated_experts_and_overlap_for_transformer_layers() -> None:
    plain = software_of_model(MEGATRON_RECIPES_FUSED_EXPERTS, hybrid(gated_mlp=False))
    assert (plain.expert_passes, plain.expert_products) == (MEGATRON_RECIPES.expert_passes, "each")
    assert not plain.expert_overlap
    assert software_of_model(MEGATRON_RECIPES_FUSED_EXPERTS, dense_model()) == MEGATRON_RECIPES_FUSED_EXPERTS


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"recurrence": None}, "recurrence belongs to models"),
        ({"layers": 9}, "sorts hold 8 layers, the model 9"),
        ({"parallel_block": True}, "sorts say which layers are dense"),
        ({"experts": 4, "experts_per_token": 2, "moe_intermediate_size": 64}, "experts belong to models"),
        ({"sorts": (LayerSort(layers=8, recurrent=True, kv_heads=3),)}, "kv_heads 3 does not divide heads 16"),
    ],
)
def test_contradictory_sorts_are_refused(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        hybrid(**changes)


def sparse(**changes: object) -> ModelArchitecture:
    """Latent attention over the best 256 keys, chosen by 4 heads of 32."""
    latent = latent_model().model_dump(exclude={"name"}) | {"index_topk": 256, "index_heads": 4, "index_head_dim": 32}
    return ModelArchitecture.model_validate(latent | {"name": "sparse"} | changes)


def test_sparse_attention_computes_on_latents_of_chosen_keys_and_scores_all() -> None:
    graph = graph_of(sparse())
    pairs = 256 * 2048 - 256 * 255 / 2
    assert named(graph, "window_attention").flop[0] == pytest.approx(2 * pairs * 16 * (256 + 16 + 256))
    assert named(graph, "index_scores").flop[0] == pytest.approx(2 * (2048 * 2049 / 2) * 4 * 32)
    assert not any(operator.name == "attention" for operator in graph.forward)


def test_the_indexer_keeps_one_more_key_for_each_token() -> None:
    held = [kv_bytes_per_request(one, ONE, BF16, whole(one).whole, 100.0)[0] for one in (sparse(), latent_model())]
    assert held[0] - held[1] == 8 * 100 * 32 * 2


def test_indexer_weights_are_the_models() -> None:
    dense, _ = stage_parameters(graph_of(sparse()).forward, whole(sparse()).whole, 0 * ONE)
    assert dense[0] == sparse().parameters


@pytest.mark.parametrize("changes", [{"index_heads": 0}, {"index_topk": 0}, {"index_head_dim": 0}])
def test_half_an_indexer_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="sparse attention needs"):
        sparse(**changes)


@pytest.mark.parametrize(
    "model", [dense_model(attention_gate=True), sparse(attention_gate=True)], ids=["heads", "latent"]
)
def test_a_gate_on_attention_is_a_projection_as_wide_as_its_result(model: ModelArchitecture) -> None:
    plain = model.model_copy(update={"attention_gate": False})
    assert model.parameters - plain.parameters == 8 * 1024 * model.heads * model.value_dim
    dense, _ = stage_parameters(graph_of(model).forward, whole(model).whole, 0 * ONE)
    assert dense[0] == model.parameters


MIXERS = {
    "mamba1": Recurrence(kind="mamba1", heads=128, head_dim=1, groups=1, state_size=16, conv_kernel=4, step_rank=8),
    "gated_delta": Recurrence(kind="gated_delta", heads=8, head_dim=16, groups=4, state_size=32, conv_kernel=4),
    "kimi_delta": Recurrence(kind="kimi_delta", heads=8, head_dim=16, groups=8, state_size=16, conv_kernel=4),
    "lightning": Recurrence(kind="lightning", heads=8, head_dim=16, groups=8, state_size=16, chunk=256),
}


@pytest.mark.parametrize("kind", MIXERS)
def test_every_mixer_owns_its_weights_and_costs_more_backward_than_forward(kind: str) -> None:
    model = hybrid(recurrence=MIXERS[kind])
    graph = graph_of(model)
    dense, _ = stage_parameters(graph.forward, whole(model).whole, 0 * ONE)
    assert dense[0] == model.parameters
    ahead, back = named(graph, "recurrence"), named(graph, "recurrence", "backward")
    assert back.flop[0] == pytest.approx(2.5 * ahead.flop[0])
