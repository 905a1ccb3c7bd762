"""How the layout causes the bottleneck: sentences with numbers, for the cause at hand and no other."""

from typing import Any

import pytest
from planning_examples import summary_of, sure

from agents.advisors.rules import RulesAdvisor
from agents.findings import Diagnosis
from agents.planning.graph import run_plan
from agents.planning.state import NoKnowledge
from agents.request import PlanRequest
from traces.summary_types import Implied, TraceSummary

HBM = {"elementwise": 800, "gemm": 150}
EXPOSED = {"gemm": 300}


def diagnosis_of(plan: dict[str, Any], summary: TraceSummary | None, **request: Any) -> Diagnosis:
    phase = plan.get("phase", "training")
    sizes: dict[str, Any] = {"seq_len": 8192, "global_batch": 64}
    if phase == "serving":
        sizes = {"input_len": 1024, "output_len": 256, "concurrency": 64}
    asked = {
        "workload": {"model": "llama-3.1-8b", "phase": phase, **sizes},
        "cluster": {"chip": "h100-sxm", "chips": 16},
        "current_plan": {"phase": phase, **plan},
    } | request
    result = run_plan(PlanRequest.model_validate(asked), summary, knowledge=NoKnowledge(), advisor=RulesAdvisor())
    ids = [entry.id for entry in result.evidence]
    assert len(set(ids)) == len(ids)
    assert {entry.id for entry in result.diagnosis.mesh} <= set(ids)
    return result.diagnosis


def claims(diagnosis: Diagnosis) -> dict[str, str]:
    return {entry.id.removeprefix("ev-mesh-"): entry.claim for entry in diagnosis.mesh}


def exposed(axis: Any) -> TraceSummary:
    implied = Implied(phase=sure("training"))
    return summary_of(compute_ms=300, exposed_ms=600, kinds={"gemm": 300}, collectives=[(axis, 600)], implied=implied)


def test_model_axis_1_keeps_a_full_replica_on_every_device() -> None:
    """8.03 billion parameters of 2 bytes: 16.1 GB."""
    summary = summary_of(compute_ms=950, kinds={"elementwise": 800, "gemm": 150})
    told = claims(diagnosis_of({"dp": 16, "grad_accum": 4}, summary))
    assert "model (tp) axis 1" in told["weights"]
    assert "each of the 16 devices holds, reads and updates all 16.1 GB of weights: a full replica" in told["weights"]


def test_what_is_split_says_how_many_ways_and_how_much_is_left() -> None:
    """tp 4 x fsdp 4: 16 ways, one copy; batch / (data 4 x seq 1); 8,192 tokens at a time."""
    summary = summary_of(compute_ms=950, kinds={"elementwise": 800, "gemm": 150})
    told = claims(diagnosis_of({"dp": 4, "fsdp": 4, "zero_stage": 3, "tp": 4, "grad_accum": 16}, summary))
    assert (
        told["weights"] == "tp 4 x pp 1 x fsdp 4 split the weights 16 ways: 1.0 GB of 16.1 GB a device, 1 copy in all."
    )
    assert "batch / (data 4 x seq 1) = 1/4 of the step's tokens, 8,192 at a time" in told["activations"]


def test_a_group_that_leaves_its_domain_names_the_link() -> None:
    """16 ranks over domains of 8: two of them."""
    told = claims(diagnosis_of({"dp": 16, "fsdp": 16, "zero_stage": 3, "grad_accum": 4}, exposed("fsdp")))
    assert "spans 2 domains of 8: it runs at" in told["group-fsdp"]
    assert "GB/s a device of nic" in told["group-fsdp"]
    assert told["gathers"] == (
        "Weights sharded over 16 ranks are gathered anew by each of the 4 micro-batches of a step."
    )


def test_context_parallelism_says_what_it_leaves_of_a_sequence() -> None:
    told = claims(diagnosis_of({"dp": 4, "cp": 4, "grad_accum": 16}, exposed("cp")))
    assert told["context"] == (
        "Context parallelism 4 leaves 2,048 of 8,192 tokens to a rank, which passes keys and values on 3 times a layer."
    )


def test_a_pipeline_says_its_bubble() -> None:
    """(4 - 1) / (8 + 4 - 1) = 27.3 %."""
    summary = summary_of(compute_ms=300, kinds={"gemm": 300}, launch_bound_frac=0.1)
    diagnosis = diagnosis_of({"dp": 4, "pp": 4, "grad_accum": 16}, None)
    assert "pipeline" not in claims(diagnosis) or diagnosis.cause == "pipeline_bubble"
    told = claims(diagnosis_of({"dp": 2, "pp": 8, "grad_accum": 32}, with_stages(summary, 8)))
    assert (
        "8 stages with 32 micro-batches and 1 virtual stages leave (p - 1) / (v m + p - 1) = 17.9 %" in told["pipeline"]
    )


def with_stages(summary: TraceSummary, stages: int) -> TraceSummary:
    return summary.model_copy(update={"implied": Implied(phase=sure("training"), pp=sure(stages))})


def test_tensor_parallelism_beyond_the_kv_heads_stores_them_twice() -> None:
    """Eight KV heads over sixteen ranks."""
    implied = Implied(phase=sure("serving"))
    summary = summary_of(compute_ms=950, kinds={"elementwise": 800, "gemm": 150}, implied=implied)
    told = claims(diagnosis_of({"phase": "serving", "tp": 16}, summary))
    assert "beyond the 8 KV heads" in told["kv-cache"]
    assert "stored 2 times" in told["kv-cache"]


def test_compute_says_what_shard_a_kernel_sees() -> None:
    """8,192 tokens over seq 2: 4,096 rows."""
    summary = summary_of(compute_ms=950, kinds={"gemm": 950}, implied=Implied(phase=sure("training")))
    told = claims(diagnosis_of({"dp": 2, "tp": 4, "cp": 2, "grad_accum": 32}, summary))
    assert "sees 4,096 rows (seq 2) and 1/4 of a weight (model 4)" in told["kernels"]


def test_launches_are_not_fewer_with_more_tensor_parallelism() -> None:
    summary = summary_of(compute_ms=100, kinds={"gemm": 100}, launch_bound_frac=0.95)
    told = claims(diagnosis_of({"dp": 2, "tp": 8, "grad_accum": 32}, summary))
    assert set(told) == {"launches"}


@pytest.mark.parametrize("cause", ["compute_throughput", "host_idle"])
def test_a_cause_the_layout_has_no_part_in_has_no_reason(cause) -> None:
    kinds = {"gemm": 950} if cause == "compute_throughput" else {"gemm": 100}
    summary = summary_of(compute_ms=sum(kinds.values()), kinds=kinds, implied=Implied(phase=sure("training")))
    diagnosis = diagnosis_of({"dp": 16, "grad_accum": 4}, summary)
    assert (diagnosis.cause, diagnosis.mesh) == (cause, ())


def test_stated_memory_reaches_the_diagnosis() -> None:
    plan = {"dp": 16, "fsdp": 16, "zero_stage": 3, "grad_accum": 4}
    out = diagnosis_of(plan, None, observed={"out_of_memory": True})
    assert (out.cause, out.bottleneck) == ("hbm_capacity", "memory")
    assert "weights" in claims(out)
    full = diagnosis_of(plan, None, observed={"peak_memory_gb": 79.7, "memory_limit_gb": 80})
    assert full.cause == "hbm_capacity"
    assert full.capacity is not None
    assert full.capacity.used_frac == pytest.approx(0.99625)
