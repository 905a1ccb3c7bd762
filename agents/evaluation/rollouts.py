"""Rows of reinforcement learning: what they print of the rollout, and the steps and pairs of plans they may mean."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from agents.evaluation.fields import Fields
from agents.evaluation.refusal import Refused, first_problem
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ComputeDtype, Dtype, ParallelismPlan, Recompute
from projector.specs.rl import RlPlan, RlStep

OFF_POLICY = re.compile(r"^\s*(\d{1,4})-step off", re.IGNORECASE)
# requests vLLM runs at once unless told otherwise
ENGINE_SEATS = 256
# algorithms whose rewards are computed from one response, not won from an environment in many turns
ALGORITHMS = ("grpo", "ppo", "dapo", "reinforce", "rloo")
RECOMPUTE: tuple[Recompute, ...] = ("none", "selective", "full")


@dataclass(frozen=True)
class StatedRollout:
    """What a row prints of generation; None: not stated. mean_tokens: prompt and response together."""

    tp: int | None
    pp: int | None
    responses: int | None
    mean_tokens: float | None
    algorithm: str | None
    policy: str | None


@dataclass(frozen=True)
class RlOption:
    """One step with one pair of plans a row may mean."""

    step: RlStep
    plan: RlPlan


def rollout_of(extra: Fields) -> StatedRollout:
    """The rollout as the row's remarks on its configuration state it."""
    return StatedRollout(
        tp=extra.whole("gen_tp"),
        pp=extra.whole("gen_pp"),
        responses=extra.whole("gen_gbs"),
        mean_tokens=extra.positive("gen_avg_seq"),
        algorithm=extra.text("algorithm"),
        policy=extra.text("policy"),
    )


def rl_step_of(stated: StatedRollout, seq_len: int | None, global_batch: int | None, dtype: ComputeDtype) -> RlStep:
    """The step of a row. The mean length is all response, as prompts are not told apart; no sequence passes seq_len.

    Refused where lengths or batches are missing or do not agree.
    """
    if seq_len is None:
        raise Refused("sequence length not stated")
    if stated.responses is None or stated.mean_tokens is None or global_batch is None:
        raise Refused("responses a step, their mean length or the trainer's batch not stated")
    if (stated.algorithm or "").lower() not in ALGORITHMS:
        raise Refused(f"algorithm {stated.algorithm!r}: the time of its environment is not modelled")
    if stated.responses % global_batch:
        raise Refused(f"{stated.responses} responses are no whole number of updates of {global_batch}")
    try:
        return RlStep(
            prompts=stated.responses,
            prompt_tokens=1.0,
            response_tokens=stated.mean_tokens - 1.0,
            longest_response=seq_len - 1.0,
            updates=stated.responses // global_batch,
            row_tokens=seq_len,
            critic=(stated.algorithm or "").lower() == "ppo",
            precision=dtype,
        )
    except ValidationError as error:
        raise Refused(first_problem(error)) from error


def rl_plans(
    stated: StatedRollout,
    step: RlStep,
    trainer: ParallelismPlan,
    devices: int,
    model: ModelArchitecture,
    hardware: HardwareProfile,
) -> Iterator[RlPlan]:
    """Pairs of plans: of colocated phases one, of separate pools one for every split of the devices that both fill.

    trainer: the row's training layout with any dp. Recompute is left open.
    """
    off_policy = _steps_off_policy(stated)
    tp, pp = stated.tp, stated.pp or 1
    if tp is None:
        raise Refused("the engines' tensor parallelism is not stated")
    each = trainer.tp * trainer.pp * trainer.cp
    for dp in range(1, devices // each + 1):
        left = devices - dp * each
        generating = devices if off_policy == 0 else left
        if (off_policy == 0) != (left == 0) or generating % (tp * pp) or (dp * each) % hardware.devices_per_chip:
            continue
        if (dp * trainer.cp * trainer.tp) % trainer.ep:
            continue
        engines = _engines(generating // (tp * pp), tp, pp, model, step.precision)
        for recompute in RECOMPUTE:
            yield _pair(step, trainer, dp, recompute, engines, off_policy)


def _steps_off_policy(stated: StatedRollout) -> int:
    policy = (stated.policy or "").strip().lower()
    if policy == "on policy":
        return 0
    found = OFF_POLICY.search(policy)
    if found is None or int(found[1]) < 1:
        raise Refused(f"policy {stated.policy!r}: not known whether generation and training overlap")
    return int(found[1])


def _engines(replicas: int, tp: int, pp: int, model: ModelArchitecture, dtype: Dtype) -> ParallelismPlan:
    return ParallelismPlan(
        phase="serving",
        dp=replicas,
        tp=tp,
        pp=pp,
        etp=tp if model.is_moe else 1,
        compute_dtype=dtype,
        weight_dtype=dtype,
        max_num_seqs=ENGINE_SEATS,
    )


def _pair(
    step: RlStep, trainer: ParallelismPlan, dp: int, recompute: Recompute, engines: ParallelismPlan, off_policy: int
) -> RlPlan:
    fsdp = dp if trainer.zero_stage == 3 else 1
    laid_out = trainer.model_copy(update={"dp": dp, "fsdp": fsdp, "recompute": recompute})
    accumulation = step.micro_batches(laid_out, step.responses // step.updates)
    # revalidated: model_copy would not look at the new values
    training = ParallelismPlan.model_validate(laid_out.model_dump() | {"grad_accum": accumulation})
    return RlPlan(
        training=training,
        rollout=engines,
        placement="separate" if off_policy else "colocated",
        steps_off_policy=off_policy,
    )
