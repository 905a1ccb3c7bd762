"""What a step of a decoding engine takes at least: its weights read once from HBM.

Where a profile identifies little of the step, the model still says something: every step that decodes reads the weights
that a device holds, so it cannot be shorter than

    parameters a token is multiplied with * bytes a value / (tp * pp) / HBM bytes/s of the datasheet

A step that such a floor explains by half is limited by HBM, whatever else is in it; KV reads come on top. Weights in
the widest dtype whose floor fits the step are taken: a wider one could not have been read in that time.
"""

from agents.findings import Assumption, Diagnosis, Evidence
from agents.planning.job import Job
from agents.wording import duration, percent
from projector.breakdown import TimeBreakdown
from projector.graph.columns import DTYPE_BYTES
from projector.model_flop import multiplied_parameters
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ComputeDtype, ParallelismPlan

# A floor decides where it explains at least half of the step and all that was identified explains less than half.
DECIDING_FRAC = 0.5
# rounded step times, and chips that run a little above their datasheet
ABOVE_STEP = 1.02
WIDEST_FIRST: tuple[ComputeDtype, ...] = ("fp32", "bf16", "fp8", "fp4")


def with_step_floor(diagnosis: Diagnosis, job: Job) -> tuple[Diagnosis, tuple[Assumption, ...]]:
    """The diagnosis with the floor of its step where that decides what the operators leave open; else as it was."""
    measured, plan, model, hardware = job.measured, job.current, job.architecture, job.hardware
    if measured is None or plan is None or model is None or hardware is None or plan.phase != "serving":
        return diagnosis, ()
    if diagnosis.source != "measured" or sum(diagnosis.scores.values()) >= DECIDING_FRAC:
        return diagnosis, ()
    stored = _widest(job, plan, model, hardware, measured)
    if stored is None:
        return diagnosis, ()
    floor_s = _floor_s(stored, plan, model, hardware)
    share = floor_s / measured.total_s
    if share < DECIDING_FRAC:
        return diagnosis, ()
    evidence = Evidence(
        id="ev-step-floor",
        claim=f"Reading the weights of a device once in {stored} takes at least {duration(floor_s)} at the datasheet's "
        f"HBM rate: {percent(share)} of the measured step of {duration(measured.total_s)}.",
        value=share,
        unit="fraction",
        source="modelled",
        ref=f"catalog.chips[{hardware.id}]",
    )
    return _decided(diagnosis, share, evidence), _assumptions(stored, job, plan)


def _widest(
    job: Job, plan: ParallelismPlan, model: ModelArchitecture, hardware: HardwareProfile, measured: TimeBreakdown
) -> ComputeDtype | None:
    """The widest dtype, from the plan's on, whose floor the step allows; None: none does."""
    stated = job.current_source == "stated" and plan.weight_dtype != job.workload.precision
    start = plan.weight_dtype if stated else job.workload.precision
    narrower = [dtype for dtype in WIDEST_FIRST if DTYPE_BYTES[dtype] <= DTYPE_BYTES[start]]
    allowed = ABOVE_STEP * measured.total_s
    return next((dtype for dtype in narrower if _floor_s(dtype, plan, model, hardware) <= allowed), None)


def _floor_s(stored: ComputeDtype, plan: ParallelismPlan, model: ModelArchitecture, hardware: HardwareProfile) -> float:
    held_bytes = multiplied_parameters(model) * DTYPE_BYTES[stored] / (plan.tp * plan.pp)
    return held_bytes / (hardware.hbm_bytes_per_s.value / hardware.devices_per_chip)


def _decided(diagnosis: Diagnosis, share: float, evidence: Evidence) -> Diagnosis:
    scores = {**diagnosis.scores, "memory": max(share, diagnosis.scores["memory"])}
    runner_up = max(score for name, score in scores.items() if name != "memory")
    sentence = (
        f"The operators leave most of the step open; reading its weights alone takes {percent(share)} of it, so HBM "
        "bandwidth limits it (class memory)."
    )
    return diagnosis.model_copy(
        update={
            "bottleneck": "memory",
            "cause": "hbm_bandwidth",
            "overturned": diagnosis.hypothesis != "memory",
            "overturned_by": evidence.claim if diagnosis.hypothesis != "memory" else "",
            "scores": scores,
            "margin": max(0.0, scores["memory"] - runner_up),
            "summary": f"{sentence} Without the model: {diagnosis.summary}",
            "evidence": (*diagnosis.evidence, evidence),
            "abstained": False,
        }
    )


def _assumptions(stored: ComputeDtype, job: Job, plan: ParallelismPlan) -> tuple[Assumption, ...]:
    if stored in (plan.weight_dtype, job.workload.precision):
        return ()
    return (
        Assumption(
            field="current_plan.weight_dtype",
            value=stored,
            reason=f"weights in {job.workload.precision} could not be read within the measured step",
            matters="wider weights would mean that the step reads only a part of them",
        ),
    )
