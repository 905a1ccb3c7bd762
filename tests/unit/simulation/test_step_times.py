"""The tables of step times against the cost model they are made of, and their sums in closed form."""

import numpy as np
import pytest

from projector.catalog import architecture, chip
from projector.simulation.step_times import Ranges, StepTimes, grid
from projector.simulation.tabulate import Deployment, step_times, swept
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan

CASES = {
    "dense, TP 8": ("llama-3.1-70b", "h200", {"tp": 8}),
    "dense, one chip": ("llama-3.1-8b", "h100", {"weight_dtype": "fp8"}),
    "stages": ("llama-3.1-70b", "h100", {"tp": 4, "pp": 2}),
    "experts, attention data parallel": (
        "deepseek-v3",
        "h200",
        {"dp": 8, "attention_dp": 8, "ep": 8, "weight_dtype": "fp8"},
    ),
    "windows": ("gpt-oss-120b", "mi355x", {"tp": 2}),
    "eager": ("llama-3.1-70b", "h200", {"tp": 8, "cuda_graphs": False}),
    "graphs in pieces": ("llama-3.1-8b", "h200", {"cuda_graph_mode": "piecewise"}),
    "TPU": ("llama-3.1-8b", "v6e", {"tp": 4}),
}
RANGES = Ranges(most_decoding=512, least_context=100, most_context=20000, most_tokens=4096, least_prompt=100)


@pytest.mark.parametrize("case", CASES)
def test_the_table_is_within_a_per_cent_of_the_cost_model(case: str) -> None:
    name, chip_name, fields = CASES[case]
    plan = ParallelismPlan.model_validate({"phase": "serving"} | fields)
    model, hardware = architecture(name), chip(chip_name)
    cluster = ClusterSpec(chip=hardware.id, chips=max(plan.devices // hardware.devices_per_chip, 1))
    of = Deployment(plan, model, cluster, hardware)
    table = step_times(of, RANGES)
    random = np.random.default_rng(0)
    count = 500
    decoding = np.floor(np.exp(random.uniform(0, np.log(512), count)))
    context = np.exp(random.uniform(np.log(100), np.log(20000), count))
    tokens = np.exp(random.uniform(0, np.log(4096), count)).round()
    prompt = np.exp(random.uniform(np.log(100), np.log(40000), count))
    exact_s = swept(of, decoding, context).seconds
    found_s = [table.decode(int(n), c) for n, c in zip(decoding, context, strict=True)]
    assert found_s == pytest.approx(exact_s, rel=0.01)
    decoding[:50] = 0
    exact_s = swept(of, decoding, context, tokens, prompt).seconds
    found_s = [table.mixed(int(n), c, t, p) for n, c, t, p in zip(decoding, context, tokens, prompt, strict=True)]
    assert found_s == pytest.approx(exact_s, rel=0.01)


def test_many_steps_take_the_sum_of_each() -> None:
    context = np.array([10.0, 40.0, 45.0, 200.0])
    seconds = np.array([[0.0, 0.0, 0.0, 0.0], [1.0, 1.5, 4.0, 5.0], [2.0, 2.0, 9.0, 10.0]])
    table = StepTimes(
        np.array([0.0, 1.0, 2.0]), context, context, context[:2], context[:2], seconds, np.ones((3, 4, 2, 2))
    )
    for start, growth, steps in ((10, 1, 100), (38.5, 2.5, 7), (40, 1, 5), (150, 1, 300), (5, 1, 50), (20, 0, 9)):
        each = sum(table.decode(2, start + i * growth) for i in range(steps))
        assert table.decode_many(2, start, growth, steps) == pytest.approx(each, rel=1e-12)


def test_no_step_takes_less_than_the_host_does() -> None:
    context, seconds = np.array([10.0, 110.0]), np.array([[0.0, 0.0], [1.0, 3.0], [2.0, 4.0]])
    table = StepTimes(
        np.array([0.0, 1.0, 2.0]), context, context, context, context, seconds, np.ones((3, 2, 2, 2)), 2.0, (7.0, 5.0)
    )
    assert [table.decode(1, at) for at in (10, 60, 85, 110)] == [2.0, 2.0, 2.5, 3.0]
    each = sum(table.decode(1, 10 + i) for i in range(100))
    assert table.decode_many(1, 10, 1, 100) == pytest.approx(each, rel=1e-12)
    assert (table.mixed(0, 10, 10, 10), table.mixed(1, 10, 10, 10)) == (7.0, 5.0)


def test_grids_are_no_coarser_than_they_say() -> None:
    points = grid(1.0, 512.0, 1.15, (128,))
    assert (points[0], points[-1]) == (1, 512)
    assert 128 in points
    steps = np.diff(points)
    assert np.all((steps <= 0.15 * points[:-1] + 1e-9) | (steps <= 1.0))
