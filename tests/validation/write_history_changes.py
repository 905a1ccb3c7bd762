"""Before/after reports as past changes: the settings that moved and the measured effect; no prose of the data set."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from agents.evaluation.refusal import Refused, first_problem
from agents.evaluation.rows import json_object
from knowledge_base.history_parts import PastArchitecture, PastSource
from knowledge_base.past import PastCase
from projector import catalog
from projector.errors import ShardwiseError
from projector.names import normalise
from projector.specs.bottleneck import BOTTLENECK_OF, Cause
from tests.validation.write_history_facts import counted, identifier
from tests.validation.write_history_rows import NamedCase

TASKS = {"train": "pretrain", "sft": "sft", "rl": "rl", "serve": "inference"}
# the short vocabulary of the reports -> ours; words without an entry are of `OTHER_LEVERS`
LEVERS = {
    "tp": "tensor_parallelism",
    "pp": "pipeline_parallelism",
    "ep": "expert_parallelism",
    "cp": "context_parallelism",
    "dp": "data_parallelism",
    "microbatches": "micro_batch",
    "ep_dispatch": "expert_exchange",
    "pd_disagg": "disaggregation",
    "spec_decode": "speculation",
    "cuda_graph": "cuda_graphs",
}
# words of a stated cause -> our cause, the first that occurs; a cause whose class disagrees is left out
CAUSES: tuple[tuple[str, Cause], ...] = (
    ("bubble", "pipeline_bubble"),
    ("imbalance", "imbalance"),
    ("host-bound", "host_idle"),
    ("host dispatch", "host_idle"),
    ("launch", "launch_bound"),
    ("tp collective", "exposed_tp"),
    ("all-to-all", "exposed_ep"),
    ("parameter", "exposed_dp"),
    ("gradient", "exposed_dp"),
    ("small-message", "latency_bound_collectives"),
    ("capacity", "hbm_capacity"),
    ("kv replicated", "hbm_capacity"),
    ("allocator", "hbm_capacity"),
    ("bandwidth", "hbm_bandwidth"),
)
DEGREES = {
    "tp": "tp", "pp": "pp", "vp": "vp", "cp": "cp", "ep": "ep", "dp": "dp", "fsdp": "fsdp", "zero": "zero_stage",
    "mbs": "micro_batch",
}  # fmt: skip
SIZES = {
    "seq": "seq_len", "gbs": "global_batch", "global_batch": "global_batch", "isl": "input_len", "osl": "output_len",
    "concurrency": "concurrency",
}  # fmt: skip
PHASE_SIZES = {
    "training": ("seq_len", "global_batch"),
    "serving": ("input_len", "output_len", "concurrency"),
}
# a setting is a word or a few; what is longer tells instead of naming
MOST_WORDS, MOST_CHARACTERS = 5, 40
UNITS = {"_ms": "ms", "_s": "s"}
GITHUB = re.compile(r"^https://github\.com/([\w.-]+/[\w.-]+)/(pull|issues|discussions)/(\d+)")
KINDS = {"pull": "pull request", "issues": "issue", "discussions": "discussion"}


def changes_of(text: str, known: Mapping[str, PastCase], left_out: Counter[str]) -> list[NamedCase]:
    """Every report with a measured outcome. known: a published case of each model, by its name."""
    found = []
    for line in text.split("\n"):
        if line.strip():
            try:
                found.append(_change(json_object(line), known))
            except (Refused, ValidationError) as error:
                reason = first_problem(error) if isinstance(error, ValidationError) else str(error)
                left_out["a change: " + re.sub(r"\d+", "N", reason)] += 1
    return found


def _change(row: dict[str, Any], known: Mapping[str, PastCase]) -> NamedCase:
    effect, before, after = row["effect"], row["before"]["config"], row["after"]["config"]
    if effect["outcome"] == "unknown":
        raise Refused("its effect was not measured")
    moves = _moves(before, after)
    levers = [LEVERS.get(word, word) for word in row["levers"]]
    if not moves and not levers:
        raise Refused("neither settings nor a lever")
    phase = "serving" if row["phase"] == "serve" else "training"
    chip, chip_stated = _chip(row["hardware"]["chip"])
    model, family, architecture = _model(row["model"], row["is_moe"], known)
    cls = row["bottleneck"]["cls"]
    bottleneck = cls if cls in ("compute", "memory", "communication") else None
    sizes = {SIZES[key]: value for key, value in before.items() if key in SIZES and _whole(value)}
    baseline = _layout(before)
    layout = baseline | _layout(after)
    source = _source(row["source"])
    values = {
        "id": identifier("chg", row["id"]),
        "kind": "change",
        "phase": phase,
        "task": TASKS[row["phase"]],
        "model": model,
        "family": family,
        "architecture": architecture,
        "chip": chip,
        "chip_stated": chip_stated,
        "chips": row["hardware"]["count"],
        "precision": _precision(before),
        **{key: value for key, value in sizes.items() if key in PHASE_SIZES[phase]},
        "bottleneck": bottleneck,
        "cause": _cause(row["bottleneck"]["cause"], bottleneck),
        "levers": sorted(set(levers)),
        "moves": moves,
        "effect": _effect(effect, row["before"]["figures"], row["after"]["figures"]),
        "source": source,
    }
    layouts = {"baseline": baseline or None, "layout": layout}
    try:
        case = PastCase.model_validate(values | layouts)
    except ValidationError:
        # degrees that are those of one engine of several, or of another number of chips
        case = PastCase.model_validate(values)
    return NamedCase(case, " ".join(part for part in (source.title, source.date) if part), (case.id,), 0.0, False)


def _moves(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, str]]:
    """Settings the later arm states, as both arms write them; what tells a story is left out."""
    found = []
    for field, value in after.items():
        new, old = _setting(value), _setting(before.get(field))
        if field != "others" and new and new != old:
            found.append({"field": field.replace("_", " ")[:60], "before": old, "after": new})
    return found[:12]


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float):
        return f"{value:g}" if abs(value) < 1e6 else f"{value:.6g}"
    if isinstance(value, str) and len(value) <= MOST_CHARACTERS and len(value.split()) <= MOST_WORDS:
        return value
    return ""


def _layout(config: Mapping[str, Any]) -> dict[str, int]:
    return {DEGREES[key]: value for key, value in config.items() if key in DEGREES and _whole(value)}


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _model(
    stated: Mapping[str, Any], is_moe: bool, published: Mapping[str, PastCase]
) -> tuple[str | None, str | None, PastArchitecture]:
    """(name, family, numbers): of a published case or the catalogue where the name is one of theirs, else as stated."""
    name = str(stated["name"])
    if re.search(r"not (stated|recorded)", name):
        return None, None, PastArchitecture(mixture=is_moe)
    plain = re.sub(r"\s*\(.*\)|\s+(FP8|FP4|NVFP4|MXFP8|MXFP4|INT4|BF16|LoRA.*)$", "", name).strip() or name
    for candidate in (name, plain):
        case = published.get(normalise(candidate))
        if case is not None:
            return case.model, case.family, case.architecture
        try:
            known = catalog.architecture(candidate)
        except ShardwiseError:
            continue
        return known.name, known.name, counted(known)
    numbers = stated["numbers"]
    total = numbers.get("total_b") or numbers.get("params_b")
    active = numbers.get("active_b") or (None if is_moe else total)
    sizes = {
        "parameters": total * 1e9 if total else None,
        "active_parameters": active * 1e9 if active else None,
        "layers": numbers.get("layers"),
        "hidden_size": numbers.get("hidden"),
        "experts": numbers.get("experts") if is_moe else 0,
        "mixture": True if is_moe and not numbers.get("experts") else None,
    }
    return plain[:120], normalise(plain), PastArchitecture.model_validate(sizes)


def _chip(name: str) -> tuple[str | None, str]:
    try:
        return catalog.chip(name).id, ""
    except ShardwiseError:
        return None, "" if re.search(r"not (stated|recorded)", name) else name[:80]


def _precision(config: Mapping[str, Any]) -> str | None:
    stated = str(config.get("dtype") or config.get("precision") or "").lower()
    return stated if stated in ("fp32", "bf16", "fp16", "fp8", "mxfp8", "int8", "fp4", "nvfp4") else None


def _cause(stated: str, bottleneck: str | None) -> Cause | None:
    found = next((cause for word, cause in CAUSES if word in stated.lower()), None)
    return found if found is not None and bottleneck == BOTTLENECK_OF[found] else None


def _effect(effect: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The effect, with the two figures whose quotient it is, where both arms print them."""
    ratio, metric = effect["improvement_ratio"], str(effect["metric"])
    found: dict[str, Any] = {"metric": metric[:80], "ratio": ratio, "outcome": effect["outcome"]}
    for name, old in before.items():
        new = after.get(name)
        if ratio is None or not all(isinstance(one, int | float) and one > 0 for one in (old, new)):
            continue
        lower_is_better = name.endswith(("_s", "_ms")) and not name.startswith(("tokens", "samples", "req"))
        quotient = old / new if lower_is_better else new / old
        if abs(quotient / ratio - 1) < 0.01:
            unit = (
                next((unit for ending, unit in UNITS.items() if name.endswith(ending)), "") if lower_is_better else ""
            )
            return found | {"before": old, "after": new, "unit": unit}
    return found


def _source(stated: Mapping[str, str]) -> PastSource:
    url = stated["url"]
    github = GITHUB.match(url)
    title = f"{github[1]} {KINDS[github[2]]} {github[3]}" if github else url.removeprefix("https://")[:200]
    dated = re.match(r"\d{4}(-\d{2}(-\d{2})?)?", stated["date"])
    return PastSource(title=title, url=url, date=dated[0] if dated else None)
