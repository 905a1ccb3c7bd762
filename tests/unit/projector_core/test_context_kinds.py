"""Context parallelism in three kinds: what each sends and shows, what it holds, and where it can stand at all."""

import pytest
from projector_examples import cluster, dense_model, switched_chip, training

from projector.breakdown import Projection
from projector.catalog import architecture
from projector.legality import check
from projector.project import project
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan

S = 8192
KINDS = ("ring", "all_gather", "all_to_all")
CHIP = switched_chip(latency_s=1e-12)


def projected(
    plan: ParallelismPlan, *, model: ModelArchitecture | None = None, chip: HardwareProfile = CHIP
) -> Projection:
    return project(plan, training(1, S), model or dense_model(), cluster(chip, plan.devices), chip)


def exchange_s(found: Projection) -> tuple[float, float]:
    """(all, exposed) seconds of context parallelism."""
    return next((axis.total_s, axis.exposed_s) for axis in found.breakdown.by_axis if axis.axis == "cp")


def test_a_gather_sends_what_a_ring_sends_but_shows_all_of_it() -> None:
    ring, gather = (exchange_s(projected(ParallelismPlan(cp=4, cp_kind=kind))) for kind in ("ring", "all_gather"))
    model = dense_model()
    keys_s = S * 2 * model.kv_heads * model.head_dim * 2 * 3 / 4 / 100e9
    assert ring[0] == gather[0] == pytest.approx(model.layers * 3 * keys_s)
    assert gather[1] == gather[0]
    assert ring[1] < ring[0]


def test_trading_tokens_for_heads_sends_what_a_rank_holds() -> None:
    model = dense_model()
    total, exposed = exchange_s(projected(ParallelismPlan(cp=4, cp_kind="all_to_all")))
    widths = (model.heads + 2 * model.kv_heads + model.heads) * model.head_dim
    expected = model.layers * 2 * S / 4 * widths * 2 * 3 / 4 / 100e9
    assert total == exposed == pytest.approx(expected)


def test_only_a_ring_cuts_attention_into_kernels_that_read_queries_again() -> None:
    moved = {
        kind: next(
            one.time_s
            for one in projected(
                ParallelismPlan(cp=8, cp_kind=kind),
                chip=switched_chip(peak_flop_per_s=1e30),
                model=dense_model(heads=8, kv_heads=8),
            ).breakdown.by_kind
            if one.kind == "attention"
        )
        for kind in KINDS
    }
    assert moved["all_to_all"] < moved["all_gather"] < moved["ring"]


@pytest.mark.parametrize("kind", KINDS)
def test_attention_that_runs_again_waits_for_its_exchange_again(kind: str) -> None:
    once, again, core = (
        exchange_s(projected(ParallelismPlan(cp=4, cp_kind=kind, recompute=mode, recompute_modules=modules)))[0]
        for mode, modules in (("none", ""), ("full", ""), ("selective", "core_attn"))
    )
    assert again == core == pytest.approx(once * (3 / 2 if kind == "all_to_all" else 4 / 3))


def test_gathered_keys_stand_on_every_rank() -> None:
    held = {}
    for kind in KINDS:
        memory = projected(ParallelismPlan(cp=4, cp_kind=kind)).memory
        assert memory is not None
        held[kind] = memory.buffers_bytes
    model = dense_model()
    local = S / 4 * 2 * model.kv_heads * model.head_dim * 2
    assert held["all_gather"] - held["ring"] == pytest.approx((2 * 4 - 4) * local)


@pytest.mark.parametrize(
    ("plan", "rule"),
    [
        (ParallelismPlan(cp=1, cp_kind="all_gather"), "cp_kind_needs_cp"),
        (ParallelismPlan(cp=8, cp_kind="all_to_all"), "traded_heads"),
        (ParallelismPlan(tp=2, cp=4, cp_kind="all_to_all"), "traded_heads"),
    ],
)
def test_what_cannot_be_split_is_refused(plan: ParallelismPlan, rule: str) -> None:
    broken = check(plan, training(1, S), dense_model(), cluster(CHIP, plan.devices), CHIP)
    assert [rejection.rule for rejection in broken] == [rule]


def test_a_sequence_of_odd_pieces_can_be_traded_but_not_passed_on() -> None:
    legal = {
        kind: not check(
            ParallelismPlan(cp=4, cp_kind=kind), training(1, 4 * 1001), dense_model(), cluster(CHIP, 4), CHIP
        )
        for kind in KINDS
    }
    assert legal == {"ring": False, "all_gather": False, "all_to_all": True}


def test_tokens_are_traded_for_heads_of_every_sort_of_layers() -> None:
    """Gemma 4 31B has 16 key heads where attention slides and 4 where it does not."""
    chip, model = CHIP, architecture("gemma-4-31b")
    broken = [
        {one.rule for one in check(plan, training(1, S), model, cluster(chip, plan.devices), chip)}
        for plan in (ParallelismPlan(cp=cp, cp_kind="all_to_all") for cp in (4, 8))
    ]
    assert "traded_heads" not in broken[0]
    assert "traded_heads" in broken[1]
