"""Menus: the values worth trying of fields that are no plain switch or word, from chips, model and traffic."""

from collections.abc import Callable, Iterable, Mapping

from projector.rules.rule import Setting
from projector.search.factors import divisors
from projector.specs.vendors import attention_backends, has_quick_reduce

Value = bool | int | float | str
Menu = Callable[[Setting], tuple[Value, ...]]

MOST_REQUESTS_A_BATCH = 512
REDUNDANT = (8, 16, 32, 64)
MOST_LISTED = 8


def _degrees(setting: Setting) -> tuple[Value, ...]:
    return divisors(setting.devices)


def _pool_degrees(setting: Setting) -> tuple[Value, ...]:
    """A prefill pool leaves at least one device to the decode pool."""
    return _powers(max(setting.devices - 1, 1))


def _pools(setting: Setting) -> tuple[Value, ...]:
    """Engines of a prefill pool: 0 to all but one device, past MOST_LISTED in powers of two."""
    listed = range(MOST_LISTED + 1)
    return tuple(count for count in (*listed, *_powers(setting.devices, MOST_LISTED + 1)) if count < setting.devices)


def _powers(most: int, least: int = 1) -> tuple[int, ...]:
    """Powers of two from least to most."""
    return tuple(2**k for k in range(64) if least <= 2**k <= most)


def _context_degrees(setting: Setting) -> tuple[Value, ...]:
    return divisors(setting.devices) if setting.workload.phase == "training" else (1,)


def _stages(setting: Setting) -> tuple[Value, ...]:
    layers = setting.devices if setting.architecture is None else setting.architecture.layers
    return tuple(degree for degree in divisors(setting.devices) if degree <= layers)


def _virtual_stages(setting: Setting) -> tuple[Value, ...]:
    layers = 64 if setting.architecture is None else setting.architecture.layers
    return _powers(min(layers // 2, 16)) or (1,)


def _micro_batches(setting: Setting) -> tuple[Value, ...]:
    batch = setting.workload.global_batch
    return _powers(16) if batch is None else tuple(size for size in _powers(16) if batch % size == 0)


def _recompute_layers(setting: Setting) -> tuple[Value, ...]:
    return (0,) if setting.architecture is None else (0, *divisors(setting.architecture.layers))


def _batches(setting: Setting) -> tuple[Value, ...]:
    """Powers of two, up to the one that holds every request in flight."""
    concurrency = setting.workload.concurrency or MOST_REQUESTS_A_BATCH
    return _powers(min(MOST_REQUESTS_A_BATCH, 2 * concurrency - 1), 8) or (8,)


def _narrow(setting: Setting, types: Iterable[str]) -> tuple[Value, ...]:
    """4 bit only with units for it; 8 bit everywhere, where units lack as storage alone."""
    chip = setting.hardware
    has_four = chip is None or bool(chip.peak_flop_per_s.keys() & {"fp4", "nvfp4"})
    return tuple(name for name in types if name != "fp4" or has_four)


def _redundant(setting: Setting) -> tuple[Value, ...]:
    """Copies with which the experts still divide over some group larger than one."""
    if setting.architecture is None or not setting.architecture.is_moe:
        return (0,)
    experts = setting.architecture.experts
    groups = [degree for degree in divisors(setting.devices) if degree > 1]
    return (0, *(copies for copies in REDUNDANT if any((experts + copies) % group == 0 for group in groups)))


def _drafters(setting: Setting) -> tuple[Value, ...]:
    """Prediction layers draft where the checkpoint has some; heads, n-grams and small models for every model."""
    has_mtp = setting.architecture is None or setting.architecture.mtp_layers > 0
    return ("none", *(["mtp"] if has_mtp else []), "eagle", "ngram", "draft_model")


def _compute_dtypes(setting: Setting) -> tuple[Value, ...]:
    """What the chip has units for; nothing wider than 16 bit is worth trying."""
    known = ("bf16", "fp16", "fp8", "int8", "mxfp8", "fp4", "nvfp4")
    return tuple(name for name in known if setting.hardware is None or name in setting.hardware.peak_flop_per_s)


def _backends(setting: Setting) -> tuple[Value, ...]:
    return ("auto",) if setting.hardware is None else attention_backends(setting.hardware)


def _blocks(setting: Setting) -> tuple[Value, ...]:
    """GPU engines page by 16 to 64 tokens; TPU kernels by more (vLLM on TPU: 128)."""
    tpu = setting.hardware is not None and setting.hardware.kind == "tpu"
    return (16, 32, 64, 128) if tpu else (1, 16, 32, 64)


MENUS: Mapping[str, Menu] = {
    "dp": _degrees,
    "fsdp": _degrees,
    "tp": _degrees,
    "pp": _stages,
    "vp": _virtual_stages,
    "cp": _context_degrees,
    "ep": _degrees,
    "etp": _degrees,
    "attention_dp": _degrees,
    "micro_batch": _micro_batches,
    "grad_accum": lambda setting: divisors(setting.workload.global_batch or 1),
    "recompute_modules": lambda _: ("",),
    "recompute_layers": _recompute_layers,
    "first_stage_layers": lambda _: (0,),
    "last_stage_layers": lambda _: (0,),
    "compute_dtype": _compute_dtypes,
    "weight_dtype": lambda setting: _narrow(setting, ("bf16", "fp8", "int8", "fp4")),
    "expert_dtype": lambda setting: _narrow(setting, ("same", "bf16", "fp8", "fp4")),
    "kv_cache_dtype": lambda setting: _narrow(setting, ("bf16", "fp8", "int8", "fp4")),
    "max_num_seqs": _batches,
    "chunked_prefill_tokens": lambda _: (0, 512, 1024, 2048, 4096, 8192, 16384),
    "max_batched_tokens": lambda _: (0, 2048, 4096, 8192, 16384),
    "kv_block_tokens": _blocks,
    "hbm_frac": lambda _: (0.8, 0.85, 0.9, 0.95),
    "attention_backend": _backends,
    "quick_reduce": lambda s: (False, True) if s.hardware is None or has_quick_reduce(s.hardware) else (False,),
    "redundant_experts": _redundant,
    "speculation": _drafters,
    "speculative_tokens": lambda _: (0, 1, 2, 3, 4, 6, 8),
    "prefill_replicas": _pools,
    "prefill_tp": _pool_degrees,
    "prefill_pp": _pool_degrees,
    "prefill_attention_dp": _pool_degrees,
    "prefill_ep": _pool_degrees,
    "prefill_etp": _pool_degrees,
}

# Rules that judge a field by itself, whatever the plan's other fields are; a pool's degree is judged as the plan's own.
JUDGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "tp": ("tp", ("attention_heads", "kv_heads", "recurrent_heads", "recurrent_groups", "hidden_size", "mlp_width")),
    "ep": ("ep", ("experts",)),
    "etp": ("etp", ("expert_width",)),
    "pp": ("pp", ("stages",)),
    "prefill_tp": (
        "tp", ("attention_heads", "kv_heads", "recurrent_heads", "recurrent_groups", "hidden_size", "mlp_width")
    ),
    "kv_transfer": ("kv_transfer", ("mori_chip",)),
    "prefill_ep": ("ep", ("experts",)),
    "prefill_etp": ("etp", ("expert_width",)),
    "prefill_pp": ("pp", ("stages",)),
}  # fmt: skip
