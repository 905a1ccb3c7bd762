"""Rules about chips: how many, in what shape, offering which precision.

There is no rule that an axis has to be a product of torus dimensions: an axis may take a factor of a dimension, and
where the axes multiply to the devices of a slice, splitting both sides into primes always finds such factors.
Tensor parallelism beyond the fast domain of a GPU is legal and slow; its price is the projector's to say.
"""

import numpy as np

from projector.rules.rule import Breach, Rule, Setting, breach, does_not_divide
from projector.rules.slices import slice_count
from projector.specs.plan_batch import PlanBatch


def _device_count(plans: PlanBatch, setting: Setting) -> Breach:
    return breach(plans, plans.devices != setting.devices, plans.devices, setting.devices)


def _slice_size(plans: PlanBatch, setting: Setting) -> Breach | None:
    """A slice is one torus: it cannot be larger than the pod. GPU domains are joined by the network instead."""
    fabric = setting.chip.intra
    if fabric.kind != "torus":
        return None
    size = setting.cluster.chips // slice_count(setting.cluster, setting.hardware)
    return breach(plans, size > fabric.max_domain_chips, size, fabric.max_domain_chips)


def _topology_dimensions(plans: PlanBatch, setting: Setting) -> Breach | None:
    if setting.cluster.topology is None:
        return None
    given, built = len(setting.cluster.topology), setting.chip.intra.torus_dimensions or 0
    return breach(plans, given != built, given, built)


def _slice_boundary(plans: PlanBatch, setting: Setting) -> Breach:
    """Between slices there is only DCN: slices are spread over dp and pp, tp and cp groups stay inside one."""
    return does_not_divide(plans, slice_count(setting.cluster, setting.hardware), plans.dp * plans.pp)


def _dtype_offered(plans: PlanBatch, setting: Setting) -> Breach:
    offered = np.isin(plans.compute_dtype, list(setting.chip.peak_flop_per_s))
    return breach(plans, ~offered, 0, 1)


def _host_link(plans: PlanBatch, setting: Setting) -> Breach:
    """Nothing can be said of copies to host memory over a link whose rate nobody states."""
    offloads = plans.offload_optimizer | plans.offload_activations
    return breach(plans, offloads & (setting.chip.host is None), 0, 1)


CLUSTER_RULES: tuple[Rule, ...] = (
    Rule("device_count", "devices", "!=", _device_count),
    Rule("slice_size", "chips in one slice", ">", _slice_size, needs_chip=True),
    Rule("topology_dimensions", "topology dimensions", "!=", _topology_dimensions, needs_chip=True),
    Rule("slice_boundary", "slices over dp * pp:", "does not divide", _slice_boundary),
    Rule("host_link", "stated host links of the chip, which offloading needs:", "<", _host_link, needs_chip=True),
    Rule(
        "dtype_offered",
        "peak figures for the compute dtype",
        "<",
        _dtype_offered,
        needs_chip=True,
        name_quantity=lambda plan, setting: f"peak figures for {plan.compute_dtype} on {setting.chip.id}",
    ),
)
