"""What a description must satisfy before it can be projected, and what the model assumes where it leaves room."""

import re

import numpy as np

from projector.batch_projection import Assumption
from projector.cost.device import Device
from projector.cost.pools import pool_fields_set, prefill_pool
from projector.cost.torus import slice_chips, slice_shape
from projector.errors import InvalidDescription
from projector.graph.adapters import check_targets
from projector.graph.columns import DTYPE_BYTES, Switch, lookup
from projector.graph.documents import useful_frac
from projector.kernel_assumptions import kernel_assumptions
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.fine_tuning import Adapter
from projector.specs.hardware import HardwareProfile
from projector.specs.plan_batch import Column as AnyColumn
from projector.specs.plan_batch import PlanBatch
from projector.specs.sequence_lengths import SequenceLengths
from projector.specs.software import CURRENT, Software
from projector.specs.vendors import attention_backends, has_quick_reduce
from projector.specs.workload import WorkloadSpec

# figures no time or memory depends on
NO_COST = frozenset({"price_usd_per_chip_hour", "tdp_w"})
# a figure that only plans with offloading need: said of them alone
HOST_LINK = "host.bytes_per_s_one_way"


def check(batch: PlanBatch, workload: WorkloadSpec, cluster: ClusterSpec, hardware: HardwareProfile) -> None:
    """InvalidDescription when plans, workload, cluster and chip contradict each other or the model covers them not."""
    if len(batch) == 0:
        raise InvalidDescription("an empty batch of plans has no projection")
    _check_chip(cluster, hardware)
    _check_host_link(batch, hardware)
    _refuse(batch, batch.phase != workload.phase, f"is not a {workload.phase} plan, as the workload is")
    devices = cluster.chips * hardware.devices_per_chip
    _refuse(
        batch,
        batch.devices != devices,
        f"does not occupy the {devices} devices of {cluster.chips} x {hardware.id}",
        hint="dp * cp * tp * pp, and the prefill pool's devices, must equal chips * devices_per_chip",
    )
    if workload.phase == "training":
        _check_training(batch, workload)
    else:
        _check_serving(batch)
        _check_kernels(batch, hardware)


def sizes(workload: WorkloadSpec, *names: str) -> tuple[int, ...]:
    """The named sizes of the workload. InvalidDescription naming every one that is missing."""
    missing = [name for name in names if getattr(workload, name) is None]
    if missing:
        raise InvalidDescription(
            f"the {workload.phase} workload lacks {', '.join(missing)}",
            hint="a projection needs them; state them or let the planner assume them aloud",
        )
    return tuple(getattr(workload, name) for name in names)


def math_dtypes(batch: PlanBatch, device: Device) -> tuple[AnyColumn, tuple[Assumption, ...]]:
    """The dtype GEMMs of each plan run in on this device, and a sentence for every plan whose own is not offered.

    Training: compute_dtype. Serving: the narrower of weight_dtype and compute_dtype; weights in a dtype the chip has no
    units for are stored and read in it and multiplied in compute_dtype (weight-only). A compute dtype without units
    runs in the next wider one. InvalidDescription where none is wide enough.
    """
    wanted = batch.compute_dtype
    stored: tuple[Assumption, ...] = ()
    if batch.phase[0] == "serving":
        narrower = lookup(batch.weight_dtype, DTYPE_BYTES) < lookup(batch.compute_dtype, DTYPE_BYTES)
        units = np.isin(batch.weight_dtype, list(device.peak_flop_per_s))
        stored = _weight_only(batch, narrower & ~units, device)
        wanted = np.where(narrower & units, batch.weight_dtype, batch.compute_dtype)
    distinct, inverse = np.unique(wanted, return_inverse=True)
    runs = [device.runs(dtype.item()) for dtype in distinct]
    replaced = tuple(
        Assumption(f"{device.hardware.id} has no {dtype} units: GEMMs are projected in {run}", wanted == dtype)
        for dtype, run in zip(distinct, runs, strict=True)
        if dtype != run
    )
    return np.array(runs)[inverse], (*stored, *replaced)


def _weight_only(batch: PlanBatch, only: Switch, device: Device) -> tuple[Assumption, ...]:
    """A sentence for every weight dtype that is storage only."""
    return tuple(
        Assumption(
            f"{device.hardware.id} has no {dtype} units: weights are stored and read in {dtype}, "
            "and multiplied in the compute dtype",
            only & (batch.weight_dtype == dtype),
        )
        for dtype in np.unique(batch.weight_dtype[only]).tolist()
    )


def assumptions(
    batch: PlanBatch,
    workload: WorkloadSpec,
    model: ModelArchitecture,
    cluster: ClusterSpec,
    hardware: HardwareProfile,
    software: Software,
) -> tuple[Assumption, ...]:
    """What a projection takes for granted beyond its description, one sentence each."""
    found = [*_cluster_assumptions(cluster, hardware), *_unread_figures(model, hardware)]
    tokens = workload.sequence_tokens
    if model.max_positions is not None and tokens is not None and tokens > model.max_positions:
        found.append(
            Assumption(
                f"sequences of {tokens} tokens pass the {model.max_positions} positions {model.name} was made for"
            )
        )
    if model.class_defaults:
        left = ", ".join(model.class_defaults)
        found.append(Assumption(f"not stated of {model.name}, as its class in transformers has it: {left}"))
    if model.encoder_parameters != 0:
        size = "" if model.encoder_parameters is None else f" of {model.encoder_parameters / 1e9:.2g} billion weights"
        found.append(Assumption(f"text alone: the encoders of {model.name}{size} are left out"))
    if model.is_moe:
        found.append(_routing(software, workload.expert_imbalance))
    if model.mtp_layers and not model.trained_mtp_layers and not (batch.phase[0] == "training" and software.trains_mtp):
        left_out = f"{model.mtp_layers} multi-token-prediction layers of the checkpoint are left out"
        found.append(Assumption(left_out, np.asarray(batch.speculation != "mtp")))
    if workload.adapter is not None:
        found.append(Assumption(_adapter_sentence(workload.adapter, model)))
    if workload.lengths is not None and tokens is not None:
        found.append(Assumption(_lengths_sentence(workload.lengths, tokens)))
    if batch.phase[0] == "training" and software == CURRENT:
        found.append(Assumption("fused attention kernels, no dropout"))
    if batch.phase[0] == "training":
        unmeasured = np.isin(batch.schedule, ("zero_bubble", "dualpipe"))
        found.append(
            Assumption(
                "the pipeline schedule is modelled by its published order; no measured run checks it", unmeasured
            )
        )
        found += _host_link(batch, hardware, software)
    if batch.phase[0] == "serving":
        found.append(Assumption(f"{_traffic(workload)}; {_prefix(workload)}"))
        found += kernel_assumptions(batch, model, hardware)
        found.append(Assumption("sequence parallelism has no effect in serving", batch.sp.astype(bool)))
    return tuple(assumption for assumption in found if assumption.plans is None or assumption.plans.any())


def _prefix(workload: WorkloadSpec) -> str:
    """What is taken for granted of cached prompts."""
    if not workload.prefix_hit_frac:
        return "no prefix is cached"
    return (
        f"the cached {workload.prefix_hit_frac:.0%} of each prompt are one prefix that all requests of an attention "
        "rank share, held once in its KV pool"
    )


def _traffic(workload: WorkloadSpec) -> str:
    """What is taken for granted of requests: their lengths, and how they come."""
    spread = workload.length_spread_frac
    lengths = "every request has the mean prompt and output length"
    if spread:
        lengths = f"prompts and outputs are uniform within {spread:.0%} of their mean lengths"
    if workload.request_rate_per_s is not None:
        how = "evenly spaced" if workload.arrivals == "deterministic" else "at random (Poisson)"
        return f"{lengths}; requests arrive {how}, at every engine an equal share"
    if workload.requests_per_slot is not None:
        rounds = workload.requests_per_slot
        return f"{lengths}; TTFT is the mean of a run of {rounds:g} requests for each in flight, which start at once"
    return lengths


def _lengths_sentence(lengths: SequenceLengths, seq_len: int) -> str:
    """What documents shorter than their rows mean, and how much padding there is."""
    if lengths.rows == "packed":
        return f"{lengths.text}: rows are full, attention skips other documents, ranks get equal work"
    return f"{lengths.text}: {1 - useful_frac(seq_len, lengths):.0%} of the computed positions are padding"


def _adapter_sentence(adapter: Adapter, model: ModelArchitecture) -> str:
    """What a projection of adapters leaves open; InvalidDescription where the model has no such projection."""
    check_targets(model, adapter)
    untouched = [
        *(["routed experts"] if model.is_moe and "experts" not in adapter.targets else []),
        *(["recurrent mixers"] if any(sort.recurrence is not None for sort in model.by_sort()) else []),
    ]
    none = f", none on {' and '.join(untouched)}" if untouched else ""
    return (
        f"adapters of rank {adapter.rank} on {', '.join(adapter.targets)}{none}, without dropout; the interval is that "
        "of steps that train all weights"
    )


def _routing(software: Software, imbalance: float | None) -> Assumption:
    if imbalance is not None and imbalance > 1:
        return Assumption(f"the busiest expert rank gets {imbalance:g} times the mean of tokens, in every layer")
    if software.expert_load == 1.0:
        return Assumption("the router spreads tokens evenly over experts and drops none")
    return Assumption(f"the busiest device computes {software.expert_load:g} times its even share of expert rows")


def _cluster_assumptions(cluster: ClusterSpec, hardware: HardwareProfile) -> list[Assumption]:
    if hardware.intra.kind != "torus" or cluster.topology is not None:
        return []
    shape = "x".join(str(size) for size in slice_shape(cluster, hardware))
    found = [Assumption(f"a slice of {hardware.id} has the most even shape, {shape}")]
    slices = cluster.chips // slice_chips(cluster, hardware)
    if slices != cluster.slices:
        largest = hardware.intra.max_domain_chips
        found.append(Assumption(f"{cluster.chips} chips pass the largest slice of {largest}: {slices} slices over DCN"))
    return found


def _unread_figures(model: ModelArchitecture, hardware: HardwareProfile) -> list[Assumption]:
    """What the descriptions say of themselves: numbers somebody recalled, efficiencies nobody measured."""
    found = []
    if model.unverified:
        found.append(Assumption(f"the sizes of {model.name} were recalled, not re-read"))
    recalled = [path for path, figure in hardware.figures().items() if figure is not None and figure.unverified]
    listed = ", ".join(path for path in recalled if path not in NO_COST and path != HOST_LINK)
    if listed:
        found.append(Assumption(f"figures of {hardware.id} that were recalled, not re-read: {listed}"))
    if "gemm_efficiency_frac" in hardware.calibration.assumed:
        found.append(Assumption(f"no kernel was timed on {hardware.id} by itself: its efficiencies are assumed"))
    return found


def _host_link(batch: PlanBatch, hardware: HardwareProfile, software: Software) -> list[Assumption]:
    """What copies to host memory rest on, of plans that make any."""
    by_plan = batch.offload_optimizer.astype(bool) | batch.offload_activations.astype(bool)
    copies = ((batch.recompute == "full") & software.offloads_inputs) | by_plan
    if hardware.host is None:
        return [
            Assumption(
                f"no source states the host link of {hardware.id}: inputs of recomputed layers are offloaded "
                "in no time",
                copies,
            )
        ]
    found = [Assumption("host memory has room for all that is offloaded", by_plan)]
    if hardware.host.bytes_per_s_one_way.unverified:
        found.append(Assumption(f"the host link of {hardware.id} was recalled, not re-read: {HOST_LINK}", copies))
    return found


def _check_chip(cluster: ClusterSpec, hardware: HardwareProfile) -> None:
    names = {_plain(name) for name in (hardware.id, *hardware.aliases)}
    if _plain(cluster.chip) not in names:
        raise InvalidDescription(
            f"the cluster is made of {cluster.chip!r}, the hardware profile is {hardware.id!r}",
            hint="project on another chip with a cluster of that chip",
        )


def _check_host_link(batch: PlanBatch, hardware: HardwareProfile) -> None:
    if hardware.host is None:
        _refuse(
            batch,
            batch.offload_optimizer.astype(bool) | batch.offload_activations.astype(bool),
            f"offloads to host memory, and no source states the host link of {hardware.id}",
            hint="add host.bytes_per_s_one_way with its source to the chip's file",
        )


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "-", name.strip().lower())


def _check_training(batch: PlanBatch, workload: WorkloadSpec) -> None:
    _, global_batch = sizes(workload, "seq_len", "global_batch")
    _refuse(
        batch,
        batch.dp * batch.micro_batch * batch.grad_accum != global_batch,
        f"does not consume the global batch of {global_batch} sequences",
        hint="dp * micro_batch * grad_accum must equal global_batch",
    )
    _refuse(
        batch,
        (batch.zero_stage == 3) & (batch.fsdp == 1) & (batch.dp > 1),
        "has zero_stage 3 and fsdp 1: weights are sharded and whole at once",
        hint="set fsdp to the size of the weight-sharding group",
    )


def _check_serving(batch: PlanBatch) -> None:
    _refuse(batch, batch.cp > 1, "has cp > 1: context parallelism is not modelled in serving")
    _refuse(batch, batch.fsdp > 1, "has fsdp > 1: engines hold their weights whole")
    _refuse(
        batch,
        (batch.attention_dp * batch.tp) % (batch.ep * batch.etp) != 0,
        "spreads experts past one engine: ep * etp must divide attention_dp * tp",
    )
    _refuse(
        batch,
        (batch.prefill_replicas == 0) & (pool_fields_set(batch) > 0),
        "sets fields of a prefill pool and has none",
        hint="set prefill_replicas, or leave prefill_* and kv_transfer at their defaults",
    )
    prefill = prefill_pool(batch)
    _refuse(
        batch,
        (prefill.attention_dp * prefill.tp) % (prefill.ep * prefill.etp) != 0,
        "spreads experts past one prefill engine",
        hint="prefill_ep * prefill_etp must divide prefill_attention_dp * prefill_tp",
    )


def _check_kernels(batch: PlanBatch, hardware: HardwareProfile) -> None:
    """Kernels a plan names exist for the chip; of kernels that do not there is no time to project."""
    offered = attention_backends(hardware)
    _refuse(
        batch,
        ~np.isin(batch.attention_backend, offered),
        f"names attention kernels that do not exist for {hardware.id}",
        hint=f"attention_backend: {', '.join(offered)}",
    )
    _refuse(
        batch,
        batch.quick_reduce & (not has_quick_reduce(hardware)) & (batch.tp > 1),
        f"has quick_reduce, whose kernels do not exist for {hardware.id}",
    )
    _refuse(
        batch,
        (batch.expert_dispatch == "deepep") & (hardware.kind != "gpu") & (batch.ep > 1),
        f"dispatches with DeepEP, whose kernels do not exist for {hardware.id}",
    )


def _refuse(batch: PlanBatch, wrong: Switch, what: str, hint: str = "") -> None:
    """Raise for the first plan that is wrong, counting the others."""
    found = np.flatnonzero(wrong)
    if len(found) == 0:
        return
    plan = batch[int(found[0])]
    layout = f"dp {plan.dp}, fsdp {plan.fsdp}, tp {plan.tp}, pp {plan.pp}, cp {plan.cp}, ep {plan.ep}, etp {plan.etp}"
    more = f" (and {len(found) - 1} more of {len(batch)})" if len(found) > 1 else ""
    raise InvalidDescription(f"plan {found[0]} ({layout}){more} {what}", hint=hint)
