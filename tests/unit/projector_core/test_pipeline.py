"""Pipeline schedules and stages against hand arithmetic."""

import numpy as np
import pytest
from projector_examples import dense_model, moe_model

from projector.cost.pipeline import pipeline_time
from projector.cost.stages import in_flight, stages


def column(*values: float) -> np.ndarray:  # type: ignore[type-arg]
    return np.array(values)


def test_1f1b_bubble_is_p_minus_1_slots() -> None:
    # 4 stages of 1 s, 8 micro-batches: 8 s of work, 3 s to fill and drain
    found = pipeline_time(column(1.0), column(1.0), column(4.0), column(8.0), column(1.0))
    assert found.total_s[0] == 11.0
    assert found.bubble_s[0] == 3.0


def test_interleaving_divides_the_bubble_by_the_chunks() -> None:
    found = pipeline_time(column(1.0), column(1.0), column(4.0), column(8.0), column(2.0))
    assert found.bubble_s[0] == 1.5


def test_slowest_stage_sets_the_pace_and_the_others_are_paid_once() -> None:
    # three stages of 1 s and a last one of 1.5 s with the head: 8 x 1.5 + 3
    found = pipeline_time(column(1.0), column(1.5), column(4.5), column(8.0), column(1.0))
    assert found.total_s[0] == 15.0
    assert found.last_is_slowest[0]


def test_one_stage_has_no_bubble() -> None:
    found = pipeline_time(column(2.0), column(2.0), column(2.0), column(8.0), column(1.0))
    assert found.bubble_s[0] == 0.0


@pytest.mark.parametrize(("rank", "held"), [(0, 4.0), (1, 3.0), (3, 1.0)])
def test_1f1b_holds_as_many_micro_batches_as_stages_follow(rank: int, held: float) -> None:
    assert in_flight(column(4.0), column(1.0), column(8.0), rank=column(float(rank)))[0] == held


def test_fewer_micro_batches_than_stages_are_all_in_flight() -> None:
    assert in_flight(column(8.0), column(1.0), column(2.0), rank=column(0.0))[0] == 2.0


def test_interleaved_first_stage_holds_the_factor_of_korthikanti() -> None:
    # L layers in flight times 1 + (p - 1) / (p v): in units of the stage's L / p layers, p times that
    p, v = 8.0, 3.0
    assert in_flight(column(p), column(v), column(64.0), rank=column(0.0))[0] == pytest.approx(
        p * (1 + (p - 1) / (p * v))
    )


def test_uneven_layers_leave_the_last_stage_the_short_one() -> None:
    one = column(1.0)
    found = stages(dense_model(layers=126), column(16.0), one, column(16.0), 0 * one)
    assert found.middle.places["layer"][0] == 8
    assert found.last.places["layer"][0] == 7
    assert found.whole.places["layer"][0] == 126


def test_head_and_embedding_stand_at_the_ends() -> None:
    one = column(1.0)
    found = stages(dense_model(), column(4.0), one, column(8.0), 0 * one)
    ends = [(s.places["embedding"][0], s.places["head"][0]) for s in (found.first, found.middle, found.last)]
    assert ends == [(1, 0), (0, 0), (0, 1)]


def test_stage_holds_at_most_the_models_moe_layers() -> None:
    one = column(1.0)
    found = stages(moe_model(layers=8, first_dense_layers=6), column(2.0), one, column(8.0), 0 * one)
    assert found.middle.places["moe_layer"][0] == 2
    assert found.middle.places["dense_layer"][0] == 2


@pytest.mark.parametrize(
    ("layers", "pp", "vp", "held"),
    [
        (126, 16.0, 8.0, (7, 8, 7)),  # Llama 3 405B: 128 with embedding and head
        (126, 2.0, 2.0, (63, 63, 63)),  # two ends and no middle
        (128, 16.0, 8.0, (8, 8, 8)),  # divides as it is
        (126, 16.0, 1.0, (8, 8, 7)),  # nothing is interleaved: an even split is not needed
    ],
)
def test_ends_of_the_model_may_count_as_layers(layers: int, pp: float, vp: float, held: tuple[float, ...]) -> None:
    one = column(1.0)
    found = stages(dense_model(layers=layers), column(pp), column(vp), column(16.0), 0 * one)
    assert tuple(stage.layers()[0] for stage in (found.first, found.middle, found.last)) == held
    assert found.whole.layers()[0] == layers
