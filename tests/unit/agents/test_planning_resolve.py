"""Putting request and trace together: the request wins, every value has an origin, contradictions are refused."""

import pytest
from planning_examples import summary_of, sure
from pydantic import ValidationError

from agents.planning.resolve import resolve
from agents.request import PlanRequest
from projector.errors import InvalidDescription, UnknownName
from traces.summary_types import Implied, ModelShapes, ProcessGroup

B200_SERVING = Implied(
    chip_name=sure("NVIDIA B200"),
    hbm_bytes=sure(191_514_935_296),
    world_size=sure(8),
    groups=(ProcessGroup(name="tp:0", size=8),),
    tp=sure(8),
    phase=sure("serving"),
    is_transformer_lm=sure(True),
    dtype=sure("bf16"),
    shapes=ModelShapes(hidden_size=2880, layers=36, vocab_shard=25136, heads_per_rank=8, experts=128, tokens=16),
)
EAGER = summary_of(compute_ms=120, exposed_ms=20, kinds={"gemm": 120}, launch_bound_frac=0.98, implied=B200_SERVING)
LLAMA = {"workload": {"model": "llama-3.1-70b"}, "cluster": {"chip": "h100-sxm", "chips": 64}}


def job_of(request, summary=None):
    return resolve(PlanRequest.model_validate(request), summary)


def assumed(job):
    return {entry.field: entry.value for entry in job.assumptions}


def test_a_trace_alone_resolves_to_a_job():
    job = job_of({}, EAGER)
    assert (job.phase, job.cluster.chip, job.cluster.chips) == ("serving", "b200", 8)
    assert job.architecture is not None
    assert job.architecture.name == "gpt-oss-120b"
    assert job.current is not None
    assert (job.current.tp, job.current.dp, job.current.cuda_graphs) == (8, 1, False)
    assert (job.mode, job.current_source) == ("absolute", "inferred")
    assert assumed(job) == {
        "workload.input_len": "1024",
        "workload.output_len": "256",
        "workload.concurrency": "64",
        "current_plan.max_num_seqs": "64",
    }
    claims = {entry.id: entry.claim for entry in job.evidence}
    assert claims["ev-job-chip"].startswith("The trace implies chip b200 ('NVIDIA B200') (confidence 0.90")
    assert "gpt-oss-120b" in claims["ev-job-model"]


def test_every_assumption_says_how_the_answer_would_change():
    assert all(entry.reason and entry.matters for entry in job_of({}, EAGER).assumptions)


def test_the_request_wins_and_the_difference_is_a_warning():
    job = job_of({"cluster": {"chip": "H100", "chips": 16}, "workload": {"model": "llama-3.1-8b"}}, EAGER)
    assert (job.cluster.chip, job.cluster.chips) == ("h100-sxm", 16)
    assert job.architecture is not None
    assert job.architecture.name == "llama-3.1-8b"
    assert job.measured is None
    assert job.current is None
    assert any("recorded on 'NVIDIA B200'" in text for text in job.warnings)
    assert any("recorded on 8 devices, the request plans for 16" in text for text in job.warnings)
    assert any("hidden size 2880, llama-3.1-8b has 4096" in text for text in job.warnings)


def test_a_default_nobody_wrote_is_no_statement():
    """WorkloadSpec says training unless told otherwise; naming only the model does not overrule the trace."""
    assert job_of({"workload": {"model": "gpt-oss-120b"}}, EAGER).phase == "serving"


def test_an_unknown_model_is_planned_relative_to_the_measured_step():
    implied = B200_SERVING.model_copy(update={"shapes": ModelShapes(hidden_size=1111)})
    job = job_of({}, EAGER.model_copy(update={"implied": implied}))
    assert (job.architecture, job.mode) == (None, "relative")
    assert assumed(job)["workload.model"] == "unknown"


def test_an_unknown_chip_keeps_its_name_as_data():
    implied = B200_SERVING.model_copy(update={"chip_name": sure("Hypothetical\nX9")})
    job = job_of({}, EAGER.model_copy(update={"implied": implied}))
    assert (job.chip_known, job.cluster.chip, job.hardware) == (False, "Hypothetical X9", None)
    assert job.mode == "relative"


def test_ranks_are_counted_aloud_when_no_world_size_is_known():
    implied = Implied(chip_name=sure("NVIDIA B200"), phase=sure("training"))
    job = job_of({}, summary_of(ranks=[(100, 10)] * 4, implied=implied))
    assert job.cluster.chips == 4
    assert assumed(job)["cluster.chips"] == "4"
    assert assumed(job)["current_plan"] == "dp 4"
    assert job.current_source == "assumed"


def test_groups_that_contradict_the_world_leave_the_layout_unknown():
    implied = B200_SERVING.model_copy(update={"tp": sure(3)})
    job = job_of({}, EAGER.model_copy(update={"implied": implied}))
    assert job.current is None
    assert any("tp 3 x pp 1 does not divide 8 devices" in text for text in job.warnings)


def test_more_sequences_a_step_than_any_job_has_are_a_typed_refusal():
    implied = Implied(
        chip_name=sure("NVIDIA B200"),
        world_size=sure(2**20),
        dp=sure(2**20),
        phase=sure("training"),
        shapes=ModelShapes(tokens=2**20),
    )
    with pytest.raises(InvalidDescription, match="sequences on 1,048,576 devices"):
        job_of({}, summary_of(compute_ms=500, implied=implied))


def test_sharded_training_is_read_off_its_collectives():
    implied = Implied(
        chip_name=sure("NVIDIA B200"),
        world_size=sure(8),
        dp=sure(8),
        phase=sure("training"),
        shapes=ModelShapes(tokens=8192),
    )
    job = job_of({}, summary_of(compute_ms=500, exposed_ms=100, collectives=[("fsdp", 100)], implied=implied))
    assert job.current is not None
    assert (job.current.fsdp, job.current.zero_stage) == (8, 3)
    assert (job.workload.seq_len, job.workload.global_batch) == (8192, 8)


def test_accumulation_follows_from_the_global_batch():
    current = {"dp": 8, "tp": 8, "micro_batch": 2}
    job = job_of(
        {**LLAMA, "workload": {"model": "llama-3.1-70b", "global_batch": 512, "seq_len": 8192}, "current_plan": current}
    )
    assert job.current is not None
    assert job.current.grad_accum == 32


def test_compared_chips_are_one_tpu_and_one_gpu_other_than_the_own():
    assert job_of(LLAMA).compare == ("tpu-v5p", "b200")
    assert job_of({**LLAMA, "cluster": {"chip": "tpu-v5p", "chips": 64}}).compare == ("tpu-v6e", "h100-sxm")
    assert job_of({**LLAMA, "hardware": ["H100", "v5e", "v5e"]}).compare == ("tpu-v5e",)


def test_a_layout_capped_below_the_cluster_is_planned_for_the_part():
    job = job_of({**LLAMA, "constraints": {"max_chips": 32}, "current_plan": {"dp": 8, "tp": 8}})
    assert (job.cluster.chips, job.current) == (32, None)
    assert any("max_chips 32 leaves 32 of 64 chips" in text for text in job.warnings)


def test_what_is_no_language_model_is_not_plannable():
    implied = Implied(chip_name=sure("NVIDIA B200"), is_transformer_lm=sure(False), world_size=sure(2))
    summary = summary_of(compute_ms=500, kinds={"gemm": 500}, implied=implied)
    assert "does not show a transformer language model" in (job_of({}, summary).not_plannable or "")
    stated = {"workload": {"model": "llama-3.1-8b", "phase": "training"}}
    assert job_of(stated, summary).not_plannable is None


def test_no_device_event_means_no_plan():
    assert "no device event" in (job_of({}, summary_of(device=False)).not_plannable or "")


@pytest.mark.parametrize(
    ("request_body", "message"),
    [
        ({}, "nothing to plan"),
        ({"workload": {"phase": "training"}}, "lacks workload.model (or architecture) and cluster.chip"),
        ({"cluster": LLAMA["cluster"]}, "lacks workload.model"),
        ({**LLAMA, "current_plan": {"dp": 8, "tp": 4}}, "current_plan occupies 32 devices, the cluster has 64"),
        (
            {**LLAMA, "workload": {"model": "llama-3.1-70b", "phase": "training"}, "slo": {"ttft_ms": 500}},
            "workload.phase says training, slo says serving",
        ),
        (
            {**LLAMA, "current_plan": {"phase": "serving", "tp": 64}, "objective": "step_time_s"},
            "current_plan.phase says serving, objective says training",
        ),
        ({**LLAMA, "constraints": {"fixed": {"tp": 48}}}, "fixed asks for tp 48, which does not divide 64 devices"),
        (
            {**LLAMA, "constraints": {"fixed": {"tp": 8}, "bounds": {"tp": {"high": 4}}}},
            "constraints.fixed sets tp = 8, outside constraints.bounds [-, 4]",
        ),
        (
            {
                **LLAMA,
                "workload": {"model": "llama-3.1-70b", "global_batch": 512},
                "current_plan": {"dp": 8, "tp": 8, "micro_batch": 1, "grad_accum": 8},
            },
            "workload.global_batch is 512, current_plan makes dp 8 x micro_batch 1 x grad_accum 8 = 64",
        ),
        ({**LLAMA, "current_plan": {"dp": 64, "ep": 64}}, "current_plan (dp 64 ep 64) cannot run: "),
        (
            {
                **LLAMA,
                "workload": {"model": "llama-3.1-70b", "global_batch": 36},
                "current_plan": {"dp": 8, "tp": 8, "micro_batch": 1},
            },
            "does not divide workload.global_batch 36",
        ),
    ],
)
def test_contradictions_are_refused_with_both_values(request_body, message):
    with pytest.raises(InvalidDescription) as error:
        job_of(request_body)
    assert message in error.value.message


@pytest.mark.parametrize(
    ("request_body", "nearest"),
    [
        ({**LLAMA, "cluster": {"chip": "h100-smx", "chips": 8}}, "h100-sxm"),
        ({**LLAMA, "workload": {"model": "gpt-oss-120"}}, "gpt-oss-120b"),
        ({**LLAMA, "hardware": ["tpu-v5q"]}, "tpu-v5p"),
        ({**LLAMA, "objective": "step_time"}, "step_time_s"),
    ],
)
def test_unknown_names_come_with_the_nearest(request_body, nearest):
    with pytest.raises(UnknownName) as error:
        job_of(request_body)
    assert nearest in error.value.nearest


def test_unknown_keys_are_refused():
    with pytest.raises(ValidationError, match="Extra inputs"):
        PlanRequest.model_validate({"clusters": {}})


def test_a_served_model_defaults_to_the_precision_its_checkpoint_is_stored_in():
    body = {"workload": {"phase": "serving", "model": "deepseek-v3"}, "cluster": {"chip": "h200", "chips": 8}}
    job = job_of(body)
    assert job.workload.precision == "fp8"
    assert any("as the checkpoint is stored" in assumption.reason for assumption in job.assumptions)
    assert job_of({**body, "workload": {**body["workload"], "precision": "bf16"}}).workload.precision == "bf16"


def test_the_traffic_of_a_request_is_kept_and_a_rate_needs_no_concurrency():
    traffic = {"request_rate_per_s": 12.0, "arrivals": "poisson", "length_spread_frac": 0.2, "prefix_hit_frac": 0.5}
    body = {
        "workload": {"phase": "serving", "model": "llama-3.1-8b", **traffic},
        "cluster": {"chip": "h200", "chips": 8},
    }
    job = job_of(body)
    assert {name: getattr(job.workload, name) for name in traffic} == traffic
    assert job.workload.concurrency is None
    assert "workload.concurrency" not in assumed(job)


def test_the_engine_of_a_request_is_kept():
    cluster = {"chip": "h200", "chips": 8}
    job = job_of({"workload": {"phase": "serving", "model": "llama-3.1-8b", "engine": "vllm 0.19"}, "cluster": cluster})
    assert job.workload.engine == "vllm 0.19"
