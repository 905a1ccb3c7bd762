"""Sizing: which machine is cheapest, whether it surely meets the target, and what is told where a price is missing."""

import pytest
from pydantic import ValidationError

from projector.catalog import architecture, chip
from projector.errors import InvalidDescription, UnknownName
from projector.ranking.sizing import Machine, machines, powers_of_two, size
from projector.ranking.sizing_records import ChipCounts, SizingTarget
from projector.ranking.task import Stack
from projector.ranking.ties import TIE_FRAC
from projector.specs.constraints import Constraints
from projector.specs.software import CURRENT
from projector.specs.workload import WorkloadSpec

MODEL = architecture("llama-3.1-8b")
WORKLOAD = WorkloadSpec(seq_len=4096, global_batch=256)
COUNTS = (ChipCounts(chip="v5p", chips=(8, 16, 32)), ChipCounts(chip="h100", chips=(8, 16, 32)))


def sized(target: SizingTarget, prices: dict[str, float] | None = None, counts=COUNTS):
    return size(WORKLOAD, MODEL, target, machines(counts, prices or {}, chip))


def test_the_cheapest_machine_that_meets_a_rate_comes_first() -> None:
    found = sized(SizingTarget(tokens_per_s=150_000), {"h100": 2.0})
    meeting = [one for one in found.options if one.met != "no"]
    assert found.cost_unit == "USD an hour"
    assert found.options[: len(meeting)] == tuple(meeting)
    assert meeting[0].rank == 1
    assert meeting[0].hourly_usd == min(one.hourly_usd for one in meeting)
    assert all(one.tokens_per_s >= 150_000 for one in meeting)
    for one in found.options[len(meeting) :]:
        assert [miss.rule for miss in one.misses] == ["tokens_per_s"]
        assert one.rank is None
    assert found.unpriced == ()


def test_a_run_costs_its_hours_at_the_price_of_its_chips() -> None:
    found = sized(SizingTarget(days=365, budget_tokens=10**12), {"h100-sxm": 2.0})
    assert found.cost_unit == "USD of the run"
    for one in found.options:
        hours = 10**12 / one.tokens_per_s / 3600
        assert one.run_days == pytest.approx(hours / 24)
        assert one.run_chip_hours == pytest.approx(hours * one.chips)
        assert one.run_usd == pytest.approx(one.hourly_usd * hours)
        assert one.tokens_per_s == pytest.approx(256 * 4096 / one.projection.step_time_s)


def test_costs_within_the_tie_share_a_rank_and_fewer_chips_stand_first() -> None:
    found = sized(SizingTarget(days=3650, budget_tokens=10**12))
    first = [one for one in found.options if one.rank == 1]
    costs = [one.run_usd for one in first]
    assert max(costs) <= min(costs) * (1 + TIE_FRAC)
    assert [one.chips for one in first] == sorted(one.chips for one in first)


def test_a_target_inside_the_interval_is_met_as_projected_only() -> None:
    one = sized(SizingTarget(step_time_s=1e9), {"h100": 2.0}).options[0]
    assert one.met == "with_margin"
    step, high = one.projection.step_time_s, one.projection.step_time_interval_s.high
    counts = (ChipCounts(chip=one.chip, chips=(one.chips,)),)
    between = sized(SizingTarget(step_time_s=(step + high) / 2), {one.chip: 2.0}, counts)
    assert between.options[0].met == "as_projected"
    assert one.tokens_per_s_interval.low < one.tokens_per_s < one.tokens_per_s_interval.high


def test_machines_without_a_price_are_ranked_by_chip_hours_and_their_cost_is_unknown() -> None:
    found = sized(SizingTarget(days=365, cost_usd=1e7, budget_tokens=10**12))
    assert {one.chip for one in found.options} == {"tpu-v5p"}
    assert {one.chip for one in found.unpriced} == {"h100-sxm"}
    assert {one.met for one in found.unpriced} == {"unknown"}
    assert found.unpriced[0].run_chip_hours == min(one.run_chip_hours for one in found.unpriced)
    assert found.unpriced_unit == "chip-hours of the run"
    assert "the price of h100-sxm is unknown" in found.notes[-1]
    assert any(note.startswith("tpu-v5p: 4.2 USD a chip and hour") for note in found.notes)


def test_no_point_of_the_pareto_set_is_beaten() -> None:
    found = sized(SizingTarget(step_time_s=0.001), {"h100": 2.0})
    assert all(one.met == "no" for one in found.options)
    points = [(one.projection.step_time_s, one.hourly_usd) for one in found.options]
    front = [(point.step_time_s, point.cost) for point in found.pareto]
    assert front == sorted(front)
    for point in points:
        beaten = any(other[0] <= point[0] and other[1] <= point[1] and other != point for other in points)
        assert (point in front) != beaten


def test_what_has_no_plan_says_why() -> None:
    counts = (ChipCounts(chip="h100", chips=(1, 10007)), ChipCounts(chip="trainium1", chips=(8,)))
    found = sized(SizingTarget(tokens_per_s=1), counts=counts)
    reasons = {(one.chip, one.chips): one.reason for one in found.refused}
    assert "the nearest fails on memory" in reasons["h100-sxm", 1]
    assert "states no bandwidth between its chips" in reasons["trainium1", 8]
    assert reasons["h100-sxm", 10007] == "no legal plan for 10007 devices keeps the constraints"


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ({}, "state tokens_per_s, step_time_s, days or cost_usd"),
        ({"days": 3}, "state budget_tokens"),
        ({"cost_usd": 3}, "state budget_tokens"),
        ({"days": -3, "budget_tokens": 1}, "greater than 0"),
    ],
)
def test_a_target_asks_for_something(target, text) -> None:
    with pytest.raises(ValidationError, match=text):
        SizingTarget.model_validate(target)


def test_what_cannot_be_meant_is_refused() -> None:
    with pytest.raises(UnknownName, match="unknown chip 'h900'"):
        machines((ChipCounts(chip="h900", chips=(8,)),), {}, chip)
    with pytest.raises(InvalidDescription, match="a price of tpu-v4, which is no candidate"):
        machines(COUNTS, {"v4": 3.0}, chip)
    with pytest.raises(InvalidDescription, match="a price of -1 USD an hour for h100"):
        machines(COUNTS, {"h100": -1}, chip)
    with pytest.raises(InvalidDescription, match="501 machines to compare, at most 500"):
        machines((ChipCounts(chip="h100", chips=tuple(range(1, 502))),), {}, chip)
    target, candidates = SizingTarget(tokens_per_s=1), machines(COUNTS, {}, chip)
    with pytest.raises(InvalidDescription, match="a sizing for training of a serving workload"):
        size(WorkloadSpec(phase="serving"), MODEL, target, candidates)
    with pytest.raises(InvalidDescription, match="lacks global_batch"):
        size(WorkloadSpec(seq_len=4096), MODEL, target, candidates)
    alone = Stack("a stack", Constraints(fixed={"pp": 1}), lambda plans: plans, CURRENT)
    with pytest.raises(InvalidDescription, match="asks for pp 2, and a stack has 1 only"):
        size(WORKLOAD, MODEL, target, candidates, constraints=Constraints(fixed={"pp": 2}), stack=alone)
    with pytest.raises(InvalidDescription, match="max_chips has no meaning"):
        size(WORKLOAD, MODEL, target, candidates, constraints=Constraints(max_chips=4))


def test_machines_are_compared_once_and_progress_is_told() -> None:
    twice = (ChipCounts(chip="h100", chips=(8, 8)), ChipCounts(chip="H100-SXM", chips=(8,)))
    candidates = machines(twice, {}, chip)
    assert candidates == (Machine(chip("h100-sxm"), 8),)
    told: list[str] = []
    size(WORKLOAD, MODEL, SizingTarget(tokens_per_s=1), candidates, say=told.append)
    assert told == ["8 x h100-sxm: with_margin"]
    assert powers_of_two(24) == (1, 2, 4, 8, 16)
