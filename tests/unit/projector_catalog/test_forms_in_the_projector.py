"""Forms the catalogue brought: latent attention, parallel blocks, chunked windows, dual chips, recalled figures."""

import numpy as np
import pytest

from projector.catalog import architecture, chip
from projector.cost.routes import routes
from projector.graph.groups import Degrees, groups
from projector.graph.serving_graph import StepWork, serving_graph
from projector.graph.training_graph import training_graph
from projector.project import project
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.software import CURRENT
from projector.specs.workload import WorkloadSpec

BF16 = np.array(["bf16"])
DEEPSEEK = architecture("deepseek-v3")
SCOUT = architecture("llama-4-scout")


def training(model, **degrees):
    batch = PlanBatch.from_plans([ParallelismPlan(**degrees)])
    return {operator.name: operator for operator in training_graph(batch, model, 4096, BF16, CURRENT).forward}


def serving(model, *, decoding=0.0, context=0.0, prompts=0.0, chunk=0.0, prompt=0.0, chunks=1.0, tp=1):
    batch = PlanBatch.from_plans([ParallelismPlan(phase="serving", tp=tp)])
    work = StepWork(*(np.array([value]) for value in (decoding, context, prompts, chunk, prompt, chunks)))
    return {operator.name: operator for operator in serving_graph(batch, model, BF16, work)}


def test_latent_projections_multiply_with_every_attention_weight():
    operators = training(DEEPSEEK)
    names = ("latent_down", "query_up", "key_value_up", "out_proj")
    assert sum(operators[name].flop[0] for name in names) == 2 * 4096 * DEEPSEEK.attention_parameters


def test_training_expands_latents_to_heads_of_192_and_128():
    pairs = 4096 * 4097 / 2
    assert training(DEEPSEEK)["attention"].flop[0] == 2 * pairs * 128 * (192 + 128)


def test_decoding_reads_one_latent_a_token_whatever_tp():
    for tp in (1, 8):
        attention = serving(DEEPSEEK, decoding=4.0, context=1000.0, tp=tp)["attention_1"]
        heads = 128 / tp
        queries_bytes = 4 * heads * (576 + 512) * 2
        assert attention.flop[0] == 2 * 4000 * heads * (576 + 512)
        assert attention.moved_bytes[0] == queries_bytes + 4000 * 576 * 2


def test_a_prefill_chunk_expands_the_chunks_before_it_again():
    """8192 tokens in four chunks: the mean chunk of 2048 finds (8192 - 2048) / 2 tokens cached."""
    whole = serving(DEEPSEEK, prompts=1.0, chunk=8192.0, prompt=8192.0)["key_value_up"]
    chunk = serving(DEEPSEEK, prompts=1.0, chunk=2048.0, prompt=8192.0, chunks=4.0)["key_value_up"]
    up = 2 * 512 * 128 * (128 + 128)
    assert whole.flop[0] == up * 8192
    assert chunk.flop[0] == up * (2048 + 3072)


def test_sequence_parallelism_gathers_latents_in_place_of_the_hidden_state():
    operators = training(DEEPSEEK, tp=4, sp=True)
    gather = operators["latent_gather"]
    assert gather.count[0] == 1
    assert gather.collective.payload_bytes[0] == 4096 * (1536 + 512 + 64) * 2
    assert operators["latent_down"].flop[0] == 2 * 4096 / 4 * 7168 * (1536 + 512 + 64)
    assert "attention_gather" not in operators


def test_a_parallel_block_has_one_norm_one_gather_and_one_reduction():
    model = architecture("falcon-180b")
    operators = training(model, tp=8, sp=True)
    assert {"attention_norm", "attention_gather", "mlp_reduce_scatter"} <= operators.keys()
    assert not {"mlp_norm", "mlp_gather", "attention_reduce_scatter"} & operators.keys()
    assert operators["qkv"].saved_bytes[0] == 4096 / 8 * 14848 * 2
    assert operators["mlp_up"].saved_bytes[0] == 0


def test_alibi_and_learned_positions_rotate_nothing():
    assert "rotary" not in training(architecture("mpt-7b"))
    assert "rotary" not in training(architecture("gpt3-175b"))
    assert "rotary" in training(architecture("qwen3-8b"))


def test_norms_behind_blocks_are_two_more_a_layer():
    operators = training(architecture("gemma-2-9b"))
    assert {"attention_post_norm", "mlp_post_norm"} <= operators.keys()


@pytest.mark.parametrize(("context", "seen"), [(6000.0, 6000.0), (8192.0, 8192.0), (20000.0, 4096.0)])
def test_a_chunked_window_holds_the_whole_first_chunk_and_half_of_a_later_one(context, seen):
    operators = serving(SCOUT, decoding=1.0, context=context)
    assert operators["window_attention_1"].flop[0] == 4 * seen * SCOUT.heads * SCOUT.head_dim
    assert operators["attention_1"].flop[0] == 4 * context * SCOUT.heads * SCOUT.head_dim


def test_a_chunked_prompt_attends_inside_its_chunks():
    pairs = 16384 * (8192 + 1) / 2
    operators = serving(SCOUT, prompts=1.0, chunk=16384.0, prompt=16384.0)
    assert operators["window_attention"].flop[0] == 4 * pairs * SCOUT.heads * SCOUT.head_dim


@pytest.mark.parametrize(("devices", "bytes_per_s"), [(2, 350e9), (4, 350e9 / 7 / 2), (16, 350e9 / 2)])
def test_the_dies_of_one_module_do_not_share_a_mesh_link(devices, bytes_per_s):
    """MI250X, two dies a module, seven links of 50 GB/s: two modules have one of them, shared by their dies."""
    batch = PlanBatch.from_plans([ParallelismPlan(tp=devices)])
    cluster = ClusterSpec(chip="mi250x", chips=8)
    route = routes(groups(Degrees.of(batch)), cluster, chip("mi250x"))["tp"]
    assert route.inner_bytes_per_s[0] == pytest.approx(0.7 * bytes_per_s)


def test_recalled_figures_and_assumed_efficiencies_reach_the_projection():
    plan, workload = ParallelismPlan(dp=8), WorkloadSpec(seq_len=2048, global_batch=8)
    said = project(plan, workload, architecture("llama-3.2-1b"), ClusterSpec(chip="h800", chips=8), chip("h800"))
    text = " ".join(said.assumptions)
    assert "the sizes of llama-3.2-1b were recalled, not re-read" in text
    assert "figures of h800 that were recalled, not re-read: peak_flop_per_s.bf16" in text
    assert "no kernel was timed on h800 by itself: its efficiencies are assumed" in text
    assert "tdp_w" not in text
    clean = project(plan, workload, architecture("qwen3-0.6b"), ClusterSpec(chip="h100", chips=8), chip("h100"))
    assert not any("recalled" in line or "assumed:" in line for line in clean.assumptions)
