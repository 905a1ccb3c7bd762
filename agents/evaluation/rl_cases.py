"""A row of reinforcement learning as the steps and plans it may mean, and the fastest of them that fits."""

from collections.abc import Sequence
from functools import partial

from pydantic import ValidationError

from agents.evaluation.architecture import architecture_of
from agents.evaluation.cases import Case
from agents.evaluation.machines import chip_of, cluster_of
from agents.evaluation.precisions import dtype_of
from agents.evaluation.refusal import Refused, first_problem, or_refused
from agents.evaluation.rollouts import RlOption, rl_plans, rl_step_of
from agents.evaluation.row_frameworks import framework_of_row, software_of
from agents.evaluation.rows import MeasuredRow
from agents.evaluation.scored import Scored, score_all
from agents.evaluation.targets import STEP_TIME, target_of
from agents.frameworks import Framework
from projector.breakdown import Projection
from projector.errors import ShardwiseError
from projector.legality import check
from projector.project_rl import project_rl
from projector.rl_projection import RlProjection
from projector.specs.plan import ComputeDtype, ParallelismPlan
from projector.specs.workload import WorkloadSpec

# what no row states: how long prompts are, how many rows a micro-batch holds, what the trainer recomputes, and where
# pools are separate how the devices are split between them
ASSUMED = ("prompt_tokens", "micro_batch", "recompute")
SPLIT = "split of the devices"


def rl_case_of(row: MeasuredRow, stratum: str) -> Case:
    """The case of a row. Refused, with the reason, where it cannot be projected or prints no step time."""
    if row.plan.offloads_optimizer:
        raise Refused("the optimizer is offloaded to the host: not modelled")
    architecture, hardware = architecture_of(row.arch, row.model, row.source), chip_of(row.chip)
    dtype, dtype_assumed = dtype_of(row.precision)
    if row.rollout is None:
        raise Refused("nothing is stated of the rollout")
    step = rl_step_of(row.rollout, row.seq_len, row.global_batch, dtype)
    target = target_of(row, architecture, step.row_tokens, hardware)
    if target is None or target.kind != STEP_TIME:
        raise Refused("a step of reinforcement learning without its time")
    framework, cluster = framework_of_row(row.framework, row.source), cluster_of(row, hardware)
    devices = row.chips * hardware.devices_per_chip
    try:
        trainer = _trainer(row, framework, dtype)
        pairs = tuple(rl_plans(row.rollout, step, trainer, devices, architecture, hardware))
    except ValidationError as error:
        raise Refused(first_problem(error)) from error
    if not pairs:
        raise Refused("no whole number of trainers and engines of this layout fills the devices")
    split = len({pair.training.dp for pair in pairs}) > 1
    return Case(
        row=row,
        stratum=stratum,
        options=(),
        architecture=architecture,
        cluster=cluster,
        hardware=hardware,
        software=software_of(framework, row),
        target=target,
        assumed=(*(("precision",) if dtype_assumed else ()), *ASSUMED, *((SPLIT,) if split else ())),
        rl=tuple(RlOption(step, pair) for pair in pairs),
    )


def _trainer(row: MeasuredRow, framework: Framework, dtype: ComputeDtype) -> ParallelismPlan:
    """The training layout of a row, one data rank of it."""
    tp, pp, cp, ep = row.plan.degrees
    values = {
        "dp": ep if (tp * cp) % ep else 1,
        "zero_stage": 3 if framework.sharding == "weights" else 1,
        "tp": tp,
        "sp": tp > 1 and framework.sequence_parallel,
        "pp": pp,
        "cp": cp,
        "ep": ep,
        "compute_dtype": dtype,
        "overlap_grad_reduce": framework.overlaps_data,
        "overlap_param_gather": framework.overlaps_data,
        "overlap_tp": bool(framework.overlaps_tp) and tp > 1,
    }
    return ParallelismPlan.model_validate(values)


def score_every(cases: Sequence[Case]) -> list[Scored | Refused]:
    """Every case in its order, whatever its phase."""
    others = iter(score_all([case for case in cases if not case.rl]))
    return [or_refused(partial(score_rl, case)) if case.rl else next(others) for case in cases]


def score_rl(case: Case) -> Scored:
    """The fastest pair of plans that fits, where none fits the smallest. Refused where the projector refuses them."""
    found = [(option, _projected(case, option)) for option in case.rl]
    option, chosen = min(found, key=lambda pair: _order(pair[1]))
    rules = check(
        chosen.plan.training,
        option.step.rows_of(chosen.plan.training),
        case.architecture,
        cluster_of(case.row, case.hardware).model_copy(
            update={"chips": chosen.plan.training.devices // case.hardware.devices_per_chip}
        ),
        case.hardware,
    )
    workload = WorkloadSpec(
        seq_len=case.row.seq_len, global_batch=case.row.global_batch, precision=option.step.precision
    )
    return Scored(case, workload, _as_projection(chosen), tuple(rejection.text for rejection in rules))


def _projected(case: Case, option: RlOption) -> RlProjection:
    try:
        return project_rl(
            option.plan, option.step, case.architecture, case.cluster, case.hardware, software=case.software
        )
    except ShardwiseError as error:
        raise Refused(str(error)) from error


def _order(projection: RlProjection) -> tuple[bool, float]:
    bytes_needed = projection.training_memory.total_bytes + projection.rollout_memory.total_bytes
    fits = projection.fit == "fits"
    return (not fits, projection.step_time_s if fits else bytes_needed)


def _as_projection(found: RlProjection) -> Projection:
    """The step under the name of its training plan, with the memory of the pool that fits less."""
    trainer_fits = found.training_memory.fit == "fits"
    return Projection(
        plan=found.plan.training,
        chip=found.chip,
        chips=found.chips,
        source="modelled",
        step_time_s=found.step_time_s,
        step_time_interval_s=found.step_time_interval_s,
        breakdown=found.breakdown,
        memory=found.rollout_memory if trainer_fits and found.fit != "fits" else found.training_memory,
        rejections=found.rejections,
        assumptions=found.assumptions,
    )
