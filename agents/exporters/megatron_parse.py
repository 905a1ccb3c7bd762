"""Megatron-LM arguments read back as a plan."""

import re
from collections.abc import Sequence

from agents.exporters.arguments import Arguments, divided, flags, plan_of
from agents.exporters.exporter import Known, ParsedLaunch
from agents.exporters.megatron_recompute import usual_modules
from agents.wording import quoted
from projector.errors import InvalidDescription

ZERO_STAGE = {"no_shard": "0", "optim": "1", "optim_grads": "2", "optim_grads_params": "3"}
CONTEXT_KIND = {"p2p": "ring", "a2a": "all_to_all", "all_gather": "all_gather"}
# parts of E, t, m and L, each perhaps so many times; groups in brackets are left out
LAYOUT = re.compile(r"[EtmL*0-9|,]{1,4096}")
GRANULARITY = {"full": "full", "selective": "selective"}


def parse_megatron(arguments: Sequence[str], known: Known) -> ParsedLaunch:
    """The plan of an argument vector; errors as in `Exporter.parse`."""
    given = flags(arguments)
    tp = given.count("--tensor-model-parallel-size")
    pp = given.count("--pipeline-model-parallel-size")
    cp = given.count("--context-parallel-size")
    dp = divided(_world_size(given, known.devices), tp * pp * cp, "tp * pp * cp of the processes")
    micro_batch = given.count("--micro-batch-size")
    vp = _virtual_stages(given, pp)
    fsdp, zero_stage, optimizer_shard = _sharding(given, dp, cp)
    ep, etp = _experts(given, tp, known)
    fields = {
        "phase": "training",
        "dp": dp,
        "tp": tp,
        "pp": pp,
        "cp": cp,
        "vp": vp,
        "ep": ep,
        "etp": etp,
        "fsdp": fsdp,
        "zero_stage": zero_stage,
        "optimizer_shard": optimizer_shard,
        "cp_kind": given.one_of("--cp-comm-type", CONTEXT_KIND, "ring"),
        "expert_dispatch": _dispatch(given),
        "schedule": "interleaved" if vp > 1 else "1f1b",
        "first_stage_layers": given.count("--decoder-first-pipeline-num-layers", 0),
        "last_stage_layers": given.count("--decoder-last-pipeline-num-layers", 0),
        "sp": given.has("--sequence-parallel") and tp > 1,
        "micro_batch": micro_batch,
        "grad_accum": divided(
            given.count("--global-batch-size", dp * micro_batch), dp * micro_batch, "dp * micro batch of the batch"
        ),
        **_recompute(given, vp, known),
        "optimizer": _optimizer(given),
        "offload_optimizer": given.has("--optimizer-cpu-offload"),
        "compute_dtype": _compute_dtype(given),
        **_overlap(given, zero_stage),
    }
    return ParsedLaunch(plan=plan_of(fields), ignored=given.ignored)


def _world_size(given: Arguments, devices: int | None) -> int:
    """Processes torchrun starts, else the stated devices."""
    nodes, each = given.count_or_fill("--nnodes"), given.count_or_fill("--nproc-per-node")
    if nodes is not None and each is not None:
        return nodes * each
    if devices is None:
        raise InvalidDescription("the number of processes is not in the arguments", hint="state the devices")
    return devices


def _virtual_stages(given: Arguments, pp: int) -> int:
    """Stated, or the parts of a layout over pp; how long they are is not read, only how many."""
    layout = given.text("--pipeline-model-parallel-layout")
    if layout is None:
        return given.count("--num-virtual-stages-per-pipeline-rank")
    if not LAYOUT.fullmatch(layout):
        raise InvalidDescription(
            f"--pipeline-model-parallel-layout {quoted(layout)!r} is not read: only parts like those of Et*4|t*3|t*3L",
            hint="write the parts out, without groups in brackets",
        )
    return divided(layout.count("|") + 1, pp, "pp of the parts of the layout")


def _sharding(given: Arguments, dp: int, cp: int) -> tuple[int, int, int]:
    """(fsdp, zero_stage, optimizer_shard)."""
    distributed = given.has("--use-distributed-optimizer")
    if not given.has("--use-megatron-fsdp"):
        if not distributed:
            return 1, 0, 0
        instances = given.count("--num-distributed-optimizer-instances")
        return 1, 1, 0 if instances == 1 else divided(dp * cp, instances, "optimizer instances of dp * cp")
    stage = int(given.one_of("--data-parallel-sharding-strategy", ZERO_STAGE, "3"))
    if stage < 3:
        return 1, stage, 0
    replicas = given.count("--num-distributed-optimizer-instances")
    group = divided(dp * cp, replicas, "optimizer instances of dp * cp")
    return max(1, divided(group, cp, "cp of the sharding group")), stage, 0


def _experts(given: Arguments, tp: int, known: Known) -> tuple[int, int]:
    """(ep, etp): a mixture of experts slices its experts by tp unless told otherwise."""
    ep = given.count("--expert-model-parallel-size")
    moe = given.has("--num-experts") or ep > 1 or known.moe
    return ep, given.count("--expert-tensor-parallel-size", tp if moe else 1)


def _dispatch(given: Arguments) -> str:
    """How tokens reach experts; the all-to-all dispatcher is what `expert_dispatch` auto means here."""
    kinds = {"allgather": "all_gather", "alltoall": "auto", "flex": "deepep"}
    found = given.one_of("--moe-token-dispatcher-type", kinds, "auto")
    if found == "deepep":
        given.one_of("--moe-flex-dispatcher-backend", {"deepep": "deepep", "hybridep": "deepep"}, "deepep")
    return found


def _recompute(given: Arguments, vp: int, known: Known) -> dict[str, object]:
    """Mode, modules and layers. The modules selective recompute means here, and the uniform method, need no name."""
    mode = given.one_of("--recompute-granularity", GRANULARITY, "none")
    modules = sorted(set(given.texts("--recompute-modules")))
    layers = given.count("--recompute-num-layers") * vp
    block = given.one_of("--recompute-method", {"uniform": "uniform", "block": "block"}, "uniform") == "block"
    moe = given.has("--num-experts") or given.count("--expert-model-parallel-size") > 1 or known.moe
    usual = [*usual_modules(moe)] if mode == "selective" else []
    return {
        "recompute": mode,
        "recompute_modules": "" if mode != "selective" or modules == usual else "+".join(modules or ["core_attn"]),
        "recompute_layers": layers if mode == "full" and block else 0,
    }


def _optimizer(given: Arguments) -> str:
    """The optimizer, and for Adam the width of its moments. InvalidDescription for one the projector does not price."""
    name = given.one_of("--optimizer", {"adam": "adam", "muon": "muon", "sgd": "sgd"}, "adam")
    if not given.has("--use-precision-aware-optimizer"):
        return name
    widths = {"fp32": "adam", "bf16": "adam_bf16", "fp16": "adam_bf16", "fp8": "adam_8bit"}
    first, second = (given.one_of(flag, widths, "adam") for flag in ("--exp-avg-dtype", "--exp-avg-sq-dtype"))
    if first != second:
        raise InvalidDescription("the two moments of Adam have different dtypes", hint="give both the same")
    return first


def _compute_dtype(given: Arguments) -> str:
    """The narrowest that is switched on; fp32 where none is."""
    flag_of = {"fp4": "--fp4-format", "fp8": "--fp8-format", "bf16": "--bf16", "fp16": "--fp16"}
    on = [dtype for dtype, flag in flag_of.items() if given.has(flag)]
    found = on[0] if on else "fp32"
    if found == "fp8" and given.text("--fp8-recipe") == "mxfp8":
        return "mxfp8"
    if found == "fp4" and given.text("--fp4-recipe") == "nvfp4":
        return "nvfp4"
    return found


def _overlap(given: Arguments, zero_stage: int) -> dict[str, bool]:
    """Stages 2 and 3 always overlap reductions, 3 the gathers too; without sharding there is nothing to gather."""
    reduces, gathers = given.has("--overlap-grad-reduce"), given.has("--overlap-param-gather")
    return {
        "overlap_grad_reduce": reduces or zero_stage >= 2,
        "overlap_param_gather": gathers or zero_stage in (0, 3),
        "overlap_tp": given.has("--tp-comm-overlap"),
        "overlap_ep": given.has("--overlap-moe-expert-parallel-comm"),
    }
