"""One measured serving point corrects the projections of its engine's neighbours."""

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from projector.anchor.serving_point import (
    INTERVALS,
    LAYOUT,
    LENGTHS,
    LOAD,
    MeasuredServing,
    anchored_serving,
    serving_point,
)
from projector.batch_projection import ProjectionBatch
from projector.catalog import architecture, chip
from projector.errors import InvalidDescription
from projector.project import project_many
from projector.ranking.rank import rank_space
from projector.ranking.task import Task
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import WorkloadSpec

CHAT = WorkloadSpec(phase="serving", input_len=1024, output_len=512, concurrency=64)
RAN = ParallelismPlan(phase="serving", tp=8, max_num_seqs=256)
H100 = chip("h100-sxm")
CLUSTER = ClusterSpec(chip="h100-sxm", chips=8)


def projected(*plans: ParallelismPlan, workload: WorkloadSpec = CHAT) -> ProjectionBatch:
    return project_many(PlanBatch.from_plans(plans), workload, architecture("llama-3.1-70b"), CLUSTER, H100)


def measured(tpot: float, ttft: float | None = None, rate: float | None = None) -> MeasuredServing:
    """So many times what is projected of RAN."""
    one = projected(RAN)[0]
    assert one.tpot_s is not None
    assert one.ttft_s is not None
    assert one.decode_tokens_per_s_per_chip is not None
    return MeasuredServing(
        tpot_ms=tpot * one.tpot_s * 1e3,
        ttft_ms=None if ttft is None else ttft * one.ttft_s * 1e3,
        output_tokens_per_s_per_chip=None if rate is None else rate * one.decode_tokens_per_s_per_chip,
    )


def test_the_measured_plan_itself_is_as_measured() -> None:
    seen = measured(1.2, 1.5, 0.8)
    one = anchored_serving(projected(RAN), serving_point(projected(RAN), CHAT, seen), CHAT)[0]
    assert one.tpot_s == pytest.approx(seen.tpot_ms / 1e3)
    assert one.ttft_s == pytest.approx(seen.ttft_ms / 1e3)
    assert one.decode_tokens_per_s_per_chip == pytest.approx(seen.output_tokens_per_s_per_chip)
    assert one.step_time_s == pytest.approx(1.2 * projected(RAN)[0].step_time_s)
    assert one.breakdown.total_s == pytest.approx(one.step_time_s)
    corrected = anchored_serving(projected(RAN), serving_point(projected(RAN), CHAT, seen), CHAT)
    assert corrected.objective("itl_ms") == pytest.approx(seen.tpot_ms)
    assert corrected.objective("ttft_ms") == pytest.approx(seen.ttft_ms)
    assert corrected.objective("decode_throughput_tps_per_gpu") == pytest.approx(seen.output_tokens_per_s_per_chip)
    assert corrected.objective("request_latency_ms") == pytest.approx(1e3 * one.request_latency_s)
    assert corrected.objective("interactivity_tok_s_per_user") == pytest.approx(1 / one.tpot_s)


def test_a_measurement_that_agrees_changes_nothing() -> None:
    as_modelled = projected(RAN, RAN.model_copy(update={"tp": 4, "dp": 2}))
    same = anchored_serving(as_modelled, serving_point(projected(RAN), CHAT, measured(1.0, 1.0, 1.0)), CHAT)
    for name in ("tpot_s", "ttft_s", "request_latency_s", "decode_tokens_per_s_per_chip"):
        assert getattr(same.metrics, name) == pytest.approx(getattr(as_modelled.metrics, name))


def test_less_is_kept_the_further_a_neighbour_is() -> None:
    point = serving_point(projected(RAN), CHAT, measured(1.5))
    loads = [CHAT.model_copy(update={"concurrency": count}) for count in (64, 128, 512)]
    kept = []
    for load in loads:
        as_modelled = projected(RAN, workload=load)
        corrected = anchored_serving(as_modelled, point, load)
        kept.append(float(np.log(corrected.metrics.tpot_s / as_modelled.metrics.tpot_s)[0] / np.log(1.5)))
    assert kept == pytest.approx([1, 0.87, 0.87**3])
    other = RAN.model_copy(update={"tp": 4, "dp": 2})
    corrected = anchored_serving(projected(other), point, CHAT)
    assert float(np.log(corrected.metrics.tpot_s / projected(other).metrics.tpot_s)[0] / np.log(1.5)) == pytest.approx(
        0.7
    )


def test_the_interval_says_how_far_the_neighbour_is() -> None:
    point = serving_point(projected(RAN), CHAT, measured(1.5))
    longer = CHAT.model_copy(update={"output_len": 2048})
    other = RAN.model_copy(update={"tp": 4, "dp": 2})
    for plan, load, kind in ((RAN, CHAT, LOAD), (RAN, longer, LENGTHS), (other, CHAT, LAYOUT)):
        one = anchored_serving(projected(plan, workload=load), point, load)[0]
        assert one.step_time_interval_s.low == pytest.approx(INTERVALS[kind][0] * one.step_time_s)
        assert one.step_time_interval_s.high == pytest.approx(INTERVALS[kind][1] * one.step_time_s)


@pytest.mark.parametrize("changed", [{"weight_dtype": "fp8"}, {"fused_kernels": False}, {"cuda_graphs": False}])
def test_what_is_no_neighbour_stays_as_modelled(changed) -> None:
    other = RAN.model_copy(update=changed)
    corrected = anchored_serving(projected(other), serving_point(projected(RAN), CHAT, measured(2.0, 2.0, 0.9)), CHAT)
    assert corrected[0].tpot_s == projected(other)[0].tpot_s
    assert corrected[0].ttft_s == projected(other)[0].ttft_s
    assert corrected[0].step_time_interval_s.low == projected(other)[0].step_time_interval_s.low
    assert any("no neighbour" in text for text in corrected[0].assumptions)


def test_an_implausible_measurement_is_refused_and_an_implausible_start_is_told() -> None:
    with pytest.raises(InvalidDescription, match="9 times the projected one"):
        serving_point(projected(RAN), CHAT, measured(9.0))
    point = serving_point(projected(RAN), CHAT, measured(1.1, 1e4))
    assert point.ttft_ratio is None
    assert "is not carried" in point.told[0]
    assert point.told[0] in anchored_serving(projected(RAN), point, CHAT)[0].assumptions


def test_a_point_measured_at_a_rate_of_arrivals_is_refused() -> None:
    arriving = CHAT.model_copy(update={"request_rate_per_s": 2.0})
    with pytest.raises(InvalidDescription, match="requests in flight are not known"):
        serving_point(projected(RAN), arriving, measured(1.1))


def test_a_rate_alone_says_nothing() -> None:
    with pytest.raises(ValidationError, match="beside ttft_ms"):
        MeasuredServing(tpot_ms=20, output_tokens_per_s_per_chip=100)


def test_a_ranking_is_corrected_by_what_was_measured_of_the_current_plan() -> None:
    task = Task(CHAT, architecture("llama-3.1-70b"), CLUSTER, H100, current=RAN)
    found = rank_space(task.anchored(measured(1.3)))
    assert found.current is not None
    assert found.current.tpot_s == pytest.approx(1.3 * projected(RAN)[0].tpot_s)
    with pytest.raises(InvalidDescription, match="of no plan"):
        replace(task, current=None).anchored(measured(1.3))


def test_a_start_that_is_late_by_some_seconds_is_late_at_every_load_of_the_deployment() -> None:
    """Pools that shake hands, answers streamed in blocks: no ratio of the prefill explains it."""
    as_modelled = projected(RAN)
    modelled_s = as_modelled[0].ttft_s
    assert modelled_s is not None
    late = MeasuredServing(tpot_ms=as_modelled[0].tpot_s * 1e3, ttft_ms=(5.1 * modelled_s + 1.0) * 1e3)
    point = serving_point(as_modelled, CHAT, late)
    assert point.ttft_ratio is None
    assert point.late_s == pytest.approx(4.1 * modelled_s + 1.0)
    more = CHAT.model_copy(update={"concurrency": 512})
    corrected = anchored_serving(projected(RAN, workload=more), point, more)
    assert corrected[0].ttft_s == pytest.approx(projected(RAN, workload=more)[0].ttft_s + point.late_s)
    other = RAN.model_copy(update={"tp": 4, "dp": 2})
    assert anchored_serving(projected(other), point, CHAT)[0].ttft_s == projected(other)[0].ttft_s


def test_a_rate_of_arrivals_is_no_neighbour_of_requests_in_flight() -> None:
    arriving = CHAT.model_copy(update={"concurrency": None, "request_rate_per_s": 2.0})
    point = serving_point(projected(RAN), CHAT, measured(1.5, 1.5))
    modelled = projected(RAN, workload=arriving)
    corrected = anchored_serving(modelled, point, arriving)
    rate = corrected.metrics.decode_tokens_per_s_per_chip
    assert rate is not None
    assert 8 * rate[0] == pytest.approx(2.0 * 512)
    assert corrected[0].tpot_s == modelled[0].tpot_s
