"""Megatron-LM's optimizer: which one, in how many bits it keeps its moments, and what waits in host memory."""

from agents.exporters.account import Account, Value

PRECISION_AWARE = "--use-precision-aware-optimizer"
MOMENTS = {"adam_bf16": "bf16", "adam_8bit": "fp8"}


def choose_optimizer(account: Account) -> None:
    """Outcomes of optimizer, offload_optimizer and offload_activations."""
    _optimizer(account)
    _offload_optimizer(account)
    if account.plan.offload_activations:
        reason = "offloads some layers without recompute or pipeline, or inputs of modules by name"
        account.refuse("offload_activations", reason, instead="off")
    else:
        account.imply("offload_activations", "off is the default")


def _optimizer(account: Account) -> None:
    plan = account.plan
    if plan.optimizer == "adam":
        account.imply("optimizer", "Adam with fp32 moments is the default")
    elif plan.optimizer == "adafactor":
        account.refuse("optimizer", "there is no Adafactor", instead="adam")
    elif plan.optimizer in MOMENTS and not _distributed(account):
        account.refuse("optimizer", "narrow moments need the plain distributed optimizer", instead="adam")
    elif plan.optimizer in MOMENTS:
        kept = MOMENTS[plan.optimizer]
        settings: tuple[tuple[str, Value], ...] = (("--exp-avg-dtype", kept), ("--exp-avg-sq-dtype", kept))
        account.say("optimizer", (PRECISION_AWARE, None), *settings)
    else:
        account.say("optimizer", ("--optimizer", plan.optimizer))


def _offload_optimizer(account: Account) -> None:
    """The release updates offloaded state on the host, not on the device; it asks for the precision-aware optimizer."""
    plan = account.plan
    if not plan.offload_optimizer:
        account.imply("offload_optimizer", "off is the default")
    elif plan.optimizer not in ("adam", *MOMENTS) or not _distributed(account):
        account.refuse("offload_optimizer", "needs Adam and the plain distributed optimizer", instead="off")
    else:
        if plan.optimizer == "adam":
            account.add(PRECISION_AWARE)
        account.say("offload_optimizer", ("--optimizer-cpu-offload", None))
        account.note("Offloaded optimizer state is updated by the host; the projection moves it to the device instead.")


def _distributed(account: Account) -> bool:
    return account.plan.zero_stage == 1 and account.plan.fsdp == 1
