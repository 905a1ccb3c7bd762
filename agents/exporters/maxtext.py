"""MaxText: a training plan as configuration overrides of its pre-training loop.

Argument definitions: src/maxtext/configs/types.py and base.yml, with the checks of `set_derived_and_validate_values`;
tests/data/exporters/maxtext_arguments.json lists the ones used here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nextafter

from agents.exporters.account import Account, Closed
from agents.exporters.exporter import UNKNOWN, ConfigFile, Job, Known, LaunchConfig, ParsedLaunch, Setting
from agents.exporters.maxtext_mesh import lay_out
from agents.exporters.maxtext_model import describe_model
from agents.exporters.maxtext_parse import parse_maxtext
from agents.exporters.maxtext_precision import choose_precision
from agents.exporters.refusal import cannot_launch
from agents.exporters.render import pair_arguments
from projector.rules.training_rules import SERVING_FIELDS
from projector.specs.plan import Phase

START = ("python3", "-m", "maxtext.trainers.pre_train.train")
BASE = "src/maxtext/configs/base.yml"
FILE = "shardwise.yml"


@dataclass(frozen=True)
class MaxText:
    """The exporter of MaxText."""

    framework: str = "maxtext"
    title: str = "MaxText"
    version: str = "maxtext-v0.2.4 (commit 538fe7a3f337)"
    phases: tuple[Phase, ...] = ("training",)

    def export(self, job: Job) -> LaunchConfig:
        """The pre-training command with its overrides, also as a YAML file on top of base.yml."""
        if job.plan.phase not in self.phases:
            return cannot_launch(self, job, f"{self.title} is exported for training, this is a {job.plan.phase} plan")
        if job.hardware is not None and job.hardware.kind not in ("tpu", "gpu"):
            return cannot_launch(self, job, f"{self.title} runs on TPUs and GPUs, {job.hardware.id} is neither")
        if job.trains_adapters:
            return cannot_launch(self, job, "the pre-training loop trains all weights, not low-rank adapters")
        account = Account(job.plan)
        account.imply("phase", "the pre-training loop trains")
        _hardware(account, job)
        lay_out(account, job)
        _batch(account)
        _schedule(account)
        _recompute(account)
        choose_precision(account, job)
        _overlap(account)
        account.foreign(SERVING_FIELDS, "serving")
        describe_model(account, job)
        return self._config(job, account.close())

    def _config(self, job: Job, closed: Closed) -> LaunchConfig:
        in_file = (Setting(name="base_config", value="base.yml"), *closed.settings)
        return LaunchConfig(
            framework=self.framework,
            title=self.title,
            version=self.version,
            devices=job.plan.devices,
            command=(*START, BASE, *pair_arguments(closed.settings)),
            config_file=ConfigFile(name=FILE, settings=in_file, command=(*START, FILE)),
            **dict(closed),
        )

    def parse(self, arguments: Sequence[str], known: Known = UNKNOWN) -> ParsedLaunch:
        """The plan of name=value overrides; axes left at -1 are filled from the known devices."""
        return parse_maxtext(arguments, known)


def _hardware(account: Account, job: Job) -> None:
    if job.hardware is None:
        account.note("The chip is unknown: hardware stays at its default (tpu); set hardware=gpu for GPUs.")
        return
    account.add("hardware", job.hardware.kind)
    if job.hardware.kind == "gpu":
        account.note("Start the command once on every host, with JAX's own distributed environment.")
    elif job.plan.devices > 1:
        account.add("allow_split_physical_axes", True)
        account.note("allow_split_physical_axes lets an axis take a factor of a torus dimension, as the plan may.")


def _batch(account: Account) -> None:
    """Sequences a device and pass. With a pipeline the passes of a step are its micro-batches, one gradient step."""
    plan = account.plan
    if plan.pp > 1 and plan.grad_accum % plan.pp:
        account.add("num_pipeline_microbatches", plan.pp)
        account.add("per_device_batch_size", _per_device(plan.dp * plan.micro_batch * plan.pp, plan.devices))
        account.said("micro_batch", ["per_device_batch_size"])
        account.refuse("grad_accum", "pipeline micro-batches are a multiple of the stages", instead=str(plan.pp))
        return
    passes = plan.grad_accum if plan.pp > 1 else 1
    account.say(
        "micro_batch",
        ("per_device_batch_size", _per_device(plan.dp * plan.micro_batch * passes, plan.devices)),
        note="sequences of a pass over all devices, below 1 where several devices share a sequence",
    )
    if plan.pp > 1:
        account.say("grad_accum", ("num_pipeline_microbatches", plan.grad_accum))
    else:
        account.say("grad_accum", ("gradient_accumulation_steps", plan.grad_accum))


def _per_device(sequences: int, devices: int) -> float:
    """sequences / devices, such that MaxText's int(devices * value) gives the sequences back."""
    value = sequences / devices
    while int(devices * value) < sequences:
        value = nextafter(value, float("inf"))
    return value


def _schedule(account: Account) -> None:
    plan = account.plan
    for field in ("first_stage_layers", "last_stage_layers"):
        if getattr(plan, field) == 0:
            account.imply(field, "as the even split has it")
        else:
            account.refuse(field, "stages of a pipeline are alike", instead="0", inert=plan.pp == 1)
    if plan.pp == 1 and plan.schedule == "1f1b":
        account.imply("schedule", "one stage needs no schedule")
    elif plan.pp == 1:
        account.refuse("schedule", "one stage needs no schedule", instead="none", inert=True)
    else:
        account.refuse(
            "schedule",
            "pipelines are GPipe or circular: all micro-batches forward, then all backward",
            instead="activations of every micro-batch are held until the backward pass",
        )


def _recompute(account: Account) -> None:
    """Named tensors a layer keeps. There is no way to keep everything.

    remat_policy "none" reaches the layers as null, and the scanned loop then makes all of a layer again.
    """
    recompute = account.plan.recompute
    _recompute_parts(account)
    if recompute == "full":
        account.say("recompute", ("remat_policy", "full"))
        return
    account.add("remat_policy", "minimal_with_context")
    kept = "products of projections and attention output are kept; norms and activations are made again"
    if recompute == "selective":
        account.said("recompute", ["remat_policy"], note=kept)
    else:
        account.refuse("recompute", "no policy keeps everything ('none' recomputes whole layers)", instead=kept)


def _recompute_parts(account: Account) -> None:
    plan = account.plan
    inert = plan.recompute == "none"
    if plan.recompute_modules == "":
        account.imply("recompute_modules", "policies name tensors that are kept")
    else:
        reason = "policies name tensors that are kept, not modules that run again"
        account.refuse("recompute_modules", reason, instead="''", inert=plan.recompute != "selective")
    if plan.recompute_layers == 0:
        account.imply("recompute_layers", "a policy holds for every layer")
    else:
        account.refuse("recompute_layers", "a policy holds for every layer", instead="0", inert=inert)


def _overlap(account: Account) -> None:
    plan = account.plan
    for field in ("overlap_grad_reduce", "overlap_param_gather"):
        if getattr(plan, field):
            account.imply(field, "left to XLA's latency-hiding scheduler, which no MaxText setting controls")
        else:
            account.refuse(field, "no setting switches XLA's overlap off", instead="on")
    if plan.overlap_tp:
        account.refuse(
            "overlap_tp", "collective matmuls are XLA flags, not settings", instead="off", inert=plan.tp == 1
        )
    else:
        account.imply("overlap_tp", "collective matmuls are off unless XLA flags ask for them")
    _exchange(account)


def _exchange(account: Account) -> None:
    """Tokens reach experts as the mesh and the kernels have it; nothing was checked that chooses or overlaps it, nor
    another optimizer or host memory."""
    plan = account.plan
    if plan.expert_dispatch == "auto":
        account.imply("expert_dispatch", "follows from the mesh and the kernels of the experts")
    else:
        reason = "follows from the mesh and the kernels of the experts"
        account.refuse("expert_dispatch", reason, instead="auto", inert=plan.ep == 1)
    for field, off in (("optimizer", "adam"), ("offload_optimizer", False), ("offload_activations", False)):
        if getattr(plan, field) == off:
            account.imply(field, "Adam and device memory are the defaults")
        else:
            account.refuse(field, "no setting for it was checked in this release", instead=str(off))
    if plan.overlap_ep:
        account.refuse("overlap_ep", "no setting was checked that overlaps two micro-batches", instead="off")
    else:
        account.imply("overlap_ep", "off is the default")


EXPORTER = MaxText()
