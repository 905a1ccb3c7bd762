"""Rows a matrix kernel sees in one forward pass of a projected plan: what tells arithmetic from weight reading."""

from agents.planning.job import Job
from projector.breakdown import Projection
from projector.project import project
from projector.specs.plan import ParallelismPlan

PREFILL_RULES_FROM = 2.0


def pass_tokens(plan: ParallelismPlan, projection: Projection, job: Job) -> int:
    """Training: the tokens of a micro-batch on a device. Serving: the rows of the kind of step most time goes to.

    A step decodes one token for each request that runs; some also carry a prefill chunk. Where the mean step lasts at
    least twice as long as one of the same requests without prompts, most of the time is in the steps with chunks.
    """
    workload = job.workload
    if job.phase == "training":
        return plan.micro_batch * (workload.seq_len or 1) // plan.cp
    decoding = min(plan.max_num_seqs, -(-(workload.concurrency or 1) // plan.replicas))
    prompt = workload.input_len or 1
    chunk = min(plan.chunked_prefill_tokens or prompt, prompt)
    return decoding + chunk if _prefill_rules(plan, projection, job) else decoding


def _prefill_rules(plan: ParallelismPlan, projection: Projection, job: Job) -> bool:
    workload, architecture, hardware = job.workload, job.architecture, job.hardware
    if architecture is None or hardware is None or workload.input_len is None or workload.output_len is None:
        return False
    # as many tokens a request, so that as many requests fit, but none of them a prompt
    generated = workload.input_len + workload.output_len - 1
    decode_only = workload.model_copy(update={"input_len": 1, "output_len": generated})
    pure_s = project(plan, decode_only, architecture, job.cluster, hardware).step_time_s
    return pure_s > 0 and projection.step_time_s >= PREFILL_RULES_FROM * pure_s
