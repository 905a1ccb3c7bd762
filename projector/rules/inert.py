"""Where a plan field cannot matter: no value of it changes any figure. Legality is another matter (the rules)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from projector.graph.columns import Switch
from projector.graph.engine_kernels import FUSED_REDUCE_BYTES
from projector.rules.rule import Setting
from projector.specs.plan import Phase
from projector.specs.plan_batch import PlanBatch
from projector.specs.vendors import attention_backends, has_quick_reduce

BOTH: tuple[Phase, ...] = ("training", "serving")
SERVING: tuple[Phase, ...] = ("serving",)
TRAINING: tuple[Phase, ...] = ("training",)


def _never(_: Setting) -> bool:
    return False


def _nowhere(plans: PlanBatch, _: Setting) -> Switch:
    return np.zeros(len(plans), dtype=np.bool_)


@dataclass(frozen=True)
class Inert:
    """Fields that cannot matter, and why.

    everywhere: of every plan of this model on this cluster; where: of these plans, shape [n], whatever the setting.
    """

    fields: tuple[str, ...]
    because: str
    everywhere: Callable[[Setting], bool] = _never
    where: Callable[[PlanBatch, Setting], Switch] = _nowhere
    phases: tuple[Phase, ...] = BOTH

    def always(self, setting: Setting) -> bool:
        """Whether it holds of every plan of the setting."""
        return setting.workload.phase in self.phases and self.everywhere(setting)

    def at(self, plans: PlanBatch, setting: Setting) -> Switch:
        """Shape [n]: of which plans it holds."""
        if setting.workload.phase not in self.phases:
            return _nowhere(plans, setting)
        return np.broadcast_to(np.asarray(self.where(plans, setting) | self.everywhere(setting)), (len(plans),))


def _one_device(setting: Setting) -> bool:
    return setting.devices == 1


def _dense(setting: Setting) -> bool:
    return setting.architecture is not None and not setting.architecture.is_moe


def _attends_nowhere(setting: Setting) -> bool:
    return setting.architecture is not None and setting.architecture.attention_layers == 0


def _no_drafter(setting: Setting) -> bool:
    return setting.workload.output_len == 1


def _compiled_whole(setting: Setting) -> bool:
    return setting.hardware is not None and setting.hardware.kind != "gpu"


def _one_backend(setting: Setting) -> bool:
    return setting.hardware is not None and len(attention_backends(setting.hardware)) == 1


def _no_quick_reduce(setting: Setting) -> bool:
    return setting.hardware is not None and not has_quick_reduce(setting.hardware)


def _no_share(setting: Setting) -> bool:
    return setting.hardware is not None and setting.hardware.kind == "trainium"


TP_COLLECTIVES = ("tp_all_reduce", "quick_reduce", "fuse_all_reduce_norm")
KERNEL_RANKS = tuple(FUSED_REDUCE_BYTES)
EP_EXCHANGE = ("expert_dispatch", "expert_all_to_all", "overlap_ep", "redundant_experts")
PREFILL_DEGREES = ("prefill_tp", "prefill_pp", "prefill_attention_dp", "prefill_ep", "prefill_etp")
DEGREES = ("dp", "tp", "pp", "cp", "ep", "etp", "attention_dp", "fsdp")
TRAINING_SHARDS = (
    "zero_stage", "sp", "cp_kind", "schedule", "vp", "first_stage_layers", "last_stage_layers",
    "overlap_grad_reduce", "overlap_param_gather", "overlap_tp",
)  # fmt: skip

INERT: tuple[Inert, ...] = (
    Inert(
        (
            *DEGREES,
            *TP_COLLECTIVES,
            *EP_EXCHANGE,
            "prefill_replicas",
            *PREFILL_DEGREES,
            "kv_transfer",
            *TRAINING_SHARDS,
        ),
        "the cluster has one device",
        _one_device,
    ),
    Inert(("ep", "etp", *EP_EXCHANGE, "expert_dtype", "prefill_ep", "prefill_etp"), "the model has no experts", _dense),
    Inert(
        ("kv_cache_dtype", "kv_block_tokens", "attention_backend"), "no layer of the model attends", _attends_nowhere
    ),
    Inert(("hbm_frac",), "engines of this chip take no share of its memory: a flat reserve stays free", _no_share),
    Inert(
        ("speculation", "speculative_tokens"),
        "one token is generated: there is none to draft",
        _no_drafter,
        phases=SERVING,
    ),
    Inert(
        (
            "cuda_graphs",
            "cuda_graph_mode",
            "fused_kernels",
            "tp_all_reduce",
            "fuse_all_reduce_norm",
            "expert_all_to_all",
        ),
        "the compiler of this chip makes one program of a step: it launches, fuses and chooses collectives itself",
        _compiled_whole,
    ),
    Inert(("attention_backend",), "engines have one set of attention kernels for this chip", _one_backend),
    Inert(("quick_reduce",), "quantised all-reduces exist on AMD's chips alone", _no_quick_reduce),
    Inert(("cuda_graph_mode",), "CUDA graphs are off", where=lambda plans, _: ~plans.cuda_graphs.astype(bool)),
    Inert(
        TP_COLLECTIVES,
        "tp is 1: nothing is reduced",
        where=lambda plans, _: (plans.tp == 1) & ((plans.prefill_replicas == 0) | (plans.prefill_tp == 1)),
        phases=SERVING,
    ),
    Inert(
        EP_EXCHANGE,
        "ep is 1: no token is sent to an expert",
        where=lambda plans, _: (plans.ep == 1) & ((plans.prefill_replicas == 0) | (plans.prefill_ep == 1)),
    ),
    Inert(
        ("quick_reduce", "fuse_all_reduce_norm"),
        "such kernels exist for 2, 4 and 8 ranks",
        where=lambda plans, _: (
            ~np.isin(plans.tp, KERNEL_RANKS)
            & ((plans.prefill_replicas == 0) | ~np.isin(plans.prefill_tp, KERNEL_RANKS))
        ),
        phases=SERVING,
    ),
    Inert(
        ("expert_dispatch", "expert_all_to_all", "overlap_ep"),
        "ep * etp is at most tp: every rank holds all tokens, and none is sent",
        where=lambda plans, _: (
            (plans.ep * plans.etp <= plans.tp)
            & ((plans.prefill_replicas == 0) | (plans.prefill_ep * plans.prefill_etp <= plans.prefill_tp))
        ),
        phases=SERVING,
    ),
    Inert(
        (*PREFILL_DEGREES, "kv_transfer"),
        "there is no prefill pool",
        where=lambda plans, _: plans.prefill_replicas == 0,
    ),
    Inert(
        ("expert_all_to_all",),
        "expert_dispatch brings its own exchange",
        where=lambda plans, _: np.isin(plans.expert_dispatch, ("deepep", "all_gather")),
        phases=SERVING,
    ),
    Inert(("speculative_tokens",), "nothing is drafted", where=lambda plans, _: plans.speculation == "none"),
    Inert(("sp", "overlap_tp"), "tp is 1", where=lambda plans, _: plans.tp == 1, phases=TRAINING),
    Inert(("cp_kind",), "cp is 1", where=lambda plans, _: plans.cp == 1, phases=TRAINING),
    Inert(
        ("vp", "schedule", "first_stage_layers", "last_stage_layers"),
        "pp is 1: there is one stage",
        where=lambda plans, _: plans.pp == 1,
        phases=TRAINING,
    ),
    Inert(
        ("zero_stage", "overlap_grad_reduce", "overlap_param_gather"),
        "dp * cp is 1: every gradient is whole",
        where=lambda plans, _: plans.dp * plans.cp == 1,
        phases=TRAINING,
    ),
    Inert(
        ("recompute_modules",),
        "modules are named for selective recompute alone",
        where=lambda plans, _: plans.recompute != "selective",
        phases=TRAINING,
    ),
    Inert(
        ("recompute_layers",),
        "nothing is recomputed",
        where=lambda plans, _: plans.recompute == "none",
        phases=TRAINING,
    ),
)
