"""How the layout that runs causes its bottleneck: one sentence with its numbers for each way that a rule knows.

weights held     P / (tp pp fsdp) bytes a device: what no axis splits is a full replica on every device
activations      a device keeps batch / (data seq) of a step: micro_batch S / cp tokens at a time
KV cache         beyond the KV heads, tensor parallelism copies keys and values tp / kv_heads times
groups           an axis whose group spans several domains of fast links runs at the rate of the links between them
context          S / cp tokens of a sequence are left to a rank, which passes keys and values on cp - 1 times
experts          E / ep experts a rank; the fullest rank sets the pace of all
gathers          with weights sharded over data, each of the micro-batches of a step gathers them again
pipeline         1F1B leaves (p - 1) / (v m + p - 1) of a step idle, with m micro-batches and v virtual stages
kernels          a matrix kernel sees micro_batch S / cp rows and 1 / tp of a weight: small ones stay below the peak
launches         tensor parallelism makes kernels smaller and not fewer: the host issues as many
"""

from collections.abc import Iterator

from agents.findings import Evidence, EvidenceSource
from agents.planning.job import Job
from agents.planning.layout_words import AXES
from agents.planning.reference import Reference
from agents.wording import gigabytes, percent
from projector.breakdown import Axis, AxisLink
from projector.graph.columns import DTYPE_BYTES
from projector.specs.bottleneck import BOTTLENECK_OF, Cause
from projector.specs.plan import ParallelismPlan
from projector.units import GIGA

LATENCY_CAUSES: frozenset[Cause] = frozenset({"launch_bound", "latency_bound_collectives"})


def mesh_reasons(cause: Cause, plan: ParallelismPlan, job: Job, reference: Reference | None) -> tuple[Evidence, ...]:
    """Every reason that bears on the cause; () where no rule knows one. reference: the plan's own projection."""
    if plan.devices == 1:
        return ()
    source: EvidenceSource = "stated" if job.current_source == "stated" else "assumed"
    return tuple(
        Evidence(id=f"ev-mesh-{name}", claim=claim, value=value, unit=unit, source=source, ref="current.plan")
        for name, claim, value, unit in _reasons(cause, plan, job, reference)
    )


Reason = tuple[str, str, float | None, str]


def _reasons(cause: Cause, plan: ParallelismPlan, job: Job, reference: Reference | None) -> Iterator[Reason]:
    if BOTTLENECK_OF[cause] == "memory":
        yield _weights(plan, job)
        yield from _activations(plan, job, reference)
        yield from _kv_cache(plan, job)
    if BOTTLENECK_OF[cause] == "communication":
        yield from _groups(reference)
        yield from _context(plan, job)
        yield from _gathers(plan)
    if cause == "compute_throughput":
        yield from _kernels(plan, job)
    if cause in ("exposed_ep", "imbalance", "exposed_communication"):
        yield from _experts(plan, job)
    if cause == "pipeline_bubble":
        yield from _pipeline(plan)
    if cause in LATENCY_CAUSES and plan.tp > 1:
        claim = f"Tensor parallelism {plan.tp} makes each kernel and message {plan.tp} times smaller, and none fewer."
        yield "launches", claim, float(plan.tp), "devices"


def _weights(plan: ParallelismPlan, job: Job) -> Reason:
    parts = plan.tp * plan.pp * plan.fsdp
    model = job.architecture
    size = None if model is None else model.parameters * DTYPE_BYTES[_stored(plan)]
    whole = "the whole model" if size is None else f"all {gigabytes(size)} of weights"
    if parts == 1 and plan.ep == 1:
        axis = "model (tp) axis 1, one stage, nothing sharded over data"
        claim = f"With {axis}, each of the {plan.devices} devices holds, reads and updates {whole}: a full replica."
        return "weights", claim, None if size is None else size / GIGA, "" if size is None else "GB"
    split = f"tp {plan.tp} x pp {plan.pp} x fsdp {plan.fsdp} split the weights {parts} ways"
    if plan.ep > 1:
        return "weights", f"{split}, experts over ep {plan.ep} besides.", float(parts), "devices"
    copies = plan.devices // parts
    held = "" if size is None else f": {gigabytes(size / parts)} of {gigabytes(size)} a device"
    value, unit = (float(parts), "devices") if size is None else (size / parts / GIGA, "GB")
    return "weights", f"{split}{held}, {copies} cop{'y' if copies == 1 else 'ies'} in all.", value, unit


def _stored(plan: ParallelismPlan) -> str:
    return plan.weight_dtype if plan.phase == "serving" else "bf16"


def _activations(plan: ParallelismPlan, job: Job, reference: Reference | None) -> Iterator[Reason]:
    if plan.phase != "training":
        return
    split = plan.dp * plan.cp
    claim = f"A device keeps activations of batch / (data {plan.dp} x seq {plan.cp}) = 1/{split} of the step's tokens"
    tokens = None if job.workload.seq_len is None else plan.micro_batch * job.workload.seq_len / plan.cp
    if tokens is not None:
        claim += f", {tokens:,.0f} at a time"
    memory = reference.projection.memory if reference is not None else None
    if memory is not None:
        claim += f"; they are projected to take {gigabytes(memory.activations_bytes)}"
    yield "activations", f"{claim}. Halving data or seq doubles that share.", 1 / split, "fraction"


def _kv_cache(plan: ParallelismPlan, job: Job) -> Iterator[Reason]:
    model = job.architecture
    if plan.phase != "serving" or model is None or model.is_mla or plan.tp <= model.kv_heads:
        return
    copies = plan.tp / model.kv_heads
    claim = (
        f"Tensor parallelism {plan.tp} is beyond the {model.kv_heads} KV heads: each device caches a whole head, and "
        f"every key and value is stored {copies:g} times."
    )
    yield "kv-cache", claim, copies, "copies"


def _groups(reference: Reference | None) -> Iterator[Reason]:
    """Axes whose groups leave their domain of fast links."""
    by_axis: dict[Axis, list[AxisLink]] = {}
    for link in reference.projection.links if reference is not None else ():
        by_axis.setdefault(link.axis, []).append(link)
    for axis, links in by_axis.items():
        slowest = min(links, key=lambda link: link.one_way_bytes_per_s)
        domains = -(-slowest.group_size // slowest.ranks_per_domain)
        if domains == 1:
            continue
        claim = (
            f"The {AXES.get(axis, axis)} group of {slowest.group_size} ranks spans {domains} domains of "
            f"{slowest.ranks_per_domain}: it runs at the {slowest.one_way_bytes_per_s / GIGA:.3g} GB/s a device of "
            f"{slowest.tier}, not at that inside a domain."
        )
        yield f"group-{axis}", claim, float(slowest.group_size), "ranks"


def _context(plan: ParallelismPlan, job: Job) -> Iterator[Reason]:
    if plan.cp == 1:
        return
    seq_len = job.workload.seq_len or job.workload.input_len
    left = "" if seq_len is None else f" leaves {seq_len / plan.cp:,.0f} of {seq_len:,} tokens to a rank, which"
    claim = f"Context parallelism {plan.cp}{left} passes keys and values on {plan.cp - 1} times a layer."
    yield "context", claim, None if seq_len is None else seq_len / plan.cp, "" if seq_len is None else "tokens"


def _gathers(plan: ParallelismPlan) -> Iterator[Reason]:
    if plan.phase != "training" or plan.fsdp == 1:
        return
    times = plan.grad_accum
    claim = f"Weights sharded over {plan.fsdp} ranks are gathered anew by each of the {times} micro-batches of a step."
    yield "gathers", claim, float(times), "micro-batches"


def _experts(plan: ParallelismPlan, job: Job) -> Iterator[Reason]:
    model = job.architecture
    if plan.ep == 1 or model is None or not model.is_moe:
        return
    claim = f"Expert parallelism {plan.ep} leaves {model.experts / plan.ep:g} of {model.experts} experts to a rank"
    imbalance = job.workload.expert_imbalance
    if imbalance is not None:
        claim += f", and the fullest rank has {imbalance:g} times the mean of the tokens"
    yield "experts", f"{claim}: the fullest rank sets the pace of all.", model.experts / plan.ep, "experts"


def _kernels(plan: ParallelismPlan, job: Job) -> Iterator[Reason]:
    if plan.phase != "training" or plan.tp * plan.cp == 1 or job.workload.seq_len is None:
        return
    rows = plan.micro_batch * job.workload.seq_len / plan.cp
    claim = f"A matrix kernel sees {rows:,.0f} rows (seq {plan.cp}) and 1/{plan.tp} of a weight (model {plan.tp})"
    yield "kernels", f"{claim}: the smaller its shard, the farther it stays below the peak.", rows, "rows"


def _pipeline(plan: ParallelismPlan) -> Iterator[Reason]:
    if plan.pp == 1:
        return
    slots = plan.vp * plan.grad_accum
    frac = (plan.pp - 1) / (slots + plan.pp - 1)
    claim = (
        f"{plan.pp} stages with {plan.grad_accum} micro-batches and {plan.vp} virtual stages leave "
        f"(p - 1) / (v m + p - 1) = {percent(frac)} of a step idle with 1F1B."
    )
    yield "pipeline", claim, frac, "fraction"
