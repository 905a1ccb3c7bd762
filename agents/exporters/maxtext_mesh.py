"""The mesh of a plan in MaxText's axes, and how they spread over slices (ici_* inside one, dcn_* between them).

MaxText's rules tie axes together, by base.yml's logical_axis_rules:
  data, fsdp, expert   all split the batch, so dp = data * fsdp * expert
  fsdp, expert, context   all shard the dense weights, so a plan's fsdp = fsdp axis * expert axis, with cp on top
  tensor, tensor_sequence   split heads and MLP widths, those of experts too, so etp = tp
"""

from dataclasses import dataclass
from math import gcd

from agents.exporters.account import Account
from agents.exporters.exporter import Job, spread
from projector.rules.slices import slice_count

# Outermost first: which axis crosses slices before the others do.
OUTWARD = ("pipeline", "data", "fsdp", "expert", "context", "tensor")


@dataclass(frozen=True)
class Axes:
    """Sizes of the axes over all slices; their product is the devices."""

    pipeline: int
    data: int
    fsdp: int
    expert: int
    context: int
    tensor: int


def lay_out(account: Account, job: Job) -> None:
    """Outcomes of every degree, and the axes that say them."""
    plan = job.plan
    expert = _expert_axis(account, job)
    fsdp = _fsdp_axis(account, job, expert)
    axes = Axes(plan.pp, plan.dp // (fsdp * expert), fsdp, expert, plan.cp, plan.tp)
    names = _write_axes(account, axes, _slices(account, job))
    account.said("dp", names["data"] + names["fsdp"] + names["expert"], note="their product")
    account.said("pp", names["pipeline"])
    account.said("cp", names["context"])
    account.said("tp", names["tensor"])
    _sequence_parallelism(account)
    _stages(account, job)
    _context(account, job)


def _expert_axis(account: Account, job: Job) -> int:
    """Size of the expert axis, which is taken out of dp; 1 where the plan's experts cannot be placed so."""
    plan = job.plan
    if job.moe is False:
        account.no_experts()
        return 1
    fits = plan.dp % plan.ep == 0
    if fits:
        account.said("ep", ["ici_expert_parallelism", "dcn_expert_parallelism"])
    else:
        account.refuse("ep", f"the expert axis is a part of dp, which is {plan.dp}", instead="1")
    if job.architecture is None and plan.etp > 1:
        account.refuse("etp", "follows from the model, which is unknown here", instead=f"{plan.tp} with experts")
    elif plan.etp == plan.tp or job.moe is None:
        account.imply("etp", "widths of experts are split over the tensor axis")
    else:
        account.refuse("etp", "widths of experts are split over the tensor axis", instead=str(plan.tp))
    return plan.ep if fits else 1


def _fsdp_axis(account: Account, job: Job, expert: int) -> int:
    """Size of the fsdp axis; together with the expert and context axes it shards the dense weights."""
    plan = job.plan
    axis = gcd(plan.fsdp // gcd(plan.fsdp, expert), plan.dp // expert)
    group = axis * expert
    stage = 3 if group > 1 else plan.zero_stage
    if plan.fsdp != group:
        account.refuse("fsdp", "the expert axis shards the other weights too", instead=str(group))
    elif group == 1 and plan.cp > 1:
        account.refuse(
            "fsdp", "the context axis shards the weights", instead=f"sharded over the {plan.cp} context ranks"
        )
    else:
        account.said("fsdp", ["ici_fsdp_parallelism", "dcn_fsdp_parallelism"])
    _zero_stage(account, stage, sharded=group > 1 or plan.cp > 1)
    return axis


def _zero_stage(account: Account, stage: int, *, sharded: bool) -> None:
    plan = account.plan
    if plan.optimizer_shard in (0, plan.dp * plan.cp):
        account.imply("optimizer_shard", "the state is shared out over all of the axis where it is sharded at all")
    else:
        inert = plan.zero_stage in (0, 3)
        account.refuse(
            "optimizer_shard", "the optimizer state is shared out over the whole axis", instead="0", inert=inert
        )
    if sharded and plan.zero_stage == 3 == stage:
        account.imply("zero_stage", "sharded weights bring gradients and optimizer state with them")
    elif sharded:
        account.refuse("zero_stage", "the weights are sharded", instead="3")
    elif plan.zero_stage == 1:
        account.say("zero_stage", ("shard_optimizer_over_data", True))
    elif plan.zero_stage == 0:
        account.imply("zero_stage", "replicated weights keep the whole optimizer state by default")
    elif plan.zero_stage == 2:
        account.add("shard_optimizer_over_data", True)
        account.refuse("zero_stage", "gradients are not sharded without the weights", instead="1")
    else:
        account.refuse("zero_stage", "fsdp is 1, no group shards the weights", instead="0", inert=plan.dp == 1)


def _write_axes(account: Account, axes: Axes, slices: int) -> dict[str, list[str]]:
    """One ici_* and, over several slices, one dcn_* argument an axis; names by axis."""
    names: dict[str, list[str]] = {}
    left = slices
    for axis in OUTWARD:
        size = getattr(axes, axis)
        across = gcd(size, left)
        left //= across
        word = "tensor_sequence" if axis == "tensor" and account.plan.sp else axis
        names[axis] = [f"ici_{word}_parallelism", f"dcn_{word}_parallelism"]
        account.add(names[axis][0], size // across)
        account.add(names[axis][1], across)
        if across > 1 and axis in ("context", "tensor"):
            account.note(f"The {axis} axis crosses slices, where there is only the data-centre network.")
    assert left == 1, f"{slices} slices do not divide the devices"
    return names


def _slices(account: Account, job: Job) -> int:
    """Slices of a torus, fast domains of GPUs: equal shares of the plan's devices."""
    devices, chip, cluster = job.plan.devices, job.hardware, job.cluster
    if chip is None:
        slices = cluster.slices if cluster is not None and devices % cluster.slices == 0 else 1
        account.note(f"The chip is unknown: written for {slices} slice(s); move outer axes to dcn_* for more.")
    elif chip.intra.kind == "torus" and cluster is not None:
        a_slice = cluster.chips * chip.devices_per_chip // slice_count(cluster, chip)
        slices, _ = spread(devices, a_slice)
    else:
        slices, each = spread(devices, chip.intra.max_domain_chips * chip.devices_per_chip)
        if slices > 1:
            account.note(f"JAX has to see {slices} slices of {each} devices: one for each {chip.intra.name} domain.")
    return slices


def _sequence_parallelism(account: Account) -> None:
    plan = account.plan
    if plan.sp and plan.tp > 1:
        account.said("sp", ["ici_tensor_sequence_parallelism", "dcn_tensor_sequence_parallelism"])
    elif plan.sp:
        account.refuse("sp", "tp is 1", instead="off", inert=True)
    elif plan.tp > 1:
        account.imply("sp", "the tensor axis splits activations outside the blocks by hidden size, not by sequence")
    else:
        account.imply("sp", "tp is 1")


def _stages(account: Account, job: Job) -> None:
    """Repeats of a circular pipeline are virtual stages; stages of unequal length do not exist."""
    plan, model = job.plan, job.architecture
    if plan.pp == 1:
        if plan.vp == 1:
            account.imply("vp", "one stage needs no repeats")
        else:
            account.refuse("vp", "virtual stages need pp > 1", instead="1", inert=True)
        return
    account.say("vp", ("num_pipeline_repeats", plan.vp), note="repeats of the circular pipeline")
    chunks = plan.pp * plan.vp
    if model is None:
        account.add(
            "num_layers_per_pipeline_stage", account.fill("LAYERS_PER_STAGE", f"layers of the model over {chunks}")
        )
        return
    # leading dense layers stay outside: pipelines hold layers of one kind
    pipelined = model.moe_layers if model.first_dense_layers else model.layers
    a_stage = max(1, pipelined // chunks)
    account.add("num_layers_per_pipeline_stage", a_stage)
    outside = model.layers - a_stage * chunks
    if outside > 0:
        account.add("pipeline_parallel_layers", a_stage * chunks)
        account.note(
            f"{outside} of {model.layers} layers do not fit into {chunks} equal chunks: for them the stages work as "
            "data parallelism."
        )


def _context(account: Account, job: Job) -> None:
    """How context ranks exchange keys: a ring where the chip's kernels have one, else all at once (the default)."""
    plan = job.plan
    if plan.cp == 1:
        if plan.cp_kind == "ring":
            account.imply("cp_kind", "cp is 1, nothing is exchanged")
        else:
            account.refuse("cp_kind", "cp is 1, nothing is exchanged", instead="ring", inert=True)
        return
    if plan.cp_kind == "ring" and not _ring(account, job):
        account.add("context_parallel_strategy", "all_gather")
        reason = "the kernels of this chip and model have no ring"
        account.refuse("cp_kind", reason, instead="all_gather: the same bytes at once, more memory")
    else:
        strategy = {"all_to_all": "ulysses"}.get(plan.cp_kind, plan.cp_kind)
        account.say("cp_kind", ("context_parallel_strategy", strategy))


def _ring(account: Account, job: Job) -> bool:
    """Whether a ring runs; the settings it needs are added."""
    if job.hardware is not None and job.hardware.kind == "gpu":
        account.add("attention", "cudnn_flash_te")
        account.add("max_segments_per_seq", account.fill("MAX_SEGMENTS", "most documents packed into one sequence"))
        return True
    if job.hardware is None or not _ring_on_tpu(job):
        return False
    account.add("attention", "flash")
    account.add("use_tokamax_splash", True)
    return True


def _ring_on_tpu(job: Job) -> bool:
    """MaxText's conditions: cp squared divides the sequence, cp is even, no layer has a window or latent attention."""
    length = None if job.workload is None else job.workload.seq_len
    cp, model = job.plan.cp, job.architecture
    return (
        length is not None
        and length % (cp * cp) == 0
        and cp % 2 == 0
        and model is not None
        and model.sliding_window is None
        and not model.is_mla
    )
