"""What ranks show together in the answer: who waits for whom, and plans projected with the link that was measured."""

from typing import Any

import pytest
from planning_examples import summary_of, sure

from agents.advisors.rules import RulesAdvisor
from agents.findings import PlanResult
from agents.planning.analyzer import diagnose
from agents.planning.graph import run_plan
from agents.planning.measured_links import MeasuredLink, measured_links, with_measured_links
from agents.planning.rank_evidence import waiting_share
from agents.planning.state import NoKnowledge
from agents.request import PlanRequest
from projector import catalog
from projector.project import project
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import SCALE_LOSS
from projector.specs.plan import ParallelismPlan
from projector.specs.workload import WorkloadSpec
from traces.job_types import GroupSkew, LinkRate, RankLateness
from traces.summary_types import Implied, TraceSummary

H100 = catalog.chip("h100-sxm")
LLAMA = catalog.architecture("llama-3.1-8b")
CLUSTER = ClusterSpec(chip="h100-sxm", chips=32)
JOB = WorkloadSpec(phase="training", seq_len=8192, global_batch=256)
REQUEST: dict[str, Any] = {
    "workload": {"model": "llama-3.1-8b", "phase": "training", "seq_len": 8192, "global_batch": 256},
    "cluster": {"chip": "h100-sxm", "chips": 32},
    "current_plan": {"phase": "training", "dp": 32, "fsdp": 32, "zero_stage": 3, "micro_batch": 1, "grad_accum": 8},
}


def far_link(rate: float, first: int = 0, **more: Any) -> LinkRate:
    """A data-parallel group with one rank on each of four hosts."""
    fields: dict[str, Any] = {
        "group": f"dp_{first}",
        "axis": "dp",
        "ranks": tuple(range(first, 32, 8)),
        "group_size": 4,
        "kinds": ("all_gather",),
        "collectives": 20,
        "bus_bytes_per_s": rate,
        "best_bus_bytes_per_s": rate,
        "waiting_removed": True,
    }
    return LinkRate.model_validate(fields | more)


def traced(*links: LinkRate, **more: Any) -> TraceSummary:
    summary = summary_of(
        compute_ms=400,
        exposed_ms=500,
        kinds={"gemm": 400},
        collectives=[("fsdp", 500)],
        implied=Implied(
            chip_name=sure("NVIDIA H100 80GB HBM3"),
            world_size=sure(32),
            phase=sure("training"),
            is_transformer_lm=sure(True),
        ),
    )
    return summary.model_copy(update={"links": links, **more})


def plan(summary: TraceSummary, **changed: Any) -> PlanResult:
    request = PlanRequest.model_validate(REQUEST | changed)
    return run_plan(request, summary, knowledge=NoKnowledge(), advisor=RulesAdvisor())


# the measured figure ------------------------------------------------------------------------------------------------


def test_the_measured_figure_projects_what_was_measured() -> None:
    """FSDP over four hosts: the projected all-gather runs at the pace that was measured, latency aside."""
    summary = traced(far_link(5e9), *(far_link(38e9, first) for first in range(1, 8)))
    (found,) = measured_links(summary, H100)
    changed = with_measured_links(H100, [found])
    assert found.tier == "scale_out"
    assert changed.inter.bytes_per_s_one_way is not None
    seen = changed.inter.bytes_per_s_one_way.value * H100.calibration.link_efficiency_frac / (1 + 2 * SCALE_LOSS)
    assert seen == pytest.approx(5e9)


def test_the_figure_says_where_it_comes_from() -> None:
    links = measured_links(traced(far_link(5e9), far_link(38e9, 1), far_link(38e9, 2)), H100)
    figure = with_measured_links(H100, links).inter.bytes_per_s_one_way
    assert figure is not None
    assert figure.source == (
        "measured in the trace (group 'dp_0' of ranks 0, 8, 16, 24: 5 GB/s of bus bandwidth (median of 20 messages); "
        "its 2 sister groups reach 38 GB/s); datasheet 50 GB/s"
    )


def test_no_measurement_raises_a_figure() -> None:
    link = MeasuredLink(tier="scale_out", bytes_per_s_one_way=80e9, why="a slip")
    assert with_measured_links(H100, [link]) == H100
    fast = traced(far_link(60e9), far_link(190e9, 1), far_link(190e9, 2))
    (found,) = measured_links(fast, H100)
    assert found.bytes_per_s_one_way == 50e9
    assert with_measured_links(H100, [found]) == H100


def test_a_link_in_order_changes_nothing() -> None:
    assert measured_links(traced(*(far_link(36e9, first) for first in range(8))), H100) == ()


def test_the_slowest_of_several_degraded_links_counts() -> None:
    links = (far_link(9e9), far_link(6e9, 1), *(far_link(38e9, first) for first in range(2, 8)))
    (found,) = measured_links(traced(*links), H100)
    assert found.why.startswith("group 'dp_1'")


def test_a_link_inside_the_domain_has_a_figure_of_its_own() -> None:
    near = far_link(60e9, group="tp", axis="tp", ranks=tuple(range(8)), group_size=8, kinds=("all_reduce",))
    (found,) = measured_links(traced(near), H100)
    assert (found.tier, found.bytes_per_s_one_way) == ("scale_up", pytest.approx(60e9 / 0.8))
    assert with_measured_links(H100, [found]).inter == H100.inter


def test_slower_links_lengthen_the_step_and_change_the_order_of_plans() -> None:
    plans = {
        "across": ParallelismPlan(phase="training", dp=32, fsdp=32, zero_stage=3, micro_batch=1, grad_accum=8),
        "inside": ParallelismPlan(phase="training", dp=4, tp=8, sp=True, zero_stage=1, micro_batch=1, grad_accum=64),
    }
    (link,) = measured_links(traced(far_link(2e9), far_link(38e9, 1), far_link(38e9, 2)), H100)

    def times(links: tuple[MeasuredLink, ...]) -> dict[str, float]:
        hardware = with_measured_links(H100, links)
        return {name: project(one, JOB, LLAMA, CLUSTER, hardware).step_time_s for name, one in plans.items()}

    before, after = times(()), times((link,))
    assert before["across"] < before["inside"]
    assert after["across"] > after["inside"]


# in the answer ------------------------------------------------------------------------------------------------------


def test_the_answer_is_projected_with_the_degraded_link_and_says_so() -> None:
    even = tuple(far_link(38e9, first) for first in range(1, 8))
    fair, slow = plan(traced(far_link(38e9), *even)), plan(traced(far_link(3e9), *even))
    assert fair.current is not None
    assert slow.current is not None
    assert slow.current.step_time_s > 1.2 * fair.current.step_time_s
    assert [one.plan for one in slow.proposals] != [one.plan for one in fair.proposals]
    (warning,) = [one for one in slow.warnings if "degraded" in one]
    assert warning.startswith("a degraded link (group 'dp_0' of ranks 0, 8, 16, 24: 3 GB/s of bus bandwidth")
    assert "plans are projected with" in warning
    (assumed,) = [one for one in slow.assumptions if one.field == "hardware.inter.bytes_per_s_one_way"]
    assert assumed.matters == "once it is repaired, with 50 GB/s, plans that communicate between domains are faster"
    (evidence,) = [one for one in slow.diagnosis.evidence if one.id == "ev-degraded-link-1"]
    assert (evidence.value, evidence.unit) == (3.0, "GB/s")
    assert not any("degraded" in one for one in fair.warnings)


def test_other_chips_keep_their_own_links() -> None:
    even = tuple(far_link(38e9, first) for first in range(1, 8))
    asked = {"hardware": ["h200"]}
    fair, slow = plan(traced(far_link(38e9), *even), **asked), plan(traced(far_link(3e9), *even), **asked)
    by_plan = {one.plan: one.projections[1].step_time_s for one in fair.proposals if len(one.projections) > 1}
    shared = [one for one in slow.proposals if one.plan in by_plan and len(one.projections) > 1]
    assert all(one.projections[1].step_time_s == by_plan[one.plan] for one in shared)


def test_another_machine_is_projected_without_it() -> None:
    links = (far_link(3e9).model_copy(update={"degraded": True, "why": "3 GB/s"}), far_link(38e9, 1))
    moved = {"cluster": {"chip": "h200", "chips": 32}, "current_plan": None}
    result = plan(traced(*links), **moved)
    assert (
        "a degraded link in the trace (group 'dp_0' of ranks 0, 8, 16, 24: 3 GB/s): plans are projected without it"
        in result.warnings
    )
    assert not any(one.field.startswith("hardware.") for one in result.assumptions)


# the diagnosis ------------------------------------------------------------------------------------------------------


def skew(exposed_ms: int, **more: Any) -> GroupSkew:
    fields: dict[str, Any] = {
        "group": "tp",
        "axis": "tp",
        "ranks": (0, 1),
        "matched": 10,
        "waiting_ns": 2 * exposed_ms * 10**6,
        "transfer_ns": 10**6,
        "largest_wait_ns": 10**6,
        "exposed_waiting_ns": exposed_ms * 10**6,
    }
    return GroupSkew.model_validate(fields | more)


def test_exposed_waiting_makes_it_imbalance() -> None:
    """Most of what looks like slow tensor-parallel collectives is waiting for the last rank."""
    plain = diagnose(traced())
    waiting = diagnose(traced(skew=(skew(300),)))
    assert plain.cause == "exposed_dp"
    assert waiting.cause == "imbalance"
    (evidence,) = [one for one in waiting.evidence if one.id == "ev-waiting"]
    assert evidence.value == pytest.approx(0.3)
    assert diagnose(traced(skew=(skew(100),))).cause == "exposed_dp"


def test_what_a_pipeline_stage_waits_for_its_turn_is_no_imbalance() -> None:
    summary = traced(skew=(skew(300, axis="pp"),))
    assert waiting_share(summary) is None
    assert diagnose(summary).cause == "exposed_dp"


def test_waiting_behind_a_slow_link_is_no_imbalance() -> None:
    """Ranks behind a slow link come late to what follows; where one straggles besides, it is both."""
    slow = (far_link(3e9), *(far_link(38e9, first) for first in range(1, 8)))
    assert diagnose(traced(*slow, skew=(skew(300),))).cause == "exposed_dp"
    straggler = RankLateness(rank=1, matched=9, last_count=9, late_ns=1, waited_ns=0, straggler=True, why="its kernels")
    assert diagnose(traced(*slow, skew=(skew(300),), lateness=(straggler,))).cause == "imbalance"


def test_waiting_is_no_more_than_what_is_exposed() -> None:
    assert waiting_share(traced(skew=(skew(300), skew(300, group="dp")))) == pytest.approx(0.5)


def test_stragglers_are_named_with_their_reason() -> None:
    late = tuple(
        RankLateness(
            rank=rank,
            matched=40,
            last_count=30,
            late_ns=10**6 * rank,
            waited_ns=0,
            straggler=rank > 2,
            why="its kernels",
        )
        for rank in range(7)
    )
    claims = [one.claim for one in diagnose(traced(lateness=late)).evidence if one.id.startswith("ev-straggler")]
    assert claims == [
        "Rank 6 holds the others up, last to 30 of 40 collectives: its kernels.",
        "Rank 5 holds the others up, last to 30 of 40 collectives: its kernels.",
        "Rank 4 holds the others up, last to 30 of 40 collectives: its kernels. (1 more ranks do)",
    ]


def test_a_trace_of_one_rank_says_nothing_of_others() -> None:
    assert not [one for one in diagnose(traced()).evidence if one.id.startswith(("ev-waiting", "ev-strag", "ev-deg"))]
