"""vLLM's kernels, graphs, memory share, speculation and expert exchange: arguments of the fields beside the layout."""

import json
from collections.abc import Mapping
from typing import Final

from agents.exporters.account import Account
from agents.exporters.exporter import Job
from projector.specs.plan import AttentionBackend, ParallelismPlan, Speculation

# Names of AttentionBackendEnum, for ordinary and for latent attention; the others have no name of their own there.
BACKENDS: Final[Mapping[AttentionBackend, str]] = {
    "flashinfer": "FLASHINFER",
    "flash_attention": "FLASH_ATTN",
    "triton": "TRITON_ATTN",
    "aiter": "ROCM_AITER_FA",
}
LATENT_BACKENDS: Final[Mapping[AttentionBackend, str]] = {
    "flashinfer": "FLASHINFER_MLA",
    "flash_attention": "FLASH_ATTN_MLA",
    "cutlass": "CUTLASS_MLA",
    "triton": "TRITON_MLA",
    "aiter": "ROCM_AITER_MLA",
}
METHODS: Final[Mapping[Speculation, str]] = {
    "mtp": "mtp",
    "eagle": "eagle3",
    "ngram": "ngram",
    "draft_model": "draft_model",
}
OWN_CHECKPOINT: Final = frozenset({"eagle", "draft_model"})
POOL_FIELDS = (
    "prefill_replicas", "prefill_tp", "prefill_pp", "prefill_attention_dp", "prefill_ep", "prefill_etp", "kv_transfer",
)  # fmt: skip
# What this release chooses by itself, and why another choice cannot be said.
UNSAID: Final[Mapping[str, str]] = {
    "max_batched_tokens": "the one token budget of a step is chunked_prefill_tokens here",
    "fused_kernels": "torch.compile fuses, and only --enforce-eager, which also drops graphs, switches it off",
    "tp_all_reduce": "the all-reduce is chosen by message size, and no argument names an algorithm",
    "quick_reduce": "the environment variable VLLM_ROCM_QUICK_REDUCE_QUANTIZATION=INT8 switches it, no argument does",
    "expert_dtype": "experts are stored as the checkpoint has them, or as --quantization makes all weights",
    "expert_all_to_all": "the exchange belongs to its backend, and no argument names an algorithm",
}


def engine_settings(account: Account, job: Job) -> None:
    """Outcomes of the serving fields beside layout, formats and scheduler."""
    account.say("hbm_frac", ("--gpu-memory-utilization", account.plan.hbm_frac))
    _blocks(account)
    _compilation(account)
    _backend(account, job)
    _speculation(account)
    _exchange(account)
    _copies(account)
    _pools(account)
    for field, reason in UNSAID.items():
        _default_or_refused(account, field, reason)


def _default_or_refused(account: Account, field: str, reason: str) -> None:
    default = ParallelismPlan.model_fields[field].default
    if getattr(account.plan, field) == default:
        account.imply(field, "at its default")
    else:
        account.refuse(field, reason, instead=str(default))


def _blocks(account: Account) -> None:
    if account.plan.kv_block_tokens == 16:
        account.imply("kv_block_tokens", "16 is the default; kernels that need another size choose it")
    else:
        account.say(
            "kv_block_tokens",
            ("--block-size", account.plan.kv_block_tokens),
            note="not every attention backend has kernels for each size; vLLM says so at start",
        )


def _compilation(account: Account) -> None:
    """cuda_graph_mode and fuse_all_reduce_norm share one argument."""
    plan = account.plan
    chosen: dict[str, object] = {}
    if plan.cuda_graph_mode == "piecewise" and plan.cuda_graphs:
        chosen["cudagraph_mode"] = "PIECEWISE"
    if plan.fuse_all_reduce_norm:
        chosen["pass_config"] = {"fuse_allreduce_rms": True}
    if chosen:
        account.add("--compilation-config", json.dumps(chosen, separators=(",", ":")))
    said = ("--compilation-config",)
    if plan.cuda_graph_mode == "full":
        account.imply("cuda_graph_mode", "decode steps are captured whole by default, mixed ones in pieces")
    elif plan.cuda_graphs:
        account.said("cuda_graph_mode", said)
    else:
        account.refuse("cuda_graph_mode", "graphs are off", instead="full", inert=True)
    if plan.fuse_all_reduce_norm:
        account.said("fuse_all_reduce_norm", said)
    else:
        account.imply("fuse_all_reduce_norm", "left to the engine, which fuses by itself on some chips")


def _backend(account: Account, job: Job) -> None:
    backend = account.plan.attention_backend
    if backend == "auto":
        account.imply("attention_backend", "chosen by chip and model")
        return
    latent = job.architecture is not None and job.architecture.is_mla
    name = (LATENT_BACKENDS if latent else BACKENDS).get(backend)
    if name is None:
        account.refuse("attention_backend", f"this release has no such backend called {backend}", instead="auto")
    else:
        account.say("attention_backend", ("--attention-backend", name))


def _speculation(account: Account) -> None:
    plan = account.plan
    if plan.speculation == "none":
        account.imply("speculation", "off is the default")
        account.imply("speculative_tokens", "nothing is drafted")
        return
    account.say("speculation", ("--spec-method", METHODS[plan.speculation]))
    if plan.speculation in OWN_CHECKPOINT:
        account.add("--spec-model", account.fill("DRAFT_MODEL", "checkpoint of the drafter, made for this model"))
    account.say("speculative_tokens", ("--spec-tokens", plan.speculative_tokens))


def _exchange(account: Account) -> None:
    """How tokens reach experts and whether two halves of a batch alternate: only where data-parallel ranks exchange."""
    plan, exchanges = account.plan, account.plan.ep > 1 and account.plan.attention_dp > 1
    backends = {"all_gather": "allgather_reducescatter", "deepep": "deepep_low_latency"}
    if plan.expert_dispatch == "auto":
        account.imply("expert_dispatch", "the engine's own")
    elif not exchanges:
        account.refuse("expert_dispatch", "only data-parallel ranks of experts exchange tokens", instead="auto")
    elif plan.expert_dispatch in backends:
        account.say("expert_dispatch", ("--all2all-backend", backends[plan.expert_dispatch]))
    else:
        account.refuse("expert_dispatch", "no backend sends one copy to each expert everywhere", instead="auto")
    if not plan.overlap_ep:
        account.imply("overlap_ep", "off is the default")
    elif exchanges and plan.expert_dispatch == "deepep":
        account.say("overlap_ep", ("--enable-dbo", None), note="dual batch overlap")
    else:
        account.refuse("overlap_ep", "dual batch overlap needs DeepEP between data-parallel ranks", instead="False")


def _copies(account: Account) -> None:
    plan = account.plan
    if plan.redundant_experts == 0:
        account.imply("redundant_experts", "none by default")
    elif plan.ep > 1 and plan.ep == plan.attention_dp * plan.tp:
        copies = json.dumps({"num_redundant_experts": plan.redundant_experts}, separators=(",", ":"))
        account.say("redundant_experts", ("--enable-eplb", None), ("--eplb-config", copies))
    else:
        account.refuse("redundant_experts", "copies need expert parallelism over all ranks of the engine", instead="0")


def _pools(account: Account) -> None:
    """Pools are two launches joined by a KV connector, which one command cannot be."""
    pooled = account.plan.prefill_replicas > 0
    for field in POOL_FIELDS:
        default = ParallelismPlan.model_fields[field].default
        if getattr(account.plan, field) == default:
            account.imply(field, "at its default")
        else:
            account.refuse(
                field,
                "a prefill pool is a launch of its own, joined to this one by --kv-transfer-config on both"
                if pooled
                else "there is no prefill pool",
                instead="this command alone, without the pool",
                inert=not pooled,
            )
