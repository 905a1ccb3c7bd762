"""Every lever: one file, one place in LEVERS, known fields, a sentence with the inequality that decides."""

from importlib import import_module
from pkgutil import iter_modules
from typing import get_args

import pytest

import projector.levers as package
from projector.levers import LEVERS, changed_levers, find_lever, levers_for
from projector.specs.bottleneck import CAUSES
from projector.specs.plan import ParallelismPlan, Phase

EACH = pytest.mark.parametrize("lever", LEVERS, ids=lambda lever: lever.name)
NAMES = (
    "tensor_parallelism", "pipeline_parallelism", "data_parallelism", "fsdp", "context_parallelism",
    "expert_parallelism", "recompute", "micro_batch", "precision", "overlap", "replicas", "batching",
    "chunked_prefill", "kv_cache_dtype", "weight_dtype", "attention_dp", "cuda_graphs",
    "expert_dtype", "speculation", "disaggregation", "kv_transfer", "token_budget", "kv_pool", "kv_blocks",
    "attention_backend", "tp_all_reduce", "quick_reduce", "fused_norm", "fused_kernels", "expert_exchange",
    "redundant_experts",
)  # fmt: skip
NO_LEVER = {"copies", "unknown"}


def test_the_agreed_names_and_no_other():
    assert sorted(lever.name for lever in LEVERS) == sorted(NAMES)


def test_every_file_has_its_place_in_the_tuple():
    files = {module.name for module in iter_modules(package.__path__)} - {"lever"}
    assert {import_module(f"projector.levers.{name}").LEVER for name in files} == set(LEVERS)


@EACH
def test_a_file_is_named_for_its_lever(lever):
    assert import_module(f"projector.levers.{lever.name}").LEVER is lever
    assert find_lever(lever.name) is lever


@EACH
def test_fields_are_plan_fields_of_its_phases(lever):
    assert set(lever.fields) <= set(ParallelismPlan.model_fields)
    assert all(hasattr(ParallelismPlan(), name) for name in lever.attributes)
    assert set(lever.phases) <= set(get_args(Phase))
    assert set(lever.relieves) <= set(CAUSES) - NO_LEVER


@EACH
def test_the_mechanism_is_one_sentence_with_an_inequality(lever):
    assert lever.mechanism.endswith(".")
    assert lever.summary.endswith(".")
    words = ("<", ">", "below", "smaller", "less time", "shorter", "exceeds", "outlasts", "longer")
    assert any(word in lever.mechanism for word in words)


@EACH
def test_numerics_are_told(lever):
    lossy = {"compute_dtype", "weight_dtype", "kv_cache_dtype", "expert_dtype", "quick_reduce"}
    assert lever.numerics == bool(lossy & set(lever.fields))


@pytest.mark.parametrize("cause", sorted(set(CAUSES) - NO_LEVER))
def test_every_cause_has_a_lever(cause):
    assert levers_for(cause, "training") or levers_for(cause, "serving")


def test_every_plan_field_belongs_to_a_lever():
    moved = {field for lever in LEVERS for field in lever.fields}
    # read off runs and requests that state them; no plan is proposed with another value of one
    assert set(ParallelismPlan.model_fields) - moved == {
        "phase",
        "optimizer_shard",
        "optimizer",
        "offload_optimizer",
        "offload_activations",
    }


def test_swapping_replicas_for_attention_ranks_moves_one_lever():
    before = ParallelismPlan(phase="serving", tp=8)
    after = ParallelismPlan(phase="serving", dp=8, attention_dp=8)
    assert [lever.name for lever in changed_levers(before, after)] == ["tensor_parallelism", "attention_dp"]
