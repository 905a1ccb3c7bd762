"""Rows that state only some of a model's sizes."""

import pytest

from agents.evaluation.architecture import architecture_of
from agents.evaluation.refusal import Refused
from projector.catalog import architecture

STATED = {
    "model_type": "gemma4_text", "num_hidden_layers": 60, "hidden_size": 5376, "num_attention_heads": 32,
    "num_key_value_heads": 16, "head_dim": 256, "intermediate_size": 21504, "vocab_size": 262144,
    "sliding_window": 1024, "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 10,
}  # fmt: skip


def test_sizes_a_row_lacks_are_those_of_the_catalogues_model_of_its_name():
    assert architecture_of(STATED, "gemma-4-31b", "test") is architecture("gemma-4-31b")


def test_a_row_that_disagrees_with_the_catalogue_is_refused_for_what_it_lacks():
    with pytest.raises(Refused, match="lacks attention_k_eq_v"):
        architecture_of(STATED | {"hidden_size": 5632}, "gemma-4-31b", "test")


def test_a_row_of_a_model_nobody_knows_is_refused_for_what_it_lacks():
    with pytest.raises(Refused, match="lacks attention_k_eq_v"):
        architecture_of(STATED, "gemma-4-13b", "test")
