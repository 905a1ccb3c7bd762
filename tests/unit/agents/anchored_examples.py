"""A traced training job whose machine differs from the model by known factors: the summary its profiler would give."""

from typing import Any

from planning_examples import sure

from projector import catalog
from projector.breakdown import TimeBreakdown
from projector.project import project
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan
from projector.specs.workload import WorkloadSpec
from traces.measure_types import IdleSplit, StepStatistics
from traces.summary_types import (
    CollectiveTime,
    Implied,
    KernelClassTime,
    RankSummary,
    StepShares,
    TraceSummary,
    Window,
)

CHIP, CHIPS, MODEL = "h100-sxm", 64, "llama-3.1-70b"
CURRENT: dict[str, Any] = {
    "dp": 4,
    "tp": 8,
    "pp": 2,
    "sp": True,
    "micro_batch": 1,
    "grad_accum": 32,
    "zero_stage": 1,
    "recompute": "selective",
}
REQUEST: dict[str, Any] = {
    "workload": {"model": MODEL, "phase": "training", "seq_len": 8192, "global_batch": 128},
    "cluster": {"chip": CHIP, "chips": CHIPS},
    "current_plan": CURRENT,
}
STEPS = 4


def machine(*, link: float = 1.0, gemm: float = 1.0) -> HardwareProfile:
    """H100 with links of `link` times their bandwidth and GEMMs `gemm` times slower."""
    chip = catalog.chip(CHIP)
    rate = chip.intra.bytes_per_s_one_way
    assert rate is not None
    slower = rate.model_copy(update={"value": rate.value * link})
    efficiency = chip.calibration.gemm_efficiency_frac / gemm
    return chip.model_copy(
        update={
            "intra": chip.intra.model_copy(update={"bytes_per_s_one_way": slower}),
            "calibration": chip.calibration.model_copy(update={"gemm_efficiency_frac": efficiency}),
        }
    )


def step_on(hardware: HardwareProfile, plan: dict[str, Any]) -> TimeBreakdown:
    """The step of a plan on that machine."""
    workload = WorkloadSpec.model_validate(REQUEST["workload"])
    cluster = ClusterSpec(chip=CHIP, chips=CHIPS)
    found = project(ParallelismPlan.model_validate(plan), workload, catalog.architecture(MODEL), cluster, hardware)
    return found.breakdown


def trace_on(hardware: HardwareProfile, *, marked: bool = True, plan: dict[str, Any] | None = None) -> TraceSummary:
    """Four steps of one rank: every part of the step as that machine takes it, in whole nanoseconds."""
    step = step_on(hardware, plan or CURRENT)
    shares = _shares(step)
    window = {name: STEPS * value for name, value in shares.items()}
    length = shares["window_ns"]
    marks = tuple(
        StepShares(name=f"ProfilerStep#{place}", start_ns=place * length, end_ns=(place + 1) * length, **shares)
        for place in range(STEPS)
    )
    recorded = Window(name="whole file", start_ns=0, end_ns=STEPS * length, device=True)
    rank = RankSummary(
        rank=0,
        device=0,
        file="rank0.json",
        window=recorded,
        kernel_count=10_000,
        steps=marks if marked else (),
        step_statistics=_statistics(length) if marked else None,
        step_idle=IdleSplit(
            host_bound_ns=0, launch_gap_ns=0, dependency_ns=window["idle_ns"], unknown_ns=0
        ) if marked else None,
        **window,
    )  # fmt: skip
    return TraceSummary(
        format="kineto",
        files=("rank0.json",),
        window=recorded,
        ranks=(rank,),
        kernel_classes=tuple(
            KernelClassTime(kind=one.kind, count=100, total_ns=STEPS * round(1e9 * one.time_s)) for one in step.by_kind
        ),
        collectives=tuple(
            CollectiveTime(
                collective="all_reduce",
                group=one.axis,
                group_size=8,
                axis=one.axis,
                count=100,
                total_ns=STEPS * round(1e9 * one.total_s),
                exposed_ns=STEPS * round(1e9 * one.exposed_s),
            )
            for one in step.by_axis
        ),
        implied=Implied(phase=sure("training")),
        **window,
    )


def _shares(step: TimeBreakdown) -> dict[str, int]:
    compute, exposed, idle = (
        round(1e9 * value) for value in (step.compute_s, step.exposed_communication_s, step.idle_s)
    )
    return {
        "window_ns": compute + exposed + idle,
        "compute_ns": compute,
        "communication_ns": exposed + round(1e9 * step.overlapped_communication_s),
        "exposed_communication_ns": exposed,
        "copy_ns": 0,
        "exposed_copy_ns": 0,
        "idle_ns": idle,
        "unclassified_ns": 0,
    }


def _statistics(length_ns: int) -> StepStatistics:
    return StepStatistics(
        marks="profiler steps",
        measured=STEPS,
        mean_ns=length_ns,
        median_ns=length_ns,
        deviation_ns=0.01 * length_ns,
        shortest_ns=length_ns,
        longest_ns=length_ns,
        conclusive=True,
    )
