"""Figures and settings of a case, as printed, into the fields of a request: one table of spellings each."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agents.observed import Observed, PhaseTimes

GIB = 2**30 / 1e9
MIB = 2**20 / 1e9

# field of Observed -> (spellings, factor to its unit); the first that is a number wins
FIGURES: dict[str, tuple[tuple[str, float], ...]] = {
    "step_time_s": (("step_s", 1), ("step_time_s", 1), ("iter_s", 1), ("iteration_s", 1), ("step_ms", 1e-3)),
    "tokens_per_s": (("tokens_s", 1), ("total_tokens_s", 1), ("output_tokens_s", 1), ("tok_s", 1)),
    "tokens_per_s_per_chip": (("tokens_s_gpu", 1), ("tokens_s_chip", 1), ("tps", 1), ("tps_gpu", 1)),
    "samples_per_s": (("samples_s", 1),),
    "requests_per_s": (("req_s", 1), ("qps", 1), ("requests_s", 1)),
    "mfu_frac": (("mfu", 1), ("mfu_pct", 0.01)),
    "peak_memory_gb": (
        ("peak_gb", 1),
        ("mem_gb", 1),
        ("peak_gib", GIB),
        ("memory_gb", 1),
        ("hbm_gib", GIB),
        ("peak_mem_gb", 1),
        ("max_memory_gb", 1),
        ("reserved_gb", 1),
        ("used_gb", 1),
        ("memory_gib", GIB),
        ("device_used_mb", MIB),
        ("peak_mb", MIB),
        ("reserved_gib", GIB),
    ),
    "memory_limit_gb": (("limit_gb", 1), ("limit_gib", GIB), ("capacity_gb", 1), ("capacity_gib", GIB)),
    "duty_cycle_frac": (("sm_active_pct", 0.01), ("gpu_util", 1), ("gpu_util_pct", 0.01), ("duty_cycle", 1)),
    "exposed_communication_frac": (
        ("exposed_comm", 1),
        ("comm_frac", 1),
        ("comm_pct", 0.01),
        ("exposed_pct", 0.01),
        ("exposed_comm_pct", 0.01),
    ),
    "bubble_frac": (("bubble", 1), ("bubble_pct", 0.01)),
    "ttft_ms": (("ttft_ms", 1), ("ttft_s", 1e3), ("ttft_p50_s", 1e3), ("ttft_mean_ms", 1), ("ttft_p50_ms", 1)),
    "tpot_ms": (("tpot_ms", 1), ("tpot_mean_ms", 1), ("itl_ms", 1)),
    "draft_acceptance_frac": (("acceptance", 1), ("acceptance_pct", 0.01)),
    "useful_token_frac": (("useful_frac", 1), ("padding_efficiency", 1)),
}
PHASES: dict[str, tuple[tuple[str, float], ...]] = {
    "generation_s": (("gen_s", 1), ("generation_s", 1), ("rollout_s", 1), ("sampling_s", 1)),
    "log_probabilities_s": (("old_logprob_s", 1), ("logprob_s", 1), ("ref_logprob_s", 1)),
    "update_s": (("update_s", 1), ("train_s", 1), ("actor_update_s", 1)),
    "weight_sync_s": (("sync_s", 1), ("weight_sync_s", 1), ("refit_s", 1), ("update_weights_s", 1)),
    "sync_assembly_s": (("assembly_s", 1), ("gather_s", 1)),
    "sync_wire_s": (("wire_s", 1), ("wire_wait_s", 1), ("broadcast_s", 1)),
}
FRACTIONS_ABOVE = ("mfu_frac", "duty_cycle_frac", "exposed_communication_frac", "bubble_frac", "useful_token_frac")


def observed_of(figures: Mapping[str, Any]) -> tuple[Observed, frozenset[str]]:
    """The figures that have a field, and the keys that were used."""
    values, used = _pick(figures, FIGURES)
    phases, of_phases = _pick(figures, PHASES)
    for name in FRACTIONS_ABOVE:
        if name in values and values[name] > 1:  # printed in per cent under a name that does not say so
            values[name] = values[name] / 100
    stated: dict[str, Any] = {name: value for name, value in values.items() if value > 0}
    if _is_out_of_memory(figures):
        stated["out_of_memory"] = True
    if phases:
        stated["phases"] = PhaseTimes.model_validate(phases)
    return Observed.model_validate(stated), frozenset(used | of_phases)


def _pick(
    figures: Mapping[str, Any], table: Mapping[str, tuple[tuple[str, float], ...]]
) -> tuple[dict[str, float], set[str]]:
    values: dict[str, float] = {}
    used: set[str] = set()
    for field, spellings in table.items():
        for key, factor in spellings:
            value = figures.get(key)
            if field not in values and isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
                values[field] = value * factor
                used.add(key)
    return values, used


def _is_out_of_memory(figures: Mapping[str, Any]) -> bool:
    if figures.get("fits") is False or figures.get("oom") is True:
        return True
    return any(
        isinstance(value, str) and re.search(r"\boom\b|out of memory", value.lower()) for value in figures.values()
    )


def flat(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Keys and values of nested tables as words: {'actor': {'tp': 4}} -> ('actor tp', '4')."""
    for key, value in table.items():
        name = f"{above} {key}".strip().replace("_", " ")
        if isinstance(value, Mapping):
            yield from flat(value, name)
        elif isinstance(value, list | tuple):
            yield name, " ".join(str(part) for part in value)
        else:
            yield name, "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
