"""Megatron-LM's recompute: granularity, the modules of selective recompute, and on how many layers of a stage."""

from agents.exporters.account import Account
from agents.exporters.exporter import Job


def choose_recompute(account: Account, job: Job) -> None:
    """Outcomes of recompute, recompute_modules and recompute_layers."""
    plan = job.plan
    if plan.recompute == "none":
        account.imply("recompute", "nothing is recomputed by default")
    elif plan.recompute == "full":
        _full(account)
    else:
        _selective(account, job)
    if plan.recompute != "selective":
        _no_modules(account)
    if plan.recompute != "full":
        _all_layers(account)


def _full(account: Account) -> None:
    """Every layer for itself, or the first so many of each chunk of a stage."""
    plan = account.plan
    granularity = ("--recompute-granularity", "full")
    each, left = divmod(plan.recompute_layers, plan.vp)
    if each and not left:
        account.say("recompute", granularity, ("--recompute-method", "block"))
        account.say("recompute_layers", ("--recompute-num-layers", each), note="of each chunk of a stage")
        return
    account.say("recompute", granularity, ("--recompute-method", "uniform"), ("--recompute-num-layers", 1))
    if plan.recompute_layers == 0:
        account.imply("recompute_layers", "all layers, one by one")
    else:
        account.refuse("recompute_layers", f"not as many in each of {plan.vp} chunks of a stage", instead="0")


def usual_modules(moe: bool | None) -> tuple[str, ...]:
    """Layer norms and, inside experts, the activation: what the projector's own selective recompute means here."""
    return ("layernorm", "moe_act") if moe else ("layernorm",)


def _selective(account: Account, job: Job) -> None:
    named = tuple(filter(None, job.plan.recompute_modules.split("+")))
    modules = named or usual_modules(job.moe)
    note = "" if named else "a dense MLP keeps the output of its activation: no module makes that alone again"
    account.say("recompute", ("--recompute-granularity", "selective"), ("--recompute-modules", modules), note=note)
    if not named:
        account.imply("recompute_modules", "the modules that come closest to what the projector repeats")
    elif named == usual_modules(job.moe):
        account.refuse(
            "recompute_modules", "these are the modules selective recompute means here", instead="''", inert=True
        )
    else:
        account.said("recompute_modules", ["--recompute-modules"])
    if "core_attn" in modules:
        account.note("core_attn frees little where attention kernels are fused: the release warns of it.")
    else:
        account.note("Attention scores (core_attn) are not recomputed: fused attention kernels store none.")
    if job.plan.compute_dtype == "fp8" and {"layernorm", "moe_act"} & {*modules}:
        account.add("--fp8-recipe", "tensorwise")
        account.note("The default FP8 recipe (delayed) refuses to recompute these modules: tensorwise is set.")


def _no_modules(account: Account) -> None:
    if account.plan.recompute_modules == "":
        account.imply("recompute_modules", "only selective recompute names modules")
    else:
        account.refuse("recompute_modules", "only selective recompute names modules", instead="''", inert=True)


def _all_layers(account: Account) -> None:
    if account.plan.recompute_layers == 0:
        account.imply("recompute_layers", "all layers alike")
    else:
        inert = account.plan.recompute == "none"
        account.refuse("recompute_layers", "only full recompute counts layers", instead="0", inert=inert)
