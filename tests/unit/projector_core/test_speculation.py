"""Speculation: what drafting and verifying cost, what they yield, and where they lose."""

import numpy as np
import pytest
from projector_examples import cluster, dense_model, moe_model, serving, switched_chip

from projector.breakdown import Projection
from projector.catalog import architecture, architectures, chip
from projector.cost.speculation import ACCEPTANCE_FRAC, acceptance_frac, tokens_a_step
from projector.errors import InvalidDescription
from projector.graph.drafting import draft_model_of, drafters
from projector.graph.operator import DRAFT
from projector.graph.serving_graph import StepWork, serving_graph
from projector.project import project, project_many
from projector.rollout import rollout
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.rl import RlStep
from projector.specs.workload import WorkloadSpec

KINDS = ("mtp", "eagle", "draft_model", "ngram")
BIG = architecture("llama-3.1-70b")


def engine(kind: str = "none", drafted: int = 0, **changes: object) -> ParallelismPlan:
    fields = {"phase": "serving", "speculation": kind, "speculative_tokens": drafted, "max_num_seqs": 4096}
    return ParallelismPlan.model_validate(fields | changes)


def load(concurrency: int = 1, acceptance: float | None = None, **changes: int) -> WorkloadSpec:
    return serving(concurrency, **changes).model_copy(update={"draft_acceptance_frac": acceptance})


def projected(
    plan: ParallelismPlan,
    traffic: WorkloadSpec,
    model: ModelArchitecture = BIG,
    hardware: HardwareProfile | None = None,
) -> Projection:
    hardware = hardware or chip("h100")
    return project(plan, traffic, model, cluster(hardware, plan.devices), hardware)


def speed(found: Projection) -> float:
    assert found.decode_tokens_per_s_per_chip is not None
    return found.decode_tokens_per_s_per_chip


@pytest.mark.parametrize(("a", "k", "tokens"), [(0.0, 4, 1.0), (0.5, 1, 1.5), (0.7, 3, 2.533), (0.7, 4, 2.7731)])
def test_tokens_a_step_are_a_geometric_sum(a: float, k: int, tokens: float) -> None:
    batch = PlanBatch.from_plans([engine("eagle", k)])
    assert tokens_a_step(batch, BIG, a)[0] == pytest.approx(tokens, abs=1e-4)
    assert tokens_a_step(batch, BIG, 0.999)[0] < k + 1


def test_without_speculation_a_step_yields_one_token_exactly_and_nothing_drafts() -> None:
    batch = PlanBatch.from_plans([engine(), engine("ngram", 3)])
    assert tokens_a_step(batch, BIG, 0.7)[0] == 1.0
    assert drafters(batch, BIG) == ()
    said, unsaid = projected(engine(tp=8), load(8, 0.7)), projected(engine(tp=8), load(8))
    assert said == unsaid
    assert said.memory is not None
    assert said.memory.draft_bytes == 0


def test_a_batch_with_speculating_plans_gives_each_plan_its_own_projection() -> None:
    model, hardware = architecture("deepseek-v3"), chip("h200")
    plans = [
        engine(tp=8, ep=8, weight_dtype="fp8"),
        *(engine(kind, 2, tp=8, ep=8, weight_dtype="fp8") for kind in KINDS),
    ]
    many = project_many(PlanBatch.from_plans(plans), load(8), model, cluster(hardware, 8), hardware)
    for index, plan in enumerate(plans):
        alone = projected(plan, load(8), model, hardware)
        assert many[index].tpot_s == pytest.approx(alone.tpot_s, rel=1e-12)
        assert many[index].memory == alone.memory
        assert many[index].assumptions == alone.assumptions


@pytest.mark.parametrize("kind", ["eagle", "draft_model"])
def test_lone_request_gains_less_than_the_tokens_of_a_step(kind: str) -> None:
    plain, drafted = projected(engine(tp=8), load()), projected(engine(kind, 3, tp=8), load(acceptance=0.7))
    assert plain.tpot_s is not None
    assert drafted.tpot_s is not None
    assert 1.0 < plain.tpot_s / drafted.tpot_s < 2.533
    assert drafted.step_time_s > plain.step_time_s
    assert drafted.tpot_s == pytest.approx(drafted.step_time_s / 2.533, rel=1e-4)


@pytest.mark.parametrize("kind", ["eagle", "draft_model", "ngram"])
def test_full_batch_loses_by_speculation(kind: str) -> None:
    # 1,024 short requests fill the chip already: every row that is verified in vain takes a token's place
    full = {"concurrency": 1024, "input_len": 128, "output_len": 128}
    plain = projected(engine(tp=8), load(**full))
    drafted = projected(engine(kind, 4, tp=8), load(**full))
    assert speed(drafted) < speed(plain)


def test_gain_falls_as_the_batch_grows() -> None:
    gains = []
    for requests in (1, 32, 256, 1024):
        plain, drafted = (
            projected(plan, load(requests, 0.7, input_len=256)) for plan in (engine(tp=8), engine("eagle", 3, tp=8))
        )
        gains.append(speed(drafted) / speed(plain))
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > 1.5
    assert gains[-1] < 1.0


def test_nothing_accepted_is_a_loss() -> None:
    for kind in ("eagle", "draft_model", "ngram"):
        assert speed(projected(engine(kind, 3, tp=8), load(8, 0.0))) < speed(projected(engine(tp=8), load(8)))


def test_more_acceptance_is_never_slower() -> None:
    found = [speed(projected(engine("eagle", 3, tp=8), load(8, a))) for a in (0.0, 0.3, 0.6, 0.9)]
    assert found == sorted(found)


def test_drafts_that_are_not_accepted_make_long_ones_a_loss() -> None:
    # the published report of 32 drafts with 2.2 accepted tokens: slower than none
    short, long = (speed(projected(engine("eagle", k, tp=8), load(8, 0.55))) for k in (1, 32))
    assert short > speed(projected(engine(tp=8), load(8))) > long


def test_verified_rows_meet_more_experts() -> None:
    model, one = moe_model(), np.ones(1)

    def expert_bytes(rows: float) -> float:
        batch = PlanBatch.from_plans([engine()])
        work = StepWork(2 * one, 512 * one, 0 * one, one, one, one, rows_each=rows)
        operators = serving_graph(batch, model, batch.compute_dtype, work)
        return sum(float(operator.moved_bytes[0]) for operator in operators if operator.name == "expert_up")

    assert expert_bytes(4.0) > 1.5 * expert_bytes(1.0)


def test_keys_are_read_once_for_all_rows_of_a_request() -> None:
    one, batch = np.ones(1), PlanBatch.from_plans([engine()])

    def core(rows: float) -> tuple[float, float]:
        work = StepWork(8 * one, 65536 * one, 0 * one, one, one, one, rows_each=rows)
        operators = serving_graph(batch, dense_model(), batch.compute_dtype, work)
        (found,) = (operator for operator in operators if operator.kind == "attention" and operator.count[0] > 0)
        return float(found.flop[0]), float(found.moved_bytes[0])

    (flop, moved), (flop_of_four, moved_of_four) = core(1.0), core(4.0)
    assert flop_of_four == 4 * flop
    assert moved_of_four < 1.01 * moved


def test_weights_and_keys_of_the_drafter_are_held() -> None:
    model, hardware = architecture("deepseek-v3"), chip("h200")
    plan = {"tp": 8, "ep": 8, "weight_dtype": "fp8", "kv_block_tokens": 1}
    plain, mtp = (projected(engine(*how, **plan), load(8), model, hardware).memory for how in ((), ("mtp", 1)))
    assert plain is not None
    assert mtp is not None
    # 11.6 billion weights of a prediction layer over 8 devices: experts once, latent projections on each of them
    assert mtp.draft_bytes * 8 == pytest.approx(model.mtp_matrix_parameters, rel=0.05)
    assert mtp.draft_bytes * 8 > model.mtp_matrix_parameters
    # 62 layers hold keys in place of 61, and a slot more
    assert mtp.kv_cache_bytes / plain.kv_cache_bytes == pytest.approx(62 / 61 * 1153 / 1152)
    assert mtp.weights_bytes == plain.weights_bytes


def test_ngrams_hold_no_weights_and_cost_the_host() -> None:
    plain, drafted = projected(engine(tp=8), load(64)), projected(engine("ngram", 1, tp=8), load(64))
    assert drafted.memory is not None
    assert drafted.memory.draft_bytes == 0
    idle_s = drafted.breakdown.idle_s - plain.breakdown.idle_s
    assert idle_s == pytest.approx(64 * 1152e-9, rel=0.01)


def test_drafter_stands_on_the_last_stage() -> None:
    one = PlanBatch.from_plans([engine("eagle", 2, tp=4, pp=2)])
    work = StepWork(np.ones(1), np.ones(1), 0 * np.ones(1), np.ones(1), np.ones(1), np.ones(1))
    places = {operator.place for operator in serving_graph(one, BIG, one.compute_dtype, work)}
    assert DRAFT in places
    found = projected(engine("eagle", 2, tp=4, pp=2), load(64))
    assert found.memory is not None
    assert found.fit == "fits"


def test_models_without_prediction_layers_refuse_to_draft_with_them() -> None:
    with pytest.raises(InvalidDescription, match=r"llama-3.1-70b has no prediction layers"):
        projected(engine("mtp", 1, tp=8), load())


@pytest.mark.parametrize("kind", KINDS)
def test_who_drafts_and_what_is_accepted_is_said(kind: str) -> None:
    model, hardware = architecture("deepseek-v3"), chip("h200")
    plan = engine(kind, 1, tp=8, ep=8, weight_dtype="fp8")
    assumed, stated = (projected(plan, load(8, a), model, hardware).assumptions for a in (None, 0.4))
    assert any(
        f"chance {ACCEPTANCE_FRAC[kind]:g} given" in text and "which traffic decides" in text for text in assumed
    )
    assert any("chance 0.4 given" in text and "as the traffic states" in text for text in stated)
    left_out = any("prediction layers of the checkpoint are left out" in text for text in assumed)
    assert left_out == (kind != "mtp")


def test_prediction_layers_that_draft_further_than_trained_are_trusted_less() -> None:
    batch = PlanBatch.from_plans([engine("mtp", k) for k in (1, 3)])
    assert acceptance_frac(batch, architecture("deepseek-v3"), None).tolist() == [0.85, 0.7]
    # the published 3.1 to 3.2 tokens a step of one layer used seven times
    assert 3.0 < tokens_a_step(PlanBatch.from_plans([engine("mtp", 7)]), architecture("deepseek-v3"), None)[0] < 3.3


def test_assumed_draft_model_is_of_the_size_of_the_usual_one() -> None:
    assert draft_model_of(BIG).parameters == pytest.approx(1.24e9, rel=0.25)  # Llama 3.2 1B


def test_drafted_rows_are_taken_off_the_token_budget() -> None:
    plan = engine("eagle", 3, chunked_prefill_tokens=2048, max_batched_tokens=512, tp=8)
    tight, free = (
        projected(one, load(64, input_len=8192)) for one in (plan, plan.model_copy(update={"max_batched_tokens": 0}))
    )
    assert tight.ttft_s is not None
    assert free.ttft_s is not None
    assert tight.ttft_s > 1.2 * free.ttft_s


@pytest.mark.parametrize("model", architectures(), ids=lambda model: model.name)
def test_every_model_of_the_catalogue_has_drafters(model: ModelArchitecture) -> None:
    kinds = [kind for kind in KINDS if kind != "mtp" or model.mtp_layers]
    batch, one = PlanBatch.from_plans([engine(kind, 2) for kind in kinds]), np.ones(len(kinds))
    work = StepWork(8 * one, 512 * one, 0 * one, one, one, one, rows_each=3.0)
    drafted = [op for op in serving_graph(batch, model, batch.compute_dtype, work) if op.place == DRAFT]
    held = sum(np.asarray(op.count * 0 + op.parameters) for op in drafted if op.parameters is not None)
    weights = dict(zip(kinds, held, strict=True))
    assert weights["ngram"] == 0
    assert 0 < weights["eagle"] < 0.5 * model.parameters
    assert 0 < weights["draft_model"] < 0.7 * model.parameters
    if "mtp" in weights:
        assert weights["mtp"] == pytest.approx(min(model.mtp_layers, 2) * model.mtp_matrix_parameters, rel=0.01)


def test_small_model_on_a_small_chip_drafts_too() -> None:
    hardware = switched_chip()
    for kind in ("eagle", "draft_model", "ngram"):
        assert projected(engine(kind, 2), load(4), dense_model(), hardware).fit == "fits"


def test_decode_pool_speculates_and_prefill_pool_does_not() -> None:
    pools = {"tp": 4, "prefill_replicas": 1, "prefill_tp": 4}
    plain, drafted = (
        projected(engine(*how, **pools), load(8, acceptance)) for how, acceptance in (((), None), (("eagle", 3), 0.7))
    )
    assert plain.tpot_s is not None
    assert drafted.tpot_s is not None
    assert 1.0 < plain.tpot_s / drafted.tpot_s < 2.533
    assert drafted.tpot_s == pytest.approx(drafted.step_time_s / 2.533, rel=1e-3)
    assert plain.ttft_s == pytest.approx(drafted.ttft_s, rel=0.1)
    assert any("(EAGLE-3)" in text for text in drafted.assumptions)


def test_rollout_of_a_reinforcement_step_counts_accepted_tokens() -> None:
    model, hardware = architecture("llama-3.1-8b"), chip("h100")
    step = RlStep(prompts=8, samples=1, prompt_tokens=512, response_tokens=1024, row_tokens=1536)
    seconds = []
    for how in ((), ("eagle", 3)):
        batch = PlanBatch.from_plans([engine(*how, dp=8)])
        found = rollout(batch, model, step, batch.compute_dtype, cluster(hardware, 8), hardware)
        seconds.append(float((found.full_s + found.drain_s)[0]))
    assert 1.5 < seconds[0] / seconds[1] < 2.533
