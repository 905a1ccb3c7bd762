"""A machine whose terms differ from the model's by known factors, and what a trace of it would show."""

from dataclasses import dataclass

import numpy as np

from projector import catalog
from projector.anchor.anchor import Anchor
from projector.anchor.anchored_batch import AnchoredBatch
from projector.anchor.measured_step import IdleShares, LinkRatio, MeasuredStep
from projector.anchor.ratios import anchor_of
from projector.batch_projection import ProjectionBatch
from projector.project import project_many
from projector.search_space import explore
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Constraints
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import WorkloadSpec

CHIP = "h100-sxm"
BY_LAUNCHES = IdleShares(launches=0.9, pauses=0.0, waiting=0.1)
DENSE = ParallelismPlan(dp=4, tp=8, pp=2, sp=True, micro_batch=1, grad_accum=32, zero_stage=1, recompute="selective")
SMALL = ParallelismPlan(dp=8, micro_batch=1, grad_accum=8)


def machine(*, link: float = 1.0, gemm: float = 1.0, host: float = 1.0) -> HardwareProfile:
    """H100 with links of `link` times their bandwidth, GEMMs `gemm` times and launches `host` times slower."""
    chip = catalog.chip(CHIP)
    rate, old = chip.intra.bytes_per_s_one_way, chip.calibration
    assert rate is not None
    fabric = chip.intra.model_copy(update={"bytes_per_s_one_way": rate.model_copy(update={"value": rate.value * link})})
    calibration = old.model_copy(
        update={
            "gemm_efficiency_frac": old.gemm_efficiency_frac / gemm,
            "kernel_launch_s": old.kernel_launch_s * host,
        }
    )
    return chip.model_copy(update={"intra": fabric, "calibration": calibration})


@dataclass(frozen=True)
class Job:
    """A model on so many H100, and the plan that a trace shows."""

    model: str
    chips: int
    workload: WorkloadSpec
    current: ParallelismPlan

    @property
    def cluster(self) -> ClusterSpec:
        return ClusterSpec(chip=CHIP, chips=self.chips)

    def on(self, hardware: HardwareProfile, *plans: ParallelismPlan) -> ProjectionBatch:
        """The plans projected on a machine; the whole search space where none is named."""
        model = catalog.architecture(self.model)
        batch = (
            PlanBatch.from_plans(plans)
            if plans
            else explore(self.workload, model, self.cluster, hardware, Constraints(), self.current).plans
        )
        return project_many(batch, self.workload, model, self.cluster, hardware)

    def step_on(
        self,
        hardware: HardwareProfile,
        *,
        idle: IdleShares | None = None,
        links: tuple[LinkRatio, ...] = (),
        deviation_frac: float = 0.01,
        copy_s: float = 0.0,
    ) -> MeasuredStep:
        """What a trace of the current plan on that machine shows."""
        found = self.on(hardware, self.current)[0].breakdown
        total_s = found.total_s + copy_s
        parts = found.model_copy(update={"source": "measured", "exposed_copy_s": copy_s, "total_s": total_s})
        return MeasuredStep(
            total_s=total_s, breakdown=parts, steps=5, deviation_s=deviation_frac * total_s, idle=idle, links=links
        )

    def anchor(self, step: MeasuredStep) -> Anchor:
        found = anchor_of(self.on(catalog.chip(CHIP), self.current), step)
        assert isinstance(found, Anchor), found
        return found

    def anchored(self, step: MeasuredStep, *plans: ParallelismPlan) -> AnchoredBatch:
        chip = catalog.chip(CHIP)
        return AnchoredBatch.of(self.on(chip, *plans), self.anchor(step), self.cluster, chip)


LARGE_JOB = Job("llama-3.1-70b", 64, WorkloadSpec(seq_len=8192, global_batch=128), DENSE)
SMALL_JOB = Job("mpt-125m", 8, WorkloadSpec(seq_len=256, global_batch=64), SMALL)


def errors(job: Job, hardware: HardwareProfile, step: MeasuredStep, doublings: float) -> tuple[float, float]:
    """(mean error as modelled, anchored) of the plans that fit and are so near, against the machine as it is."""
    anchored = job.anchored(step)
    true_s = job.on(hardware).step_time_s
    move = anchored.transport.move
    near = anchored.fits & ~move.unchanged & (move.doublings <= doublings)
    assert near.any()
    return tuple(  # type: ignore[return-value]
        float(np.abs(found[near] / true_s[near] - 1).mean())
        for found in (anchored.modelled.step_time_s, anchored.step_time_s)
    )
