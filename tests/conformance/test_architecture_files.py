"""Every model file: valid, sourced, and with the parameter count its publisher states."""

import json
import math
import re

import pytest

from projector.catalog import ARCHITECTURE_FOLDER, architecture, architectures, refused_models
from projector.errors import InvalidDescription

MODELS = pytest.mark.parametrize("model", architectures(), ids=lambda model: model.name)
PUBLISHED = pytest.mark.parametrize(
    "model", [model for model in architectures() if model.published_parameters], ids=lambda model: model.name
)
REFUSED = pytest.mark.parametrize("refused", refused_models(), ids=lambda refused: refused.name)
EXPECTED = {"llama-3.1-8b", "llama-3.1-70b", "gpt3-175b", "mixtral-8x7b", "gpt-oss-120b", "qwen3-8b"}
PRINTED_DIGITS = {"megatron-gpt-1.7b": 2, "megatron-gpt-3.6b": 2}


def test_the_first_models_are_there():
    assert {model.name for model in architectures()} >= EXPECTED
    assert any(model.is_moe for model in architectures())
    assert any(not model.is_moe for model in architectures())
    assert any(model.is_mla for model in architectures())


def test_at_least_sixty_counts_are_within_half_a_per_cent_of_a_published_one():
    held = [model for model in architectures() if model.published_parameters and model.name not in PRINTED_DIGITS]
    within = [model for model in held if abs(model.parameters / model.published_parameters - 1) <= 0.005]
    assert len(within) >= 60, sorted({model.name for model in held} - {model.name for model in within})


@PUBLISHED
def test_parameter_count_matches_the_published_one(model):
    """Within 1 %, or equal where the source rounds more coarsely than that."""
    digits = PRINTED_DIGITS.get(model.name)
    if digits is not None:
        assert rounded(model.parameters, digits) == model.published_parameters
    else:
        assert model.parameters == pytest.approx(model.published_parameters, rel=0.01)


def rounded(number: float, digits: int) -> float:
    return round(number, digits - 1 - math.floor(math.log10(number)))


@MODELS
def test_sources_and_date_are_stated(model):
    assert model.source.strip()
    assert (model.published_parameters is None) == (model.published_parameters_source is None)
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", model.retrieved)
    if "recalled" in model.source:
        assert model.unverified, "recalled numbers that do not say so"


@MODELS
def test_found_by_name_and_hub_id_in_any_case(model):
    assert architecture(model.name.upper()) is model
    if model.hf_id is not None:
        assert architecture(model.hf_id.lower()) is model


@MODELS
def test_file_names_are_lower_case_and_files_hold_no_defaults(model):
    assert model.name == model.name.lower()
    written = json.loads((ARCHITECTURE_FOLDER / f"{model.name}.json").read_text(encoding="utf-8"))
    assert {key for key, value in written.items() if type(model).model_fields[key].default == value} == set()


@REFUSED
def test_a_refused_model_is_refused_by_name_with_its_reason(refused):
    for name in filter(None, (refused.name.upper(), refused.hf_id)):
        with pytest.raises(InvalidDescription, match=re.escape(refused.reason)):
            architecture(name)


def test_no_model_is_both_modelled_and_refused():
    names = {model.name for model in architectures()} | {model.hf_id for model in architectures()}
    assert not names & ({model.name for model in refused_models()} | {m.hf_id for m in refused_models() if m.hf_id})
