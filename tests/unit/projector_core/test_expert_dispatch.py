"""How tokens reach their experts: what each way sends, what it holds, and what a second micro-batch hides."""

import numpy as np
import pytest
from projector_examples import cluster, moe_model, switched_chip, training

from projector.breakdown import Projection
from projector.cost.collectives import collective_time_s
from projector.cost.routes import Route
from projector.graph.operator import Collective
from projector.hf_config import from_hf_config
from projector.legality import check
from projector.project import project
from projector.specs.architecture import ModelArchitecture
from projector.specs.plan import ParallelismPlan
from projector.specs.software import CURRENT, Software

S = 2048
CHIP = switched_chip()


def projected(
    plan: ParallelismPlan, software: Software = CURRENT, model: ModelArchitecture | None = None
) -> Projection:
    batch = training(plan.dp * plan.micro_batch * plan.grad_accum, S)
    return project(plan, batch, model or moe_model(), cluster(CHIP, plan.devices), CHIP, software=software)


def exchange_s(found: Projection) -> tuple[float, float]:
    """(all, exposed) seconds of the exchange with experts."""
    return next((axis.total_s, axis.exposed_s) for axis in found.breakdown.by_axis if axis.axis == "ep")


def memory_bytes(found: Projection) -> float:
    assert found.memory is not None
    return found.memory.total_bytes


def domains(*, inner: float, outer: float) -> Route:
    one = np.ones(1)
    return Route(
        inner=inner * one, outer=outer * one, inner_bytes_per_s=1e12 * one, inner_hop_s=0.0, inner_hops=0 * one,
        direct=True, spread_bytes_per_s=1e12 * one, outer_bytes_per_s=1e9, outer_ring_bytes_per_s=1e9 * one,
        outer_hop_s=0.0,
    )  # fmt: skip


@pytest.mark.parametrize(("dispatch", "habit"), [("all_to_all", "expert"), ("deepep", "token")])
def test_a_named_dispatch_is_what_a_stack_may_do_by_itself(dispatch: str, habit: str) -> None:
    named = projected(ParallelismPlan(dp=32, ep=16, expert_dispatch=dispatch))
    by_habit = projected(ParallelismPlan(dp=32, ep=16), CURRENT.model_copy(update={"expert_dispatch": habit}))
    assert named.step_time_s == by_habit.step_time_s


def test_one_copy_a_domain_sends_less_than_one_an_expert() -> None:
    every, once = (
        exchange_s(projected(ParallelismPlan(dp=16, ep=16, expert_dispatch=dispatch)))[0]
        for dispatch in ("all_to_all", "deepep")
    )
    assert once < every


def test_gathering_all_tokens_sends_ep_times_the_tokens_and_holds_them() -> None:
    wide, narrow = (
        projected(ParallelismPlan(dp=8, ep=8, expert_dispatch=dispatch)) for dispatch in ("all_gather", "all_to_all")
    )
    model = moe_model()
    sent = 8 * S * model.hidden_size * 2
    # forward and backward of a gather and a scatter in 7 expert layers, 7 steps of latency each
    expected = 4 * 7 * (sent * 7 / 8 / 100e9 + 7e-6)
    assert exchange_s(wide)[0] == pytest.approx(expected)
    held = 2 * (8 - 2) * S * model.hidden_size * 2
    assert memory_bytes(wide) - memory_bytes(narrow) == pytest.approx(held)


def test_experts_of_a_few_groups_lie_in_a_few_domains() -> None:
    payload = np.full(1, 8e9)
    free, limited = (
        collective_time_s(
            Collective("all_to_all", "ep", "ep", payload, copies=8.0, groups=groups, reach=reach),
            {"ep": domains(inner=8, outer=8)},
        )[0]
        for groups, reach in ((1, 1), (8, 4))
    )
    met = 4 * (1 - (3 / 4) ** 8)
    assert limited == pytest.approx(1.0 * 7 / 8 * met)  # 1 GB for each of 8 copies, over 1 GB/s
    assert free == pytest.approx(7 / 8 * 8 * (1 - (7 / 8) ** 8))


def test_groups_of_a_router_are_read_from_its_config() -> None:
    config = {
        "model_type": "deepseek_v3", "num_hidden_layers": 4, "hidden_size": 1024, "num_attention_heads": 16,
        "num_key_value_heads": 16, "intermediate_size": 4096, "vocab_size": 32000, "n_routed_experts": 16,
        "num_experts_per_tok": 2, "moe_intermediate_size": 512, "n_shared_experts": 1, "first_k_dense_replace": 1,
        "q_lora_rank": 384, "kv_lora_rank": 256, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32,
    }  # fmt: skip
    grouped = from_hf_config(config | {"n_group": 8, "topk_group": 4}, name="grouped", source="made up")
    assert (grouped.expert_groups, grouped.groups_per_token) == (8, 4)
    alone = from_hf_config(config | {"n_group": 1, "topk_group": 1}, name="alone", source="made up")
    assert (alone.expert_groups, alone.groups_per_token) == (1, 1)


def test_padded_experts_compute_and_send_their_capacity() -> None:
    plan = ParallelismPlan(dp=16, ep=16)
    even, padded = (projected(plan, CURRENT.model_copy(update={"expert_load": load})) for load in (1.0, 1.25))
    assert exchange_s(padded)[0] > 1.15 * exchange_s(even)[0]
    assert padded.breakdown.compute_s > even.breakdown.compute_s
    assert any("1.25 times" in text for text in padded.assumptions)
    assert not any("evenly" in text for text in padded.assumptions)


def test_a_second_micro_batch_hides_the_exchange_and_takes_its_memory() -> None:
    alone, beside = (projected(ParallelismPlan(dp=16, ep=16, grad_accum=8, overlap_ep=on)) for on in (False, True))
    assert exchange_s(beside)[0] == exchange_s(alone)[0]
    assert exchange_s(beside)[1] < exchange_s(alone)[1]
    assert beside.memory is not None
    assert alone.memory is not None
    kept = beside.memory.activations_bytes / alone.memory.activations_bytes
    assert 1.5 < kept < 2.0  # the logits are there once
    assert beside.memory.buffers_bytes > alone.memory.buffers_bytes


def test_the_first_micro_batch_has_none_beside_it() -> None:
    few, many = (projected(ParallelismPlan(dp=16, ep=16, grad_accum=number, overlap_ep=True)) for number in (2, 64))
    assert exchange_s(few)[1] / exchange_s(few)[0] > exchange_s(many)[1] / exchange_s(many)[0]


@pytest.mark.parametrize(
    ("plan", "rule"),
    [
        (ParallelismPlan(dp=2, expert_dispatch="deepep"), "dispatch_needs_ep"),
        (ParallelismPlan(dp=2, grad_accum=2, overlap_ep=True), "overlap_ep_needs_ep"),
        (ParallelismPlan(dp=2, ep=2, overlap_ep=True), "overlap_ep_needs_two"),
    ],
)
def test_what_has_nothing_to_send_or_hide_is_refused(plan: ParallelismPlan, rule: str) -> None:
    batch = training(plan.dp * plan.grad_accum, S)
    broken = check(plan, batch, moe_model(), cluster(CHIP, 2), CHIP)
    assert [rejection.rule for rejection in broken] == [rule]
