"""Megatron-LM: a training plan as arguments of pretrain_gpt.py under torchrun.

Argument definitions: megatron/training/arguments.py and the configuration classes it builds arguments from, with the
checks of `validate_args`; tests/data/exporters/megatron_arguments.json lists the ones used here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.exporters.account import Account
from agents.exporters.exporter import UNKNOWN, Job, Known, LaunchConfig, ParsedLaunch, Variable, spread
from agents.exporters.megatron_experts import place_experts
from agents.exporters.megatron_model import describe_model
from agents.exporters.megatron_optimizer import choose_optimizer
from agents.exporters.megatron_parse import parse_megatron
from agents.exporters.megatron_recompute import choose_recompute
from agents.exporters.megatron_sharding import shard_data_parallelism
from agents.exporters.refusal import cannot_launch
from agents.exporters.render import command_arguments
from projector.cost.layer_split import Split, chunk_lengths, ends_count
from projector.rules.training_rules import SERVING_FIELDS
from projector.specs.plan import ParallelismPlan, Phase

SCRIPT = "pretrain_gpt.py"
LAYOUT = "--pipeline-model-parallel-layout"
FLOAT_FLAGS: dict[str, tuple[tuple[str, str | None], ...]] = {
    "bf16": (("--bf16", None),),
    "fp16": (("--fp16", None),),
    "fp8": (("--bf16", None), ("--fp8-format", "hybrid")),
    "mxfp8": (("--bf16", None), ("--fp8-format", "e4m3"), ("--fp8-recipe", "mxfp8")),
    "fp4": (("--bf16", None), ("--fp4-format", "e2m1")),
    "nvfp4": (("--bf16", None), ("--fp4-format", "e2m1"), ("--fp4-recipe", "nvfp4")),
}


@dataclass(frozen=True)
class Megatron:
    """The exporter of Megatron-LM."""

    framework: str = "megatron"
    title: str = "Megatron-LM"
    version: str = "core_v0.19.0 (commit 5be9626709af)"
    phases: tuple[Phase, ...] = ("training",)

    def export(self, job: Job) -> LaunchConfig:
        """torchrun with pretrain_gpt.py and its arguments; nothing to launch for serving plans and on TPUs."""
        if job.plan.phase not in self.phases:
            return cannot_launch(self, job, f"{self.title} is exported for training, this is a {job.plan.phase} plan")
        if job.hardware is not None and job.hardware.kind != "gpu":
            return cannot_launch(self, job, f"{self.title} runs on GPUs, {job.hardware.id} is none")
        if job.trains_adapters:
            return cannot_launch(self, job, f"{SCRIPT} has no arguments for low-rank adapters: it trains all weights")
        account = Account(job.plan)
        account.imply("phase", f"{SCRIPT} trains")
        launcher = _launcher(account, job)
        _layout(account, job)
        place_experts(account, job)
        _batch(account, job)
        _precision(account)
        choose_recompute(account, job)
        choose_optimizer(account)
        sharded = shard_data_parallelism(account, job)
        _overlap_tp(account)
        account.foreign(SERVING_FIELDS, "serving")
        describe_model(account, job)
        closed = account.close()
        return LaunchConfig(
            framework=self.framework,
            title=self.title,
            version=self.version,
            devices=job.plan.devices,
            command=(*launcher, SCRIPT, *command_arguments(closed.settings)),
            environment=_environment(job, sharded=sharded),
            **dict(closed),
        )

    def parse(self, arguments: Sequence[str], known: Known = UNKNOWN) -> ParsedLaunch:
        """The plan of a torchrun or bare argument vector; the processes come from torchrun or from `known`."""
        return parse_megatron(arguments, known)


def _launcher(account: Account, job: Job) -> tuple[str, ...]:
    """torchrun with as many processes as the plan has devices."""
    devices, per_node = job.plan.devices, job.devices_per_node
    if job.hardware is not None and job.hardware.vendor != "NVIDIA":
        account.note(f"The arguments are those of the upstream release, not of a build for {job.hardware.vendor} GPUs.")
    if per_node is None:
        account.note(f"The chip is unknown, so are the devices of a node: start {devices} processes in all.")
        nodes = account.fill("NODES", "hosts of the job")
        each = account.fill("DEVICES_PER_NODE", "GPUs a host uses")
        return ("torchrun", "--nnodes", nodes, "--nproc-per-node", each, *_rendezvous(account))
    count, size = spread(devices, per_node)
    if count > 1 and size < per_node:
        account.note(f"{devices} devices do not fill nodes of {per_node}: written for {count} nodes of {size}.")
    together = ("torchrun", "--nnodes", str(count), "--nproc-per-node", str(size))
    return together if count == 1 else (*together, *_rendezvous(account))


def _rendezvous(account: Account) -> tuple[str, ...]:
    return (
        "--node-rank",
        account.fill("NODE_RANK", "0 on the first host, counting up on the others"),
        "--master-addr",
        account.fill("MASTER_ADDRESS", "name or address of the first host"),
    )


def _layout(account: Account, job: Job) -> None:
    plan, model = job.plan, job.architecture
    account.imply("dp", "what tp * cp * pp leaves of the processes torchrun starts")
    account.say("tp", ("--tensor-model-parallel-size", plan.tp))
    account.say("pp", ("--pipeline-model-parallel-size", plan.pp))
    account.say("cp", ("--context-parallel-size", plan.cp), note="--cp-comm-type says how")
    _context_kind(account)
    _sequence_parallelism(account, job)
    if plan.vp > 1 and plan.pp == 1:
        account.refuse("vp", "virtual stages need pp > 1", instead="one stage", inert=True)
    elif plan.vp > 1 and model is not None and _needs_layout(plan, model.layers):
        account.said("vp", [LAYOUT], note="the layout has pp * vp parts")
    elif plan.vp > 1:
        account.say("vp", ("--num-virtual-stages-per-pipeline-rank", plan.vp))
    else:
        account.imply("vp", "one virtual stage is the default")
    runs = "interleaved" if plan.vp > 1 and plan.pp > 1 else "1f1b"
    if plan.schedule == runs:
        account.imply("schedule", f"{runs} follows from the virtual stages")
    else:
        account.refuse("schedule", "the schedule follows from the virtual stages", instead=runs, inert=plan.pp == 1)
    uneven = _end_stages(account)
    if model is not None and plan.pp > 1 and not uneven:
        _split_layers(account, model.layers)


def _end_stages(account: Account) -> bool:
    """Outcomes of a first and a last stage of their own length; whether one is set."""
    plan, uneven = account.plan, False
    for field, flag in (
        ("first_stage_layers", "--decoder-first-pipeline-num-layers"),
        ("last_stage_layers", "--decoder-last-pipeline-num-layers"),
    ):
        length = getattr(plan, field)
        if length == 0:
            account.imply(field, "as the even split has it")
        elif plan.pp == 1:
            account.refuse(field, "one stage holds all layers", instead="all layers", inert=True)
        else:
            account.say(field, (flag, length), note="the other stages share the rest evenly")
            uneven = True
    return uneven


def _sequence_parallelism(account: Account, job: Job) -> None:
    plan = job.plan
    if plan.sp and plan.tp == 1:
        account.refuse("sp", "switched off by the framework where tp is 1", instead="off", inert=True)
    elif not plan.sp and plan.tp > 1 and job.moe:
        account.add("--sequence-parallel")
        account.refuse("sp", "experts with tp > 1 train only with sequence parallelism", instead="on")
    elif plan.sp:
        account.say("sp", ("--sequence-parallel", None))
    else:
        account.imply("sp", "off is the default")


def _context_kind(account: Account) -> None:
    """How context ranks exchange keys: one word for all layers."""
    plan = account.plan
    if plan.cp_kind == "ring":
        account.imply("cp_kind", "--cp-comm-type p2p, the ring, is the default")
    elif plan.cp == 1:
        account.refuse("cp_kind", "cp is 1, nothing is exchanged", instead="ring", inert=True)
    else:
        account.say("cp_kind", ("--cp-comm-type", ({"all_to_all": "a2a"}.get(plan.cp_kind, plan.cp_kind),)))


def _needs_layout(plan: ParallelismPlan, layers: int) -> bool:
    """Whether no other argument says how layers are split: they do not divide, nor with embedding and head counted."""
    chunks = plan.pp * plan.vp
    if plan.first_stage_layers or plan.last_stage_layers or layers % chunks == 0:
        return False
    return plan.vp == 1 or not ends_count(layers, chunks)


def _split_layers(account: Account, layers: int) -> None:
    """How layers that do not divide are split, as the projector splits them.

    Embedding and head count as a layer each where that makes equal chunks; otherwise the longer chunks come first, as
    the last one also holds the head. A layout lists pp * vp parts in the order of the model.
    """
    plan = account.plan
    chunks = plan.pp * plan.vp
    if _needs_layout(plan, layers):
        lengths = chunk_lengths(layers, Split(plan.pp, plan.vp)).ravel().tolist()
        account.add(LAYOUT, "E" + "|".join(f"t*{length}" for length in lengths) + "L")
        account.note(f"{layers} layers do not divide into {chunks} stages: they hold {lengths[0]} to {lengths[-1]}.")
    elif layers % chunks:
        account.add("--account-for-embedding-in-pipeline-split")
        account.add("--account-for-loss-in-pipeline-split")
        account.note(f"{layers} layers, embedding and head divide into {chunks} equal chunks: both count as a layer.")


def _batch(account: Account, job: Job) -> None:
    plan = job.plan
    account.say("micro_batch", ("--micro-batch-size", plan.micro_batch))
    account.say(
        "grad_accum",
        ("--global-batch-size", plan.dp * plan.micro_batch * plan.grad_accum),
        note="the global batch is dp * micro_batch * grad_accum sequences",
    )


def _precision(account: Account) -> None:
    dtype = account.plan.compute_dtype
    if dtype == "fp32":
        account.imply("compute_dtype", "neither --bf16 nor --fp16 is set")
    elif dtype in FLOAT_FLAGS:
        account.say("compute_dtype", *FLOAT_FLAGS[dtype])
    else:
        account.add("--bf16")
        account.refuse("compute_dtype", f"there is no {dtype} training", instead="bf16")
    if dtype == "fp8":
        account.note("Without --fp8-recipe the framework takes its default recipe: choose one for your chip.")


def _overlap_tp(account: Account) -> None:
    plan = account.plan
    if not plan.overlap_tp:
        account.imply("overlap_tp", "off is the default")
    elif plan.tp == 1:
        account.refuse("overlap_tp", "tp is 1, there is nothing to overlap", instead="off", inert=True)
    elif not plan.sp:
        account.refuse("overlap_tp", "needs sequence parallelism", instead="off")
    else:
        account.say("overlap_tp", ("--tp-comm-overlap", None), note="needs Transformer Engine with its userbuffers")


def _environment(job: Job, *, sharded: bool) -> tuple[Variable, ...]:
    """CUDA_DEVICE_MAX_CONNECTIONS: 1 with tp or cp (asserted before Blackwell), anything but 1 with Megatron-FSDP."""
    if sharded:
        return (Variable(name="CUDA_DEVICE_MAX_CONNECTIONS", value=None),)
    if job.plan.tp > 1 or job.plan.cp > 1:
        return (Variable(name="CUDA_DEVICE_MAX_CONNECTIONS", value="1"),)
    return ()


EXPORTER = Megatron()
