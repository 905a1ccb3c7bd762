"""Megatron-LM's data parallelism: distributed optimizer, Megatron-FSDP, and the overlap of their collectives."""

from agents.exporters.account import Account
from agents.exporters.exporter import Job

STRATEGY = {2: "optim_grads", 3: "optim_grads_params"}


def shard_data_parallelism(account: Account, job: Job) -> bool:
    """Outcomes of fsdp, zero_stage, optimizer_shard and the two overlap switches; True where Megatron-FSDP runs.

    zero_stage 1 is the distributed optimizer; 2 and 3 are Megatron-FSDP, whose group is fsdp * cp ranks, as in the
    projector. Replicas of a hybrid layout are "distributed optimizer instances".
    """
    plan = job.plan
    stage = 3 if plan.fsdp > 1 else 2 if plan.zero_stage == 3 and not _alone(job) else plan.zero_stage
    if stage >= 2:
        _fsdp(account, job, stage)
    else:
        _replicated(account, stage)
    _optimizer_shard(account, job, stage)
    if plan.zero_stage == stage:
        pass
    elif plan.fsdp > 1:
        account.refuse("zero_stage", "fsdp > 1 shards the weights", instead="3")
    else:
        account.refuse("zero_stage", "fsdp is 1, no group shares the weights", instead="2")
    _overlap(account, stage)
    return stage >= 2


def _optimizer_shard(account: Account, job: Job, stage: int) -> None:
    """Ranks that share one copy of the optimizer state; only the plain distributed optimizer can split its group."""
    plan = job.plan
    ranks = plan.dp * plan.cp
    if plan.optimizer_shard in (0, ranks):
        account.imply("optimizer_shard", "the state is shared out over all of dp * cp where it is sharded at all")
    elif stage == 1 == plan.zero_stage:
        flag = "--num-distributed-optimizer-instances"
        account.say("optimizer_shard", (flag, ranks // plan.optimizer_shard), note="dp * cp / optimizer_shard")
    else:
        inert = plan.zero_stage in (0, 3)
        account.refuse(
            "optimizer_shard", "only the plain distributed optimizer splits its group", instead="0", inert=inert
        )


def _alone(job: Job) -> bool:
    """Whether one rank holds all of dp and cp, so that sharding the weights changes nothing."""
    return job.plan.dp * job.plan.cp == 1


def _replicated(account: Account, stage: int) -> None:
    account.imply("fsdp", "weights are replicated over data-parallel ranks by default")
    if account.plan.zero_stage != stage:
        return
    if stage == 1:
        account.say("zero_stage", ("--use-distributed-optimizer", None), note="state shared out over dp * cp ranks")
    else:
        account.imply("zero_stage", "without the distributed optimizer every rank holds the whole state")


def _fsdp(account: Account, job: Job, stage: int) -> None:
    plan = job.plan
    account.add("--use-distributed-optimizer")
    account.add("--use-megatron-fsdp")
    account.add("--data-parallel-sharding-strategy", STRATEGY[stage])
    account.add("--ckpt-format", "fsdp_dtensor")
    names = ["--use-megatron-fsdp", "--data-parallel-sharding-strategy"]
    if plan.zero_stage == stage:
        account.said("zero_stage", names)
    _shard_group(account, job, stage, names)
    if plan.pp > 1:
        account.note(
            "None of the release's own functional tests runs Megatron-FSDP with pipeline stages: try it small."
        )
    if plan.tp > 1 or plan.cp > 1:
        account.note(
            "Before Blackwell, tp and cp overlap best with CUDA_DEVICE_MAX_CONNECTIONS=1, which Megatron-FSDP forbids."
        )


def _shard_group(account: Account, job: Job, stage: int, names: list[str]) -> None:
    plan = job.plan
    replicas = plan.dp // plan.fsdp if stage == 3 else 1
    experts = plan.dp * plan.cp * plan.tp // (plan.ep * plan.etp)
    if stage == 2:
        account.imply("fsdp", "optim_grads leaves the weights whole")
    elif replicas == 1:
        account.said("fsdp", names, note="the whole of dp, with the context ranks")
    elif job.moe is not False and experts % replicas:
        account.refuse(
            "fsdp",
            f"{replicas} replicas do not divide the {experts} data-parallel ranks of the experts",
            instead=str(plan.dp),
        )
    else:
        account.add("--num-distributed-optimizer-instances", replicas)
        account.said("fsdp", [*names, "--num-distributed-optimizer-instances"], note="dp / fsdp replicas")


def _overlap(account: Account, stage: int) -> None:
    plan = account.plan
    always = "Megatron-FSDP always overlaps it with this sharding"
    reduces = plan.overlap_grad_reduce or stage >= 2
    if reduces:
        account.add("--overlap-grad-reduce")
    if plan.overlap_grad_reduce:
        account.said("overlap_grad_reduce", ["--overlap-grad-reduce"])
    elif reduces:
        account.refuse("overlap_grad_reduce", always, instead="on")
    else:
        account.imply("overlap_grad_reduce", "off is the default")
    _overlap_gather(account, stage, reduces=reduces, always=always)


def _overlap_gather(account: Account, stage: int, *, reduces: bool, always: str) -> None:
    field, wanted = "overlap_param_gather", account.plan.overlap_param_gather
    if stage == 0 and wanted:
        account.imply(field, "no weights are gathered, so nothing waits for them")
    elif stage == 0:
        account.refuse(field, "no weights are gathered", instead="nothing to overlap", inert=True)
    elif not reduces and wanted:
        account.refuse(field, "needs overlap_grad_reduce", instead="off")
    elif stage == 3 and not wanted:
        account.add("--overlap-param-gather")
        account.refuse(field, always, instead="on")
    elif wanted:
        account.say(field, ("--overlap-param-gather", None))
    else:
        account.imply(field, "off is the default")
