"""Pipeline schedules and stages against hand arithmetic."""

import numpy as np
import pytest
from projector_examples import dense_model, moe_model

from projector.cost.layer_split import Split, chunk_lengths
from projector.cost.pipeline import PipelineTime, StageSeconds, longest_path_s, over_busiest
from projector.cost.pipeline_stages import Pipeline, Run, pipeline
from projector.cost.stages import in_flight, stages
from projector.specs.architecture import ModelArchitecture
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch


def column(*values: float) -> np.ndarray:  # type: ignore[type-arg]
    return np.array(values)


def of_length(seconds: float, chunks: int = 1) -> StageSeconds:
    """A third of it forward; chunks alike."""
    ahead_s, back_s = column(seconds / 3), column(2 * seconds / 3)
    parts = (ahead_s / chunks, back_s / chunks)
    return StageSeconds(ahead_s, back_s, column(0.0), *parts, *parts, column(0.0), column(0.0))


def time_of(lengths: dict[float, int], micro_batches: int, chunks: int = 1) -> PipelineTime:
    """lengths: seconds of a micro-batch -> how many stages of that length follow each other."""
    runs = [Run(np.array([kind]), column(float(count))) for kind, count in enumerate(lengths.values())]
    kinds = [of_length(seconds, chunks) for seconds in lengths]
    sizes = [column(float(size)) for size in (sum(lengths.values()), chunks, micro_batches)]
    return over_busiest([kind.total_s for kind in kinds], longest_path_s(kinds, runs, *sizes), sizes[-1])


def test_1f1b_bubble_is_p_minus_1_slots() -> None:
    # 4 stages of 1 s, 8 micro-batches: 8 s of work, 3 s to fill and drain
    found = time_of({1.0: 4}, 8)
    assert found.total_s[0] == pytest.approx(11.0)
    assert found.bubble_s[0] == pytest.approx(3.0)


def test_interleaving_divides_the_bubble_by_the_chunks() -> None:
    assert time_of({1.0: 4}, 8, chunks=2).bubble_s[0] == pytest.approx(1.5)


def test_slowest_stage_sets_the_pace_and_the_others_are_paid_once() -> None:
    # three stages of 1 s and a last one of 1.5 s with the head: 8 x 1.5 + 3
    found = time_of({1.0: 3, 1.5: 1}, 8)
    assert found.total_s[0] == pytest.approx(15.0)
    assert found.busiest[0] == 1


def test_a_slow_first_stage_works_while_it_waits() -> None:
    # 8 x 1.5, and the 3 s to the end and back beside three forward (0.5 s) or three backward passes (1 s): 1.5 + 0
    assert time_of({1.5: 1, 1.0: 3}, 8).total_s[0] == pytest.approx(13.5)


def test_one_stage_has_no_bubble() -> None:
    assert time_of({2.0: 1}, 8).bubble_s[0] == 0.0


def line_of(model: ModelArchitecture, **plan: object) -> Pipeline:
    batch = PlanBatch.from_plans([ParallelismPlan(**plan)])
    pp, vp = batch.pp.astype(float), batch.vp.astype(float)
    return pipeline(batch, model, ("layer", "dense_layer", "moe_layer", "embedding", "head"), vp, pp)


def lengths_of(line: Pipeline) -> list[tuple[int, float, int]]:
    """(stages, layers of each, dense ones among them) of each run."""
    kinds = [line.kinds[int(run.kind[0])] for run in line.runs]
    return [
        (int(run.length[0]), kind.layers()[0], int(kind.places["dense_layer"][0]))
        for run, kind in zip(line.runs, kinds, strict=True)
    ]


def test_leading_dense_layers_are_on_the_first_stage() -> None:
    # 61 layers, 3 of them dense, as DeepSeek-V3's: 16 on the first of 4 stages, 15 on the others
    line = line_of(moe_model(layers=61, first_dense_layers=3), pp=4)
    assert lengths_of(line) == [(1, 16, 3), (2, 15, 0), (1, 15, 0)]


def test_first_and_last_stage_may_have_their_own_length() -> None:
    line = line_of(moe_model(layers=61, first_dense_layers=3), pp=16, first_stage_layers=3, last_stage_layers=2)
    assert lengths_of(line) == [(1, 3, 3), (14, 4, 0), (1, 2, 0)]


def test_embedding_and_head_stand_at_the_ends_of_the_pipeline() -> None:
    line = line_of(dense_model(), pp=4)
    ends = [(kind.places["embedding"][0], kind.places["head"][0]) for kind in line.kinds]
    assert ends == [(1, 0), (0, 0), (0, 1)]


def test_experts_in_every_other_layer_alternate_over_stages_of_odd_length() -> None:
    line = line_of(moe_model(layers=12, first_dense_layers=0, moe_every_layers=2), pp=4)
    assert lengths_of(line) == [(1, 3, 2), (1, 3, 1), (1, 3, 2), (1, 3, 1)]


def test_chunks_that_do_not_divide_are_longer_first() -> None:
    # 61 layers over 16 chunks: 13 of 4 and 3 of 3
    assert chunk_lengths(61, Split(4, 4)).tolist() == [[4, 4, 4, 4]] * 3 + [[4, 3, 3, 3]]


def test_plans_of_a_batch_have_the_stages_they_have_alone() -> None:
    model = dense_model(layers=10)
    plans = [ParallelismPlan(pp=pp, first_stage_layers=first) for pp, first in ((1, 0), (4, 0), (4, 1), (2, 0))]
    batch = PlanBatch.from_plans(plans)
    line = pipeline(batch, model, ("layer", "embedding", "head"), np.ones(4), batch.pp.astype(float))
    totals = sum(run.length * np.choose(run.kind, [kind.layers() for kind in line.kinds]) for run in line.runs)
    assert totals.tolist() == [10, 10, 10, 10]


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


def test_zero_bubble_puts_weight_gradients_off_by_as_many_as_a_device_is_down_the_line() -> None:
    line = line_of(dense_model(), pp=4, schedule="zero_bubble", grad_accum=8)
    held = {(kind.in_flight[0], kind.put_off[0]) for kind in line.devices}
    # first, middle from and to, last; at most p in all
    assert held == {(4, 0), (3, 1), (2, 2), (1, 3)}


def test_two_way_devices_hold_two_stages_and_one_micro_batch_more() -> None:
    line = line_of(dense_model(), pp=4, schedule="dualpipe", grad_accum=8)
    outer, inner = line.devices
    assert (outer.layers()[0], outer.places["embedding"][0], outer.places["head"][0]) == (4, 1, 1)
    assert (inner.layers()[0], inner.places["embedding"][0]) == (4, 0)
    # 5 micro-batches, each of one of the two stages
    assert outer.in_flight[0] == 2.5


def test_devices_that_put_gradients_off_are_none_of_the_other_plans_of_a_batch() -> None:
    plans = [ParallelismPlan(pp=4, schedule=one, grad_accum=8) for one in ("dualpipe", "zero_bubble", "1f1b")]
    batch, places = PlanBatch.from_plans(plans), ("layer", "embedding", "head")
    line = pipeline(batch, dense_model(), places, np.ones(3), batch.pp.astype(float))
    for row, plan in enumerate(plans):
        alone = pipeline(PlanBatch.from_plans([plan]), dense_model(), places, np.ones(1), np.full(1, 4.0))
        held = {(device.layers()[row], device.in_flight[row]) for device in line.devices}
        assert held == {(device.layers()[0], device.in_flight[0]) for device in alone.devices}
