"""Every objective of serving: one table of formulas, each held against the projection it follows from."""

from dataclasses import dataclass

import pytest
from projector_examples import cluster, dense_model, figure, ideal, serving, switched_chip

from projector.batch_projection import ProjectionBatch
from projector.breakdown import Projection
from projector.catalog import architecture, chip
from projector.errors import InvalidDescription, UnknownName
from projector.model_flop import served_flop_per_request
from projector.project import project_many
from projector.specs.cluster import ClusterSpec
from projector.specs.objective import OBJECTIVES, alias_note, find_objective, named_objective
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.serving_figures import ServingFigures
from projector.specs.workload import WorkloadSpec

NAMES = tuple(one.name for one in OBJECTIVES if "serving" in one.phases)
# canonical names and aliases of the planner whose users bring their configurations along
THEIRS = {
    "decode_throughput_tps_per_gpu": "max_throughput throughput tokens_per_s_per_gpu max_output_throughput "
    "output_tput_per_gpu",
    "decode_throughput_tps": "max_output_throughput_fleet output_throughput",
    "total_throughput_tps_per_gpu": "max_total_throughput total_throughput_per_gpu tput_per_gpu",
    "total_throughput_tps": "max_total_throughput_fleet total_throughput",
    "prefill_throughput_tps_per_gpu": "max_input_throughput input_tput_per_gpu",
    "prefill_throughput_tps": "max_input_throughput_fleet input_throughput",
    "ttft_ms": "min_ttft ttft",
    "itl_ms": "min_itl itl tpot min_tpot",
    "request_latency_ms": "min_latency latency min_e2el e2el",
    "interactivity_tok_s_per_user": "max_interactivity interactivity intvty",
    "per_request_decode_tps": "max_per_user_throughput per_user_throughput",
    "decode_step_ms_pure": "min_decode_step",
    "decode_step_ms_mixed": "",
    "max_concurrent_sequences": "max_concurrency",
    "max_sustainable_concurrency": "sustainable_concurrency",
    "memory_per_gpu_gb": "min_memory",
    "kv_cache_gb": "min_kv",
    "weights_gb": "min_weights",
    "activation_gb": "min_activation",
    "mixed_step_fraction_pct": "min_mixed_step_fraction",
    "tpot_pollution_pct": "min_tpot_pollution",
    "prefill_comm_ms": "min_prefill_comm",
    "decode_comm_ms": "min_decode_comm",
    "replica_gpus": "min_gpus",
}
REFUSED_BY_THEM = (
    "avg_power_w", "joules_per_output_token", "joules_per_total_token", "mfu", "tflops_per_s_per_gpu", "iteration_ms",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One plan of Llama 3.1 70B: 2 engines of 4 chips, 1,024 prompt and 256 new tokens, 64 requests in flight."""

    projected: ProjectionBatch

    @property
    def one(self) -> Projection:
        return self.projected[0]

    def value(self, name: str) -> float:
        return float(self.projected.objective(name)[0])


@pytest.fixture(scope="module")
def case() -> Case:
    hardware = chip("h100-sxm").model_copy(update={"price_usd_per_chip_hour": figure(2.0)})
    model = architecture("llama-3.1-70b")
    batch = PlanBatch.from_plans([ParallelismPlan(phase="serving", dp=2, tp=4)])
    load = WorkloadSpec(phase="serving", input_len=1024, output_len=256, concurrency=64)
    return Case(project_many(batch, load, model, ClusterSpec(chip=hardware.id, chips=8), hardware))


def test_there_is_one_figure_an_objective():
    assert set(ServingFigures.model_fields) == set(NAMES)
    assert set(THEIRS) | set(REFUSED_BY_THEM) <= set(NAMES)
    assert len(THEIRS) == 24


@pytest.mark.parametrize("name", NAMES)
def test_it_is_reported_in_the_record_as_in_the_column(case, name):
    assert getattr(case.one.serving, name) == pytest.approx(case.value(name))
    assert case.value(name) > 0 or name in ("prefill_comm_ms", "decode_comm_ms")


@pytest.mark.parametrize("entry", [one for one in OBJECTIVES if "serving" in one.phases], ids=lambda one: one.name)
def test_it_has_a_unit_a_direction_and_a_meaning(entry):
    assert entry.unit
    assert entry.meaning
    # what grows with work is maximised, what is paid, waited for or held is minimised
    more = any(word in entry.unit for word in ("tokens/s", "TFLOP/s", "requests", "fraction"))
    assert entry.direction == ("maximise" if more else "minimise")


@pytest.mark.parametrize("name", THEIRS)
def test_aliases_resolve_and_say_so(name):
    for alias in THEIRS[name].split():
        found = find_objective(alias, "serving")
        assert found.name == name
        assert named_objective(alias) == found
        assert alias_note(alias, found).startswith(f"objective {alias} is {name}: ")
    assert alias_note(name, find_objective(name, "serving")) is None


def test_no_name_is_used_twice():
    names = [name for one in OBJECTIVES for name in (one.name, *one.aliases)]
    assert len(names) == len(set(names))


def test_an_unknown_objective_is_refused_with_the_nearest():
    with pytest.raises(UnknownName) as error:
        find_objective("ttft_p99", "serving")
    assert error.value.nearest[0] in ("ttft_ms", "ttft")
    with pytest.raises(UnknownName):
        find_objective("step_time_s", "serving")


# objective -> the formula of the table over other figures of the same projection
FORMULAS = {
    "decode_throughput_tps": lambda v: 1e3 * 64 / v("request_latency_ms") * 256,
    "decode_throughput_tps_per_gpu": lambda v: v("decode_throughput_tps") / 8,
    "total_throughput_tps": lambda v: v("decode_throughput_tps") * (1024 + 256) / 256,
    "total_throughput_tps_per_gpu": lambda v: v("total_throughput_tps") / 8,
    "prefill_throughput_tps_per_gpu": lambda v: v("prefill_throughput_tps") / 8,
    "request_latency_ms": lambda v: v("ttft_ms") + 255 * v("itl_ms"),
    "interactivity_tok_s_per_user": lambda v: 1e3 / v("itl_ms"),
    "per_request_decode_tps": lambda v: 1e3 * 255 / (v("request_latency_ms") - v("ttft_ms")),
    "tpot_pollution_pct": lambda v: 100 * (v("iteration_ms") / v("decode_step_ms_pure") - 1),
    "tflops_per_s_per_gpu": lambda v: v("mfu") * 989.4,
    "joules_per_output_token": lambda v: v("avg_power_w") * 8 / v("decode_throughput_tps"),
    "joules_per_total_token": lambda v: v("avg_power_w") * 8 / v("total_throughput_tps"),
    "cost_per_million_tokens": lambda v: 2.0 / 3600 / v("decode_throughput_tps_per_gpu") * 1e6,
    "cost_per_million_total_tokens": lambda v: 2.0 / 3600 / v("total_throughput_tps_per_gpu") * 1e6,
    "memory_per_gpu_gb": lambda v: v("memory_per_chip_gb"),
    "replica_gpus": lambda v: 4.0,
    "max_sustainable_concurrency": lambda v: min(2 * 64, v("max_concurrent_sequences")),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_figures_follow_their_formulas(case, name):
    assert case.value(name) == pytest.approx(FORMULAS[name](case.value), rel=2e-3)


def test_mean_step_lies_between_pure_and_mixed_by_the_share_of_mixed_steps(case):
    share = case.value("mixed_step_fraction_pct") / 100
    pure, mixed = case.value("decode_step_ms_pure"), case.value("decode_step_ms_mixed")
    assert 0 < share < 1
    assert case.value("iteration_ms") == pytest.approx((1 - share) * pure + share * mixed, rel=1e-6)


def test_pollution_is_the_inflation_of_tpot_and_not_the_share_of_time(case):
    share = case.value("mixed_step_fraction_pct") / 100
    time_share = share * case.value("decode_step_ms_mixed") / case.value("iteration_ms")
    assert case.value("tpot_pollution_pct") < 100 * case.value("decode_step_ms_mixed") / case.value(
        "decode_step_ms_pure"
    )
    assert case.value("tpot_pollution_pct") != pytest.approx(100 * time_share, rel=0.05)


def test_no_traffic_of_prompts_beside_a_lone_request_pollutes_nothing():
    hardware = switched_chip()
    batch = PlanBatch.from_plans([ParallelismPlan(phase="serving")])
    alone = project_many(batch, serving(1), dense_model(), cluster(hardware, 1), hardware)
    assert float(alone.objective("tpot_pollution_pct")[0]) == pytest.approx(0, abs=1e-9)
    assert float(alone.objective("mixed_step_fraction_pct")[0]) == 0
    assert float(alone.objective("decode_comm_ms")[0]) == 0


def test_memory_items_are_those_of_the_breakdown(case):
    memory = case.one.memory
    assert case.value("weights_gb") == pytest.approx(memory.weights_bytes / 1e9)
    assert case.value("kv_cache_gb") == pytest.approx(memory.kv_cache_bytes / 1e9)
    assert case.value("memory_per_gpu_gb") == pytest.approx(memory.total_bytes / 1e9)


def test_power_lies_between_idle_and_the_board(case):
    board = case.projected.hardware.tdp_w.value
    assert 0.15 * board < case.value("avg_power_w") < board


def test_model_flop_of_a_request_by_hand():
    # 8 layers of 1024: 2 FLOP a weight and token; 16 heads of 64 + 64 see 1, 2, ... keys; the head for 2 tokens
    model = dense_model()
    layer = 1024 * (1024 + 2 * 256) + 1024 * 1024 + 3 * 1024 * 4096
    tokens, keys = 3 + 2 - 1, 1 + 2 + 3 + 4
    by_hand = 2 * 8 * layer * tokens + 2 * 2 * 32000 * 1024 + 8 * 2 * 16 * 128 * keys
    assert served_flop_per_request(model, 3, 2) == by_hand
    # a third of the prompt cached: its token is not computed, and the others see it all the same
    saved = 2 * 8 * layer + 8 * 2 * 16 * 128 * 1
    assert served_flop_per_request(model, 3, 2, prefix_hit_frac=1 / 3) == pytest.approx(by_hand - saved)


def test_windows_bound_the_keys_counted():
    wide, narrow = (dense_model(sliding_window=w, sliding_layers=8) for w in (1000, 2))
    pairs = served_flop_per_request(wide, 3, 2) - served_flop_per_request(narrow, 3, 2)
    assert pairs == 8 * 2 * 16 * 128 * (10 - (1 + 2 + 2 + 2))


def test_what_needs_a_price_or_a_power_is_refused_without_one():
    hardware = switched_chip(calibration=ideal())
    batch = PlanBatch.from_plans([ParallelismPlan(phase="serving")])
    projected = project_many(batch, serving(1), dense_model(), cluster(hardware, 1), hardware)
    for name, lacking in (("cost_per_million_tokens", "price"), ("avg_power_w", "board power")):
        with pytest.raises(InvalidDescription, match=lacking):
            projected.objective(name)
        assert getattr(projected[0].serving, name) is None


def test_a_plan_that_serves_nothing_has_the_worst_of_every_rate():
    hardware = chip("h100-sxm")
    batch = PlanBatch.from_plans([ParallelismPlan(phase="serving")])
    load = WorkloadSpec(phase="serving", input_len=1024, output_len=256, concurrency=1)
    projected = project_many(
        batch, load, architecture("llama-3.1-70b"), ClusterSpec(chip=hardware.id, chips=1), hardware
    )
    assert float(projected.objective("throughput")[0]) == 0
    assert float(projected.objective("ttft")[0]) == float("inf")
    assert float(projected.objective("joules_per_output_token")[0]) == float("inf")
    assert projected[0].serving.decode_throughput_tps is None
