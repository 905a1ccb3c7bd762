"""Which catalogue model the shapes in a trace belong to."""

import pytest

from agents.planning.match_model import match_model
from projector.catalog import architectures
from traces.summary_types import ModelShapes

GPT_OSS = ModelShapes(hidden_size=2880, layers=36, vocab_shard=25136, heads_per_rank=8, experts=128)


def test_the_b200_serving_shapes_are_gpt_oss_under_tp_8():
    match, reason = match_model(GPT_OSS, 8, 8, architectures())
    assert match is not None, reason
    assert (match.architecture.name, match.tp) == ("gpt-oss-120b", 8)
    assert match.confidence > 0.95
    assert "25136 vocabulary rows a rank" in match.basis


def test_the_degree_is_found_when_no_group_says_it():
    match, _ = match_model(GPT_OSS, None, 16, architectures())
    assert match is not None
    assert match.tp == 8


@pytest.mark.parametrize(
    "change",
    [
        {"hidden_size": 2944},
        {"layers": 24},
        {"vocab_shard": 32000},
        {"heads_per_rank": 16},
        {"experts": 64},
        {"head_dim": 128},
    ],
)
def test_one_size_that_disagrees_means_no_match(change):
    match, reason = match_model(GPT_OSS.model_copy(update=change), 8, 8, architectures())
    assert match is None
    assert "no model of the catalogue" in reason


def test_a_padded_vocabulary_still_matches():
    llama = ModelShapes(hidden_size=4096, vocab_shard=16_064, heads_per_rank=4, layers=32, head_dim=128)
    match, reason = match_model(llama, 8, 8, architectures())
    assert match is not None, reason
    assert match.architecture.name == "llama-3.1-8b"


def test_models_of_equal_sizes_are_one_match():
    """Two releases that differ in name and context length cost the same; the match names both."""
    llama = next(model for model in architectures() if model.name == "llama-3.1-8b")
    older = llama.model_copy(update={"name": "older", "max_positions": 8192})
    shapes = ModelShapes(hidden_size=4096, vocab_shard=16_032, heads_per_rank=4, layers=32)
    match, _ = match_model(shapes, 8, 8, (older, llama))
    assert match is not None
    assert match.architecture.name == "llama-3.1-8b"
    assert match.basis.endswith("the sizes are also those of older")


def test_a_model_that_nothing_speaks_against_goes_first():
    """Two models of the catalogue share all but the MLP width."""
    shapes = ModelShapes(
        hidden_size=4096,
        layers=36,
        vocab_shard=151_936,
        heads_per_rank=32,
        kv_heads_per_rank=8,
        head_dim=128,
        intermediate_shard=12_288,
    )
    match, reason = match_model(shapes, 1, 1, architectures())
    assert match is not None, reason
    assert match.architecture.name == "qwen3-8b"


def test_sizes_that_fit_several_models_match_none():
    match, reason = match_model(ModelShapes(hidden_size=4096, head_dim=128), 1, 1, architectures())
    assert match is None
    assert reason.startswith("the sizes in the trace fit several models: ")


def test_layers_may_be_counted_twice_or_be_those_of_one_stage():
    twice, _ = match_model(GPT_OSS.model_copy(update={"layers": 72}), 8, 8, architectures())
    stage, _ = match_model(GPT_OSS.model_copy(update={"layers": 9}), 8, 32, architectures(), stages=4)
    assert twice is not None
    assert stage is not None


def test_kv_heads_that_disagree_cost_confidence_only():
    agreeing, _ = match_model(GPT_OSS, 8, 8, architectures())
    odd, _ = match_model(GPT_OSS.model_copy(update={"kv_heads_per_rank": 4}), 8, 8, architectures())
    assert agreeing is not None
    assert odd is not None
    assert odd.confidence < agreeing.confidence
    assert "against it: 4 KV heads a rank" in odd.basis


def test_without_a_hidden_size_nothing_is_matched():
    match, reason = match_model(ModelShapes(layers=36, experts=128), 8, 8, architectures())
    assert match is None
    assert reason == "the trace shows no hidden size"


def test_a_hidden_size_alone_is_no_evidence():
    match, _ = match_model(ModelShapes(hidden_size=2880), 8, 8, architectures())
    assert match is None


def test_a_size_the_trace_only_hints_at_matches_nothing():
    hinted = GPT_OSS.model_copy(update={"confidences": (("hidden_size", 0.4), ("layers", 0.4))})
    assert match_model(hinted, 8, 8, architectures()) == (None, "the trace shows no hidden size")


def test_experts_a_token_tell_models_apart():
    match, _ = match_model(GPT_OSS.model_copy(update={"experts_per_token": 4}), 8, 8, architectures())
    assert match is not None
    assert "4 experts a token" in match.basis
    other, _ = match_model(GPT_OSS.model_copy(update={"experts_per_token": 8}), 8, 8, architectures())
    assert other is None
