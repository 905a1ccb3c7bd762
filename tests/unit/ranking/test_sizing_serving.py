"""Sizing for serving: the cheapest fleet that bears a rate within latency budgets."""

import pytest
from pydantic import ValidationError

from projector.catalog import architecture, chip
from projector.errors import InvalidDescription
from projector.project import project_many
from projector.ranking.sizing import machines, size
from projector.ranking.sizing_records import ChipCounts, Sizing, SizingTarget
from projector.ranking.sizing_serving import size_serving
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Constraints
from projector.specs.objective import Slo
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import WorkloadSpec

MODEL = architecture("llama-3.1-8b")
CHAT = WorkloadSpec(phase="serving", input_len=1024, output_len=256, precision="fp8")
COUNTS = (ChipCounts(chip="h100", chips=(1, 2, 4)), ChipCounts(chip="mi300x", chips=(1, 2, 4)))
ONE_POOL = Constraints(fixed={"prefill_replicas": 0})
BUDGETS = Slo(ttft_ms=1000, tpot_ms=20)


def sized(target: SizingTarget, scale_to: int | None = 64, slo: Slo = BUDGETS, **given: object) -> Sizing:
    candidates = machines(COUNTS, {"h100": 2.0}, chip)
    return size_serving(CHAT, MODEL, target, candidates, slo=slo, scale_to=scale_to, **given)  # type: ignore[arg-type]


def test_the_cheapest_fleet_that_bears_the_rate_comes_first() -> None:
    found = sized(SizingTarget(requests_per_s=200))
    meeting = [one for one in found.options if one.met != "no"]
    assert meeting[0].rank == 1
    assert meeting[0].hourly_usd == min(one.hourly_usd for one in meeting if one.hourly_usd is not None)
    for one in meeting:
        assert one.requests_per_s is not None
        assert one.requests_per_s >= 200 * (1 - 1e-9)
        assert one.requests_per_s == pytest.approx(one.tokens_per_s / 256)
        assert one.projection.tpot_s is not None
        assert one.projection.tpot_s <= 20e-3
        assert one.hourly_usd == pytest.approx(2.0 * one.chips)
        assert one.usd_per_million_tokens == pytest.approx(one.hourly_usd / 3600 / one.tokens_per_s * 1e6)


def test_chips_without_a_price_are_ranked_apart_by_their_number() -> None:
    found = sized(SizingTarget(requests_per_s=200))
    assert {one.chip for one in found.unpriced} == {"mi300x"}
    assert found.unpriced_unit == "chips"
    assert found.unpriced[0].chips == min(one.chips for one in found.unpriced if one.met != "no")
    assert any("mi300x is unknown" in note for note in found.notes)


def test_one_engine_less_would_not_bear_the_rate() -> None:
    for one in sized(SizingTarget(output_tokens_per_s=60_000), constraints=ONE_POOL).options:
        assert one.tokens_per_s >= 60_000
        assert one.tokens_per_s * (1 - 1 / one.projection.plan.replicas) < 60_000


def test_fleets_with_a_prefill_pool_stand_side_by_side_as_they_are() -> None:
    """Engines that share a pool are not alone: no part of such a fleet is projected as if it were."""
    split = Constraints(fixed={"prefill_replicas": 1})
    for one in sized(SizingTarget(output_tokens_per_s=60_000), constraints=split).options:
        assert one.chips == one.fleets * one.projection.chips
        assert one.tokens_per_s == pytest.approx(
            one.fleets * one.projection.chips * one.projection.decode_tokens_per_s_per_chip
        )
        assert one.tokens_per_s >= 60_000
        assert one.tokens_per_s * (1 - 1 / one.fleets) < 60_000


def test_copies_side_by_side_are_what_a_projection_of_all_of_them_says() -> None:
    one = next(one for one in sized(SizingTarget(requests_per_s=500), constraints=ONE_POOL).options if one.chips > 4)
    hardware, plan = chip(one.chip), one.projection.plan
    whole = project_many(
        PlanBatch.from_plans([plan]), CHAT, MODEL, ClusterSpec(chip=one.chip, chips=one.chips), hardware,
        all_seats_taken=True,
    )[0]  # fmt: skip
    for figure in ("ttft_s", "tpot_s", "decode_tokens_per_s_per_chip", "max_concurrency", "chips"):
        assert getattr(one.projection, figure) == pytest.approx(getattr(whole, figure))


def test_named_counts_are_taken_as_they_are() -> None:
    found = sized(SizingTarget(requests_per_s=5000), scale_to=None)
    assert {one.chips for one in (*found.options, *found.unpriced)} == {1, 2, 4}
    assert {one.met for one in found.options} == {"no"}
    assert found.options[0].misses[0].text.endswith("requests/s < 5000.0 requests/s")


def test_budgets_nothing_keeps_are_told_by_machine() -> None:
    found = sized(SizingTarget(requests_per_s=1), slo=Slo(ttft_ms=1))
    assert found.options == found.unpriced == ()
    assert len(found.refused) == 6
    assert all("TTFT" in one.reason and "> 1.0 ms" in one.reason for one in found.refused)


def test_a_rate_inside_the_interval_is_met_as_projected_only() -> None:
    one = sized(SizingTarget(requests_per_s=1e-3), slo=Slo()).options[0]
    assert one.met == "with_margin"
    edge = one.requests_per_s
    assert edge is not None
    found = sized(SizingTarget(requests_per_s=edge), slo=Slo(), scale_to=None)
    assert found.options[0].met == "as_projected"


def test_what_is_at_odds_is_refused() -> None:
    candidates = machines(COUNTS, {}, chip)
    rate = SizingTarget(requests_per_s=1)
    with pytest.raises(ValidationError, match="requests_per_s or output_tokens_per_s"):
        SizingTarget()
    with pytest.raises(InvalidDescription, match="days, budget_tokens of a serving workload"):
        size_serving(CHAT, MODEL, SizingTarget(days=1, budget_tokens=1), candidates)
    with pytest.raises(InvalidDescription, match="concurrency: a sizing finds the load"):
        size_serving(CHAT.model_copy(update={"concurrency": 8}), MODEL, rate, candidates)
    with pytest.raises(InvalidDescription, match="max_chips"):
        sized(rate, constraints=Constraints(max_chips=4))
    training = WorkloadSpec(seq_len=4096, global_batch=256)
    with pytest.raises(InvalidDescription, match="requests_per_s of a training workload"):
        size(training, MODEL, rate, candidates)
    with pytest.raises(InvalidDescription, match="serving of a training workload"):
        size_serving(training, MODEL, rate, candidates)


def test_engines_of_a_chip_without_a_link_between_domains_stand_apart() -> None:
    """Nothing of one engine crosses a domain, so more of them than a domain holds need no link."""
    card = (ChipCounts(chip="rtx-pro-6000-blackwell-se", chips=(1,)),)
    target = SizingTarget(output_tokens_per_s=100_000)
    found = size_serving(CHAT, MODEL, target, machines(card, {}, chip), scale_to=512)
    (one,) = found.unpriced
    assert one.fleets == one.chips > 8
    assert one.met != "no"
