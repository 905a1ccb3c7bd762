"""project_rl(): one step of reinforcement learning, phase by phase, and what of it overlaps."""

from projector.batch_projection import IntervalRule, ProjectionBatch
from projector.breakdown import MemoryBreakdown, TimeBreakdown
from projector.breakdown_sums import in_sequence, repeated
from projector.cost.device import Device
from projector.cost.speculation import speculation_assumptions
from projector.cost.weight_sync import weight_sync_s
from projector.errors import InvalidDescription
from projector.project_input import assumptions, check, math_dtypes, sizes
from projector.rl_projection import Pool, RlPhase, RlProjection
from projector.rollout import Rollout, rollout
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.objective import Rejection
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.rl import RlPlan, RlStep
from projector.specs.software import CURRENT, Software
from projector.specs.workload import WorkloadSpec
from projector.training import project_training
from projector.units import bytes_to_gb

# 10th and 90th percentile of measured over projected step time, rounded outwards
INTERVAL = IntervalRule(0.75, 1.3, "80 % of 17 published RL steps measured within these factors of the projection")


def project_rl(
    plan: RlPlan,
    step: RlStep,
    architecture: ModelArchitecture,
    cluster: ClusterSpec,
    hardware: HardwareProfile,
    *,
    software: Software = CURRENT,
) -> RlProjection:
    """One step: rollout, forward passes, updates, hand-over of the weights.

        colocated                    rollout + offload + log-probs + updates + sync
        separate, on policy          the same without offload; each pool waits while the other works
        separate, steps_off_policy   max(rollout + sync, log-probs + updates + sync)

    rollout: `projector.rollout`; log-probs and updates: forward pass and step of the training plan; sync:
    `weight_sync_s`; offload: trainer states (weights, gradients, optimizer) to host memory before the rollout and back,
    at the rate of the host link.

    InvalidDescription where the description contradicts itself: plans that do not occupy the cluster, an accumulation
    that does not fit the rows of an update, or what `project_many` refuses. What does not fit is no error but in
    `rejections`.
    """
    _check(plan, step, cluster, hardware)
    trainer, engines = (_pool(one, hardware) for one in (plan.training, plan.rollout))
    updates = _trained(plan.training, step, architecture, trainer, hardware, software)
    scored = _scored(plan.training, step, architecture, trainer, hardware, software)
    generated, said = _generated(plan, step, architecture, engines, hardware)
    memory, engine_memory = updates.memory.record(0), generated.memory.record(0)
    offload, unpriced = _offload(plan, memory, hardware)
    phases = (
        RlPhase(name="rollout", pool=_of(plan, "engines"), breakdown=generated.breakdown.record(0)),
        *offload,
        RlPhase(
            name="log_probs",
            pool=_of(plan, "trainer"),
            breakdown=repeated(scored.breakdown.record(0), step.forward_passes),
        ),
        RlPhase(
            name="training",
            pool=_of(plan, "trainer"),
            breakdown=repeated(updates.breakdown.record(0), step.updates * step.trained_models),
        ),
        RlPhase(name="weight_sync", pool="both", breakdown=_sync(plan, architecture, cluster, hardware)),
    )
    breakdown, of = _step(plan, phases)
    return RlProjection(
        plan=plan,
        chip=hardware.id,
        chips=cluster.chips,
        step_time_s=breakdown.total_s,
        step_time_interval_s=INTERVAL.around(breakdown.total_s),
        phases=phases,
        breakdown=breakdown,
        breakdown_of=of,
        training_memory=memory,
        rollout_memory=engine_memory,
        tokens_per_s_per_chip=step.tokens / breakdown.total_s / cluster.chips,
        rejections=(*_too_large("the trainer", memory), *_too_large("an engine", engine_memory)),
        assumptions=tuple(dict.fromkeys((*_said(updates), *said, *unpriced, *_taken_for_granted(step)))),
    )


def _check(plan: RlPlan, step: RlStep, cluster: ClusterSpec, hardware: HardwareProfile) -> None:
    devices = cluster.chips * hardware.devices_per_chip
    if plan.devices != devices:
        raise InvalidDescription(
            f"the plans occupy {plan.devices} devices, {cluster.chips} x {hardware.id} have {devices}",
            hint="colocated plans share all devices, separate ones add up to them",
        )
    share = step.responses // step.updates
    needed = step.micro_batches(plan.training, share)
    if plan.training.grad_accum != needed:
        raise InvalidDescription(
            f"an update of {share} responses takes {needed} micro-batches a data rank, "
            f"the training plan has grad_accum {plan.training.grad_accum}",
            hint="RlStep.micro_batches says how many",
        )


def _of(plan: RlPlan, pool: Pool) -> Pool:
    return pool if plan.placement == "separate" else "both"


def _pool(plan: ParallelismPlan, hardware: HardwareProfile) -> ClusterSpec:
    """The chips of one plan. InvalidDescription where they are no whole ones."""
    if plan.devices % hardware.devices_per_chip:
        raise InvalidDescription(f"{plan.devices} devices are no whole number of {hardware.id}")
    return ClusterSpec(chip=hardware.id, chips=plan.devices // hardware.devices_per_chip)


def _trained(
    plan: ParallelismPlan,
    step: RlStep,
    model: ModelArchitecture,
    cluster: ClusterSpec,
    hardware: HardwareProfile,
    software: Software,
    *,
    forward_only: bool = False,
) -> ProjectionBatch:
    """One optimizer step, or one forward pass, over the rows the plan works on."""
    workload, batch = step.rows_of(plan), PlanBatch.from_plans([plan])
    check(batch, workload, cluster, hardware)
    math_dtype, replaced = math_dtypes(batch, Device.of(hardware))
    assumed = (*replaced, *assumptions(batch, workload, model, cluster, hardware, software))
    (seq_len,) = sizes(workload, "seq_len")
    return project_training(
        batch,
        model,
        seq_len,
        math_dtype,
        cluster,
        hardware,
        software,
        assumed,
        lengths=workload.lengths,
        forward_only=forward_only,
    )


def _scored(
    plan: ParallelismPlan,
    step: RlStep,
    model: ModelArchitecture,
    cluster: ClusterSpec,
    hardware: HardwareProfile,
    software: Software,
) -> ProjectionBatch:
    """A forward pass over all sequences of the step at once."""
    whole = plan.model_copy(update={"grad_accum": step.micro_batches(plan, step.responses)})
    return _trained(whole, step, model, cluster, hardware, software, forward_only=True)


def _generated(
    plan: RlPlan, step: RlStep, model: ModelArchitecture, cluster: ClusterSpec, hardware: HardwareProfile
) -> tuple[Rollout, tuple[str, ...]]:
    batch = PlanBatch.from_plans([plan.rollout])
    workload = WorkloadSpec(phase="serving", precision=step.precision)
    check(batch, workload, cluster, hardware)
    math_dtype, replaced = math_dtypes(batch, Device.of(hardware))
    generated = rollout(batch, model, step, math_dtype, cluster, hardware, plan.steps_off_policy)
    held = (
        () if generated.serves[0] else ("an engine does not hold one response: the rollout is projected as if it did",)
    )
    drafted = speculation_assumptions(batch, model, None)
    return generated, (*(one.text for one in (*replaced, *drafted)), *held)


def _offload(
    plan: RlPlan, memory: MemoryBreakdown, hardware: HardwareProfile
) -> tuple[tuple[RlPhase, ...], tuple[str, ...]]:
    """States of a colocated trainer to the host and back."""
    if plan.placement == "separate":
        return (), ()
    if hardware.host is None:
        return (), (f"moving the trainer's states to the host is not priced: no host link of {hardware.id} is stated",)
    moved = 2 * (memory.weights_bytes + memory.gradients_bytes + memory.optimizer_bytes)
    copy_s = moved / Device.of(hardware).host_bytes_per_s
    copies = TimeBreakdown(
        source="modelled",
        total_s=copy_s,
        compute_s=0.0,
        exposed_communication_s=0.0,
        overlapped_communication_s=0.0,
        exposed_copy_s=copy_s,
        idle_s=0.0,
    )
    return (RlPhase(name="offload", pool="both", breakdown=copies),), ()


def _sync(plan: RlPlan, model: ModelArchitecture, cluster: ClusterSpec, hardware: HardwareProfile) -> TimeBreakdown:
    batch, apart = PlanBatch.from_plans([plan.training]), plan.placement == "separate"
    sync_s = float(weight_sync_s(batch, model, cluster, hardware, apart=apart)[0])
    return TimeBreakdown(
        source="modelled",
        total_s=sync_s,
        compute_s=0.0,
        exposed_communication_s=sync_s,
        overlapped_communication_s=0.0,
        idle_s=0.0,
    )


def _step(plan: RlPlan, phases: tuple[RlPhase, ...]) -> tuple[TimeBreakdown, Pool]:
    """The whole step on a device of the pool that decides it; what that pool waits for the other is idle."""
    if plan.placement == "colocated":
        return in_sequence((phase.breakdown, 1.0) for phase in phases), "both"
    pools: tuple[Pool, ...] = ("trainer", "engines")
    busy_s = {pool: sum(phase.time_s for phase in phases if phase.pool in (pool, "both")) for pool in pools}
    longest = max(pools, key=lambda pool: busy_s[pool])
    other_s = sum(phase.time_s for phase in phases if phase.pool not in (longest, "both"))
    own = ((phase.breakdown, 1.0) for phase in phases if phase.pool in (longest, "both"))
    return in_sequence(own, waiting_s=0.0 if plan.steps_off_policy else other_s), longest


def _said(updates: ProjectionBatch) -> tuple[str, ...]:
    return tuple(one.text for one in updates.assumptions if one.plans is None or one.plans[0])


def _taken_for_granted(step: RlStep) -> tuple[str, ...]:
    found = ["rewards, environments and data take no device time", "engines start all responses at once"]
    if step.longest_response is None:
        found.append("every response has the mean length: no tail of long ones")
    if step.reward_model or step.critic:
        found.append("reward model and critic are as large as the policy and laid out like it")
    others = [name for name in ("reference", "reward_model", "critic") if getattr(step, name)]
    if others:
        names = ", ".join(name.replace("_", " ") for name in others)
        found.append(
            f"memory of the trainer is that of the policy alone: {names} wait in host memory and are moved in no time"
        )
    return tuple(found)


def _too_large(what: str, memory: MemoryBreakdown) -> tuple[Rejection, ...]:
    if memory.fit == "fits":
        return ()
    return (
        Rejection(
            rule="memory",
            quantity=f"memory of a device of {what} with its reserve",
            value=bytes_to_gb(memory.total_bytes),
            limit=bytes_to_gb(memory.capacity_bytes),
            unit="GB",
        ),
    )
