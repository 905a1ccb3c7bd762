"""A framework named in the request: what it bounds, whose kernels are projected, and names that are none."""

import numpy as np
import pytest

from agents.frameworks import FRAMEWORKS, framework_called, framework_named
from agents.planning.resolve import resolve
from agents.planning.scores import legal_space, score
from agents.request import PlanRequest
from projector.errors import InvalidDescription, UnknownName
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Constraints
from projector.specs.plan import ParallelismPlan
from projector.specs.workload import WorkloadSpec

TRAINING = WorkloadSpec(model="llama-3.1-8b", seq_len=4096, global_batch=64)
SERVING = WorkloadSpec(phase="serving", model="llama-3.1-8b", input_len=1024, output_len=128, concurrency=8)
CLUSTER = ClusterSpec(chip="h100-sxm", chips=16)


def job_of(framework, workload=TRAINING, **parts):
    return resolve(PlanRequest(workload=workload, cluster=CLUSTER, framework=framework, **parts), None)


def test_a_stack_without_tensor_parallelism_gets_no_plan_with_it():
    anything, sharded = legal_space(job_of(None)).plans, legal_space(job_of("fms-fsdp")).plans
    assert (anything.tp > 1).any()
    assert (sharded.tp == 1).all()
    assert (sharded.pp == 1).all()
    assert (sharded.fsdp > 1).all()


def test_the_job_says_which_stack_was_stated_and_projects_its_kernels():
    job = job_of("MaxText GPU")
    assert job.framework == "MaxText"
    assert job.software == framework_called("MaxText").software
    assert any(entry.id == "ev-job-framework" for entry in job.evidence)
    plain = job_of(None)
    batch = legal_space(plain).plans.take(np.arange(3))
    own, any_stack = score(batch, job).projections, score(batch, plain).projections
    assert own.memory_bytes[0] < any_stack.memory_bytes[0]  # XLA holds the logits of the loss in 16 bit


def test_a_stack_that_does_not_accumulate_does_so_only_where_nothing_fits_otherwise():
    assert (legal_space(job_of("maxtext")).plans.grad_accum == 1).all()
    huge = WorkloadSpec(model="llama-3.1-8b", seq_len=8192, global_batch=16384)
    assert (legal_space(job_of("maxtext", huge)).plans.grad_accum > 1).any()


def test_the_current_plan_stays_in_the_space_of_a_stack_that_is_not_known_to_run_it():
    current = ParallelismPlan(tp=2, dp=8, grad_accum=8, compute_dtype="bf16", zero_stage=3, fsdp=8)
    space = legal_space(job_of("megatron-bridge", current_plan=current))
    assert current in list(space.plans)
    assert space.notes[-1].endswith("the current plan, which it is not known to run")


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda one: one.name)
def test_a_framework_is_found_by_its_own_name(framework):
    assert framework_named(framework.name) == framework


def test_an_unknown_name_is_refused_with_the_nearest_ones():
    with pytest.raises(UnknownName, match="unknown framework 'maxtxet'") as refused:
        job_of("maxtxet")
    assert "maxtext" in refused.value.hint
    with pytest.raises(UnknownName, match="unknown engine"):
        job_of("vlmm", SERVING)


def test_in_serving_it_is_the_engine_and_may_not_be_another_one_than_the_workloads():
    assert job_of("vllm 0.10", SERVING).workload.engine == "vllm 0.10"
    named = SERVING.model_copy(update={"engine": "vllm"})
    assert job_of("vllm 0.10", named).workload.engine == "vllm"
    with pytest.raises(InvalidDescription, match=r"framework is 'sglang' and workload.engine is 'vllm'"):
        job_of("sglang", named)


def test_a_constraint_that_the_stack_cannot_keep_is_refused():
    job = job_of("fms-fsdp", constraints=Constraints(fixed={"tp": 2}))
    with pytest.raises(InvalidDescription, match=r"constraints.fixed asks for tp 2, and fms-fsdp has 1 only"):
        legal_space(job)
