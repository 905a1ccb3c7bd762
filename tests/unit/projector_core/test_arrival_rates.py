"""Projections of requests that arrive at a rate: limits, Little's law, and the closed loop of the same throughput."""

import numpy as np
import pytest
from projector_examples import cluster, dense_model, serving, switched_chip

from projector.batch_projection import ProjectionBatch
from projector.breakdown import Projection
from projector.errors import InvalidDescription
from projector.project import project, project_many
from projector.specs.objective import Slo
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.serving_stack import ServingStack
from projector.specs.workload import WorkloadSpec

BARE = ServingStack(name="bare", step_s=0.0, request_s=0.0, admission_steps=0.0)


def engine(**changes: object) -> ParallelismPlan:
    return ParallelismPlan.model_validate({"phase": "serving"} | changes)


def arriving(rate_per_s: float, arrivals: str = "poisson", **changes: object) -> WorkloadSpec:
    load = {"input_len": 1024, "output_len": 256, "request_rate_per_s": rate_per_s, "arrivals": arrivals}
    return WorkloadSpec.model_validate({"phase": "serving"} | load | changes)


def projected(plan: ParallelismPlan, load: WorkloadSpec) -> Projection:
    hardware = switched_chip()
    return project(plan, load, dense_model(), cluster(hardware, plan.devices), hardware, stack=BARE)


def both(plans: list[ParallelismPlan], load: WorkloadSpec) -> ProjectionBatch:
    hardware = switched_chip()
    on = cluster(hardware, plans[0].devices)
    return project_many(PlanBatch.from_plans(plans), load, dense_model(), on, hardware, stack=BARE)


def figures(found: Projection) -> tuple[float, float, float]:
    assert found.ttft_s is not None
    assert found.tpot_s is not None
    assert found.request_latency_s is not None
    return found.ttft_s, found.tpot_s, found.request_latency_s


def closed_rate(plan: ParallelismPlan, concurrency: int) -> float:
    return concurrency / figures(projected(plan, serving(concurrency, output_len=256)))[2]


def test_rare_requests_are_alone() -> None:
    lone = figures(projected(engine(), serving(1, output_len=256)))
    assert figures(projected(engine(), arriving(0.01, "deterministic"))) == pytest.approx(lone)
    assert figures(projected(engine(), arriving(1e-4))) == pytest.approx(lone, rel=1e-3)


@pytest.mark.parametrize("concurrency", [4, 16, 48])
def test_arrivals_at_the_throughput_of_a_closed_loop_keep_as_many_in_flight(concurrency: int) -> None:
    plan = engine()
    rate = closed_rate(plan, concurrency)
    closed = figures(projected(plan, serving(concurrency, output_len=256)))
    spaced = figures(projected(plan, arriving(rate, "deterministic")))
    assert rate * spaced[2] == pytest.approx(concurrency, rel=0.03)
    assert spaced[1] == pytest.approx(closed[1], rel=0.03)
    # who arrives at any moment waits for the rest of a step, who returns at the end of one does not
    assert 0 < spaced[0] - closed[0] < 0.55 * spaced[1]


def test_throughput_is_the_rate_while_the_plan_keeps_up() -> None:
    found = projected(engine(dp=2), arriving(20))
    assert found.decode_tokens_per_s_per_chip == pytest.approx(20 * 256 / 2)
    assert found.rejections == ()


def test_higher_rate_never_lowers_a_latency() -> None:
    top = closed_rate(engine(), 64)
    for arrivals in ("poisson", "deterministic"):
        found = [figures(projected(engine(), arriving(top * share, arrivals))) for share in (0.1, 0.3, 0.6, 0.9, 0.97)]
        for latencies in zip(*found, strict=True):
            assert list(latencies) == sorted(latencies)


def test_evenly_spaced_requests_wait_less_than_random_ones() -> None:
    top = closed_rate(engine(), 64)
    for share in (0.2, 0.6, 0.95):
        random, spaced = (figures(projected(engine(), arriving(top * share, a))) for a in ("poisson", "deterministic"))
        assert spaced[0] < random[0]
        assert spaced[2] < random[2]


def test_engines_that_share_the_rate_are_as_one_with_its_part() -> None:
    assert figures(projected(engine(dp=4), arriving(40))) == pytest.approx(figures(projected(engine(), arriving(10))))


def test_rate_above_the_capacity_is_refused_and_not_an_error() -> None:
    few, many = both([engine(max_num_seqs=2), engine(max_num_seqs=64)], arriving(60))
    assert many.rejections == ()
    assert few.ttft_s is None
    assert few.decode_tokens_per_s_per_chip is None
    assert few.fit == "fits"
    (refusal,) = few.rejections
    assert refusal.rule == "request_rate_per_s"
    assert refusal.text.startswith("arrival rate 60.0 requests/s > ")
    assert refusal.limit < 60


def test_plan_that_does_not_keep_up_meets_no_budget() -> None:
    found = both([engine(max_num_seqs=2), engine(max_num_seqs=64)], arriving(60))
    assert found.meets(Slo()).tolist() == [False, True]
    assert [len(missed) for missed in found.slo_misses(Slo(ttft_ms=1e6))] == [1, 0]
    assert found.overshoot(Slo())[0] > 1


def test_capacity_is_the_throughput_with_every_seat_taken() -> None:
    plan = engine(max_num_seqs=8)
    top = closed_rate(plan, 8)
    assert projected(plan, arriving(0.98 * top)).rejections == ()
    (refusal,) = projected(plan, arriving(1.02 * top)).rejections
    assert refusal.limit == pytest.approx(top)


def test_concurrency_beside_a_rate_is_the_most_that_run() -> None:
    free, held = (projected(engine(), arriving(60, concurrency=c)) for c in (None, 2))
    assert free.rejections == ()
    assert held.rejections[0].rule == "request_rate_per_s"


def test_one_plan_is_projected_as_in_a_batch() -> None:
    plans = [engine(max_num_seqs=n) for n in (2, 8, 64)]
    found = both(plans, arriving(30))
    alone = [projected(plan, arriving(30)) for plan in plans]
    for one, other in zip(found, alone, strict=True):
        assert one == other
    assert np.isfinite(found.step_time_s).all()


def test_arrivals_say_how_a_rate_comes() -> None:
    assert figures(projected(engine(), arriving(30))) == figures(
        projected(engine(), WorkloadSpec(phase="serving", input_len=1024, output_len=256, request_rate_per_s=30))
    )
    for wrong in ({"arrivals": "closed"}, {"requests_per_slot": 10.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            arriving(1.0, **wrong)
    with pytest.raises(ValueError, match="state request_rate_per_s"):
        WorkloadSpec(phase="serving", input_len=8, output_len=8, concurrency=1, arrivals="poisson")


def test_load_without_concurrency_and_rate_is_incomplete() -> None:
    with pytest.raises(InvalidDescription, match="concurrency"):
        projected(engine(), WorkloadSpec(phase="serving", input_len=8, output_len=8))
