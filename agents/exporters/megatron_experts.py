"""Megatron-LM's experts: their parallelism, how tokens reach them, and what hides the exchange."""

from agents.exporters.account import Account, Value
from agents.exporters.exporter import Job
from projector.specs.plan import ExpertDispatch

DISPATCHERS: dict[ExpertDispatch, tuple[tuple[str, Value], ...]] = {
    "deepep": (("--moe-token-dispatcher-type", "flex"), ("--moe-flex-dispatcher-backend", "deepep")),
    "all_gather": (("--moe-token-dispatcher-type", "allgather"),),
}


def place_experts(account: Account, job: Job) -> None:
    """Outcomes of ep, etp, expert_dispatch and overlap_ep."""
    if job.moe is False:
        account.no_experts()
        for field, off in (("expert_dispatch", "auto"), ("overlap_ep", False)):
            _nothing_to_do(account, field, off, "a dense model has no experts")
        return
    _degrees(account, job)
    _dispatch(account, job)
    _overlap(account)


def _degrees(account: Account, job: Job) -> None:
    plan, model = job.plan, job.architecture
    account.say("ep", ("--expert-model-parallel-size", plan.ep))
    # "Bias in Moe is only supported when ETP==1": checked when the model is built
    if model is not None and model.attention_bias and plan.etp > 1:
        account.add("--expert-tensor-parallel-size", 1)
        account.refuse("etp", "experts with biases are not sliced", instead="1")
    else:
        account.say("etp", ("--expert-tensor-parallel-size", plan.etp), note="left out it would be tp")


def _dispatch(account: Account, job: Job) -> None:
    """All-to-all wherever experts are known of: the release's default gathers all tokens, as no projection assumes."""
    dispatch = account.plan.expert_dispatch
    if dispatch in ("deepep", "all_gather"):
        account.say("expert_dispatch", *DISPATCHERS[dispatch])
        return
    if job.moe:
        account.add("--moe-token-dispatcher-type", "alltoall")
        account.note("The all-to-all dispatcher is set: left alone the release gathers all tokens.")
    if dispatch == "auto":
        account.imply("expert_dispatch", "the all-to-all dispatcher stands for a stack's own choice")
    elif job.moe:
        account.refuse("expert_dispatch", "it is what auto means here", instead="auto", inert=True)
    else:
        account.refuse("expert_dispatch", "whether the model has experts is unknown", instead="auto", inert=True)


def _overlap(account: Account) -> None:
    """The conditions are those the release asserts of overlap_moe_expert_parallel_comm."""
    plan = account.plan
    if not plan.overlap_ep:
        account.imply("overlap_ep", "off is the default")
        return
    obstacles = {
        "needs ep > 1": plan.ep == 1,
        "needs another dispatcher than all_gather": plan.expert_dispatch == "all_gather",
        "needs virtual stages in a pipeline": plan.pp > 1 and plan.vp == 1,
        "forbids full recompute": plan.recompute == "full",
        "forbids recompute of whole MoE blocks": "moe" in plan.recompute_modules.split("+"),
        "needs 16-bit weights": plan.compute_dtype == "fp32",
    }
    found = [reason for reason, holds in obstacles.items() if holds]
    if found:
        account.refuse("overlap_ep", "; ".join(found), instead="off")
    else:
        account.say("overlap_ep", ("--overlap-moe-expert-parallel-comm", None))


def _nothing_to_do(account: Account, field: str, off: object, reason: str) -> None:
    if getattr(account.plan, field) == off:
        account.imply(field, reason)
    else:
        account.refuse(field, reason, instead=str(off), inert=True)
