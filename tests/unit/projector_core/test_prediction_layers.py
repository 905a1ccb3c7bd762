"""Multi-token prediction: what the layers cost a stack that trains them."""

import numpy as np
import pytest
from projector_examples import cluster, dense_model, moe_model, switched_chip, training
from pydantic import ValidationError

from projector.cost.memory import stage_parameters
from projector.cost.stages import Stage
from projector.graph.training_graph import training_graph
from projector.model_flop import model_flop_per_token
from projector.project import project
from projector.specs.architecture import ModelArchitecture
from projector.specs.layer_sort import LayerSort
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.recurrence import Recurrence
from projector.specs.software import CURRENT

TRAINS = CURRENT.model_copy(update={"trains_mtp": True})


def with_prediction(model: ModelArchitecture, layers: int = 1) -> ModelArchitecture:
    return model.model_copy(update={"trained_mtp_layers": layers})


@pytest.mark.parametrize("model", [dense_model(), moe_model()], ids=["dense", "experts"])
def test_a_prediction_layer_is_a_layer_and_a_projection_of_two_states_to_one(model: ModelArchitecture) -> None:
    mlp = model.moe_block_parameters if model.is_moe else model.dense_mlp_parameters
    norms = 5 * 1024
    added = with_prediction(model, 2).parameters - model.parameters
    assert added == 2 * (model.attention_parameters + mlp + 2 * 1024 * 1024 + norms)


@pytest.mark.parametrize("model", [dense_model(), moe_model()], ids=["dense", "experts"])
def test_operators_own_the_prediction_layers_weights(model: ModelArchitecture) -> None:
    trained = with_prediction(model, 2)
    graph = training_graph(PlanBatch.from_plans([ParallelismPlan()]), trained, 2048, np.array(["bf16"]), CURRENT)
    added = {"mtp_layer", "mtp_head"}
    behind = [operator for operator in graph.forward if operator.place in added]
    dense, expert = stage_parameters(behind, Stage(dict.fromkeys(added, np.ones(1)), np.ones(1)), np.zeros(1))
    assert dense[0] + expert[0] == trained.parameters - model.parameters


def test_model_flop_gain_a_layer_and_a_vocabulary_product() -> None:
    model = dense_model()
    layer = model.attention_parameters + model.dense_mlp_parameters + 2 * 1024 * 1024
    added = model_flop_per_token(with_prediction(model), 2048) - model_flop_per_token(model, 2048)
    assert added == pytest.approx(6 * (layer + 32000 * 1024) + 12 * 1024 * 2048)


def test_a_stack_that_trains_them_takes_longer_by_about_their_flop_and_says_when_they_are_left_out() -> None:
    model, hardware = dense_model(mtp_layers=1), switched_chip()
    without, trained = (
        project(
            ParallelismPlan(), training(1, 2048), model, cluster(hardware, 1), hardware, software=software
        )
        for software in (CURRENT, TRAINS)
    )  # fmt: skip
    flop = [model_flop_per_token(one, 2048) for one in (model, with_prediction(model))]
    assert trained.step_time_s / without.step_time_s == pytest.approx(flop[1] / flop[0], rel=0.05)
    assert any("multi-token-prediction" in text for text in without.assumptions)
    assert not any("multi-token-prediction" in text for text in trained.assumptions)


def test_they_attend_to_all_in_a_model_of_windows_and_states() -> None:
    sorts = (
        LayerSort(layers=4, attention=False, recurrent=True, mlp="none"),
        LayerSort(layers=2, window=128, mlp="none"),
        LayerSort(layers=1, mlp="none"),
        LayerSort(layers=1, attention=False),
    )
    mixer = Recurrence(kind="mamba2", heads=8, head_dim=16, groups=2, state_size=32)
    (sort,) = dense_model(sorts=sorts, recurrence=mixer).prediction_layer().sorts
    assert (sort.layers, sort.attention, sort.window, sort.recurrent, sort.mlp) == (1, True, None, False, "dense")


def test_parallel_blocks_have_none() -> None:
    with pytest.raises(ValidationError, match="prediction layers of models with parallel blocks"):
        dense_model(trained_mtp_layers=1, parallel_block=True)
