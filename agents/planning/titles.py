"""What a plan changes, in words that cannot disagree with its numbers: each is chosen by comparing before and after."""

from collections.abc import Collection
from typing import Any

from agents.advisors.protocol import LeverView
from agents.findings import Change
from agents.wording import listed
from projector.rules.training_rules import SERVING_FIELDS
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import FIELDS

KEEP_TITLE = "Keep the current plan"
TITLE_PARTS = 3

DEGREES: dict[str, str] = {
    "tp": "tensor parallelism",
    "pp": "pipeline parallelism",
    "dp": "data parallelism",
    "fsdp": "weight sharding",
    "cp": "context parallelism",
    "ep": "expert parallelism",
    "etp": "tensor parallelism inside experts",
    "attention_dp": "attention data parallelism",
    "prefill_replicas": "prefill engines",
    "prefill_tp": "tensor parallelism of prefill engines",
    "prefill_pp": "pipeline parallelism of prefill engines",
    "prefill_attention_dp": "attention data parallelism of prefill engines",
    "prefill_ep": "expert parallelism of prefill engines",
    "prefill_etp": "tensor parallelism inside experts of prefill engines",
}
# words for more, for less, and for what grows or shrinks
SIZES: dict[str, tuple[str, str, str]] = {
    "micro_batch": ("larger", "smaller", "micro-batch"),
    "vp": ("more", "fewer", "virtual stages"),
    "recompute_layers": ("more", "fewer", "recomputed layers a stage"),
    "first_stage_layers": ("more", "fewer", "layers in the first stage"),
    "last_stage_layers": ("more", "fewer", "layers in the last stage"),
    "max_num_seqs": ("more", "fewer", "requests a batch"),
    "chunked_prefill_tokens": ("more", "fewer", "prefill tokens a step"),
    "max_batched_tokens": ("higher", "lower", "token budget of a step"),
    "kv_block_tokens": ("larger", "smaller", "blocks of the KV pool"),
    "hbm_frac": ("more", "less", "of HBM for the engine"),
    "speculative_tokens": ("more", "fewer", "drafted tokens a step"),
    "redundant_experts": ("more", "fewer", "copies of busy experts"),
}
# sizes of which 0 is the largest
ZERO_MEANS: dict[str, str] = {
    "max_batched_tokens": "without a cap",
    "chunked_prefill_tokens": "of whole prompts",
    "recompute_layers": "without a cap",
}
SWITCHES: dict[str, str] = {
    "cuda_graphs": "CUDA graphs",
    "fused_kernels": "fused kernels",
    "quick_reduce": "quantised all-reduces",
    "fuse_all_reduce_norm": "norms inside all-reduces",
    "sp": "sequence parallelism",
    "overlap_grad_reduce": "overlapped gradient reduction",
    "overlap_param_gather": "overlapped weight gathering",
    "offload_optimizer": "offloaded optimizer state",
    "offload_activations": "offloaded activations",
    "overlap_ep": "overlapped exchange with experts",
    "overlap_tp": "overlapped tensor-parallel communication",
}
CHOICES: dict[str, str] = {
    "recompute": "recompute",
    "recompute_modules": "recomputed modules",
    "expert_dispatch": "dispatch to experts",
    "optimizer": "optimizer",
    "cp_kind": "kind of context parallelism",
    "schedule": "pipeline schedule",
    "zero_stage": "ZeRO stage",
    "compute_dtype": "compute dtype",
    "weight_dtype": "weight dtype",
    "kv_cache_dtype": "KV cache dtype",
    "expert_dtype": "expert dtype",
    "speculation": "speculation",
    "cuda_graph_mode": "CUDA graph mode",
    "attention_backend": "attention kernels",
    "tp_all_reduce": "tensor-parallel all-reduce",
    "expert_all_to_all": "exchange with experts",
    "kv_transfer": "KV transfer",
}
# derived from the other degrees and the batch, so never worth a word in a title
DERIVED = ("phase", "grad_accum")
TRAINING_ONLY = frozenset(
    {
        "zero_stage",
        "vp",
        "micro_batch",
        "grad_accum",
        "recompute",
        "recompute_modules",
        "recompute_layers",
        "schedule",
        "cp_kind",
        "optimizer",
        "offload_optimizer",
        "offload_activations",
        "first_stage_layers",
        "last_stage_layers",
        "overlap_grad_reduce",
        "overlap_param_gather",
    }
)
SERVING_ONLY = frozenset(SERVING_FIELDS)


def differing(before: ParallelismPlan, after: ParallelismPlan) -> tuple[str, ...]:
    """Fields of the plan's phase whose value changes, in the plan's order."""
    foreign = SERVING_ONLY if after.phase == "training" else TRAINING_ONLY
    return tuple(field for field in FIELDS if field not in foreign and getattr(before, field) != getattr(after, field))


def title_of(
    before: ParallelismPlan, after: ParallelismPlan, first: Collection[str] = (), most_parts: int = TITLE_PARTS
) -> str:
    """'Less tensor parallelism (8 to 4), more data parallelism (1 to 2)': the direction is that of the numbers.

    Fields in `first`, those the reader asked about, lead.
    """
    named = [field for field in _importance(differing(before, after), first) if field not in DERIVED]
    if not named:
        return KEEP_TITLE
    parts = [_phrase(field, getattr(before, field), getattr(after, field)) for field in named[:most_parts]]
    if len(named) > most_parts:
        more = len(named) - most_parts
        parts.append(f"{more} more change{'s' if more > 1 else ''}")
    text = listed(parts)
    return text[0].upper() + text[1:]


def layout_title(reference: ParallelismPlan, plan: ParallelismPlan) -> str:
    """Title of a plan that replaces nothing: 'Tensor parallelism 8, data parallelism 8; larger micro-batch (1 to 2)'.

    What follows the layout is what else sets the plan apart from the reference.
    """
    named = [
        f"{words} {getattr(plan, field)}"
        for field, words in DEGREES.items()
        if getattr(plan, field) > ParallelismPlan.model_fields[field].default
    ]
    apart = [
        field for field in _importance(differing(reference, plan)) if field not in DERIVED and field not in DEGREES
    ]
    phrases = [_phrase(field, getattr(reference, field), getattr(plan, field)) for field in apart[: TITLE_PARTS - 1]]
    text = "; ".join([", ".join(named) or "one device", *([listed(phrases)] if phrases else [])])
    return text[0].upper() + text[1:]


def changes_of(before: ParallelismPlan, after: ParallelismPlan, levers: dict[str, LeverView]) -> tuple[Change, ...]:
    """One entry a changed field. `levers`: field -> the lever that changes it; the other fields follow from those."""
    return tuple(
        Change(
            field=field,
            before=_shown(getattr(before, field)),
            after=_shown(getattr(after, field)),
            why=levers[field].mechanism if field in levers else _derived_reason(field),
        )
        for field in differing(before, after)
    )


def _importance(fields: tuple[str, ...], first: Collection[str] = ()) -> list[str]:
    """Degrees of the layout, then switches, choices and sizes: the order of what a reader wants to know.

    How experts are sliced comes last, as it follows tensor parallelism more often than not.
    """
    order = [name for name in (*DEGREES, *SWITCHES, *CHOICES, *SIZES) if name != "etp"]
    return sorted(fields, key=lambda field: (field not in first, order.index(field) if field in order else len(order)))


def _phrase(field: str, before: Any, after: Any) -> str:
    if field in SWITCHES:
        return f"{SWITCHES[field]} {'on' if after else 'off'}"
    if field in DEGREES:
        return f"{'more' if after > before else 'less'} {DEGREES[field]} ({before} to {after})"
    if field in ZERO_MEANS and 0 in (before, after):
        was, becomes = (ZERO_MEANS[field] if size == 0 else size for size in (before, after))
        return f"{SIZES[field][2]} {becomes} instead of {was}"
    if field in SIZES:
        more, less, words = SIZES[field]
        return f"{more if after > before else less} {words} ({before} to {after})"
    return f"{CHOICES.get(field, field)} {after} instead of {before}"


def _derived_reason(field: str) -> str:
    if field == "grad_accum":
        return "keeps the global batch"
    if field == "dp":
        return "takes the devices the other axes leave"
    return "goes with the other changes"


def _shown(value: object) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)
