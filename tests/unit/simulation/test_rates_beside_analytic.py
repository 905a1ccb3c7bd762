"""Requests that arrive at a rate: means of the simulation beside the closed forms of the analytic model."""

import pytest

from projector.catalog import architecture, chip
from projector.project import project
from projector.simulation.simulate import simulate
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan
from projector.specs.serving_stack import ANY_ENGINE
from projector.specs.workload import WorkloadSpec

MODEL, CHIP = architecture("llama-3.1-8b"), chip("h100")
CLUSTER = ClusterSpec(chip=CHIP.id, chips=1)
BARE = ANY_ENGINE.model_copy(update={"request_s": 0.0, "admission_steps": 0.0})


@pytest.mark.parametrize("arrivals", ["poisson", "deterministic"])
@pytest.mark.parametrize(
    ("input_len", "chunk", "rate_per_s"),
    [
        pytest.param(1024, 8192, 4.0, id="few"),
        pytest.param(1024, 8192, 16.0, id="prompts share steps"),
        pytest.param(4096, 4096, 3.0, id="prompts fill steps"),
    ],
)
def test_means_at_a_rate_are_those_of_the_analytic_model(
    arrivals: str, input_len: int, chunk: int, rate_per_s: float
) -> None:
    plan = ParallelismPlan(phase="serving", max_num_seqs=256, chunked_prefill_tokens=chunk)
    sizes = {"input_len": input_len, "output_len": 256, "request_rate_per_s": rate_per_s, "arrivals": arrivals}
    workload = WorkloadSpec.model_validate({"phase": "serving"} | sizes)
    analytic = project(plan, workload, MODEL, CLUSTER, CHIP, stack=BARE)
    found = simulate(plan, workload, MODEL, CLUSTER, CHIP, stack=BARE, requests=1500, seed=1)
    assert not found.saturated
    assert found.tpot is not None
    assert analytic.ttft_s == pytest.approx(found.ttft.mean_s, rel=0.05)
    assert analytic.tpot_s == pytest.approx(found.tpot.mean_s, rel=0.05)
    assert analytic.request_latency_s == pytest.approx(found.request_latency.mean_s, rel=0.05)


def test_capacity_of_the_analytic_model_is_where_the_simulation_saturates() -> None:
    plan = ParallelismPlan(phase="serving", max_num_seqs=64)
    sizes = {"phase": "serving", "input_len": 1024, "output_len": 128, "arrivals": "deterministic"}
    refused = project(
        plan, WorkloadSpec.model_validate(sizes | {"request_rate_per_s": 1e3}), MODEL, CLUSTER, CHIP, stack=BARE
    ).rejections[0]
    below, above = (
        simulate(
            plan,
            WorkloadSpec.model_validate(sizes | {"request_rate_per_s": share * refused.limit}),
            MODEL,
            CLUSTER,
            CHIP,
            stack=BARE,
            requests=2000,
        )
        for share in (0.95, 1.2)
    )
    assert not below.saturated
    assert above.saturated
    assert above.requests_per_s == pytest.approx(refused.limit, rel=0.05)
