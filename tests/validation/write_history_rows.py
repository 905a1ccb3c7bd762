"""Rows of measured runs as past cases: what ran, on what, and the figure its source prints."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from agents.evaluation.precisions import dtype_of
from agents.evaluation.refusal import Refused, first_problem
from agents.evaluation.rows import MeasuredRow, Unreadable, json_object, read_rows
from agents.evaluation.serving_lines import read_serving_lines
from agents.evaluation.serving_rows import ServingRow
from knowledge_base.past import PastCase
from projector import catalog
from projector.errors import ShardwiseError
from tests.validation.write_history_facts import identifier, numbers_of, source_of

ROLES = {"expert_adopted": "adopted", "benchmark_config": "benchmark", "published": "benchmark"}
SWEEP = "fastest of a sweep"
STEP_TIME = "step time"
TASKS = {"pretrain": "pretrain", "sft": "sft", "lora": "lora", "qlora": "qlora", "rl": "rl", "serving": "inference"}
VERSION = re.compile(r"\d+\.\d+")


@dataclass(frozen=True)
class NamedCase:
    """A case, the key of its source, and what it is chosen by."""

    case: PastCase
    source_key: str
    workload: tuple[object, ...]
    speed: float
    swept: bool


def training_cases(text: str, file: str, left_out: Counter[str]) -> list[NamedCase]:
    """Pre-training and post-training rows that ran, the newest release of each workload."""
    lines = [json_object(line) for line in text.split("\n") if line.strip()]
    raw = {str(values.get("id")): values for values in lines}
    found = []
    for row in read_rows(text, file):
        try:
            if isinstance(row, Unreadable):
                raise Refused(row.reason)
            found.append(_training(row, raw[row.id]))
        except (Refused, ValidationError) as error:
            left_out[_reason(error)] += 1
    return _chosen(found, left_out)


def serving_cases(text: str, file: str, left_out: Counter[str]) -> list[NamedCase]:
    """Serving rows that print a rate or a latency, the newest release of each workload."""
    lines = [json_object(line) for line in text.split("\n") if line.strip()]
    raw = {str(values.get("id")): values for values in lines}
    found = []
    for row in read_serving_lines(text, file):
        try:
            if isinstance(row, Unreadable):
                raise Refused(row.reason)
            found.append(_serving(row, raw[row.id]))
        except (Refused, ValidationError) as error:
            left_out[_reason(error)] += 1
    return _chosen(found, left_out)


def _training(row: MeasuredRow, values: Mapping[str, Any]) -> NamedCase:
    if row.suspect:
        raise Refused("marked suspect")
    if row.superseded:
        raise Refused("an older release of the same workload")
    measured = row.measured
    if measured.out_of_memory:
        raise Refused("ran out of memory")
    rate = measured.tokens_per_s_per_chip or measured.derived_tokens_per_s_per_chip
    step_s = measured.step_time_s or measured.derived_step_time_s
    metric, unit, figure = next((entry for entry in _speeds(row, rate, step_s) if entry[2] is not None), ("", "", None))
    if figure is None:
        raise Refused("no speed printed")
    effect = {"metric": metric, "unit": unit, "after": figure}
    plan, chip = row.plan, _chip(row.chip)
    tp, pp, cp, ep = plan.degrees
    devices = row.chips * chip.devices_per_chip
    dp = devices // (tp * pp * cp) if devices % (tp * pp * cp) == 0 else None
    fsdp = 1 if plan.fsdp == 0 else plan.fsdp
    layout = {
        "dp": dp,
        "fsdp": fsdp if fsdp and dp and dp % fsdp == 0 else None,
        "zero_stage": plan.zero_stage,
        "tp": tp,
        "pp": pp,
        "vp": plan.vp,
        "cp": cp,
        "ep": ep,
        "etp": plan.etp,
        "micro_batch": int(row.micro_batch) if row.micro_batch and row.micro_batch >= 1 else None,
        "recompute": plan.recompute if plan.recompute in ("none", "selective", "full") else None,
    }
    key, source = source_of(row.document, row.release)
    case = PastCase.model_validate(
        {
            **_facts(row.id, row.family, row.model, row.arch, chip.id, row.chips, values),
            "phase": "training",
            "framework": row.framework or None,
            "precision": _precision(row.precision),
            "seq_len": row.seq_len,
            "global_batch": row.global_batch,
            "release": _release(row.release),
            "layout": _above_one(layout),
            "effect": effect | {"after": float(f"{effect['after']:.5g}")},
            "source": source,
        }
    )
    return _named(case, key, values, 1 / figure if metric == STEP_TIME else figure)


def _speeds(row: MeasuredRow, rate: float | None, step_s: float | None) -> tuple[tuple[str, str, float | None], ...]:
    """(metric, unit, figure), the best to compare first; FLOP as the source counts them."""
    flop = row.measured.flop_per_s_per_chip
    tera = None if flop is None else flop / 1e12
    whole = "rate of a whole step of reinforcement learning" if row.phase == "rl" else "training rate"
    return (
        (whole, "tokens/s/chip", rate),
        (STEP_TIME, "s", step_s),
        ("MFU", "fraction", row.measured.mfu_frac),
        ("arithmetic rate as the source counts it", "TFLOP/s/chip", tera),
    )


def _serving(row: ServingRow, values: Mapping[str, Any]) -> NamedCase:
    chip, measured = _chip(row.chip), row.measured
    if measured.output_tokens_per_s_per_chip is not None:
        effect = {"metric": "output rate", "unit": "tokens/s/chip", "after": measured.output_tokens_per_s_per_chip}
        speed = measured.output_tokens_per_s_per_chip
    elif measured.tpot_s is not None:
        effect = {"metric": f"{measured.tpot_is} time per output token", "unit": "ms", "after": measured.tpot_s * 1e3}
        speed = 1 / measured.tpot_s
    elif measured.request_per_s is not None:
        effect = {"metric": "requests", "unit": "requests/s", "after": measured.request_per_s}
        speed = measured.request_per_s
    else:
        raise Refused("no speed printed")
    adopted, engine = values["adopted"], row.layout
    apart = bool(adopted.get("disaggregated"))
    dp = row.replicas * engine.attention_dp
    devices = row.chips * chip.devices_per_chip
    fits = dp * engine.tp * engine.pp == devices
    layout = {
        "dp": dp if fits or apart else None,
        "tp": engine.tp,
        "pp": engine.pp,
        "ep": engine.ep,
        "etp": engine.etp if engine.ep > 1 else None,
        "attention_dp": engine.attention_dp,
        "disaggregated": apart or None,
    }
    key, source = source_of(str(values.get("source") or ""), row.release)
    case = PastCase.model_validate(
        {
            **_facts(row.id, row.family, row.model, row.arch, chip.id, row.chips, values),
            "phase": "serving",
            "framework": row.engine or None,
            "precision": _precision(values.get("precision_class")),
            "input_len": round(row.input_len) if row.input_len else None,
            "output_len": round(row.output_len) if row.output_len else None,
            "concurrency": row.concurrency,
            "release": _release(row.release),
            "layout": _above_one(layout),
            "effect": effect | {"after": float(f"{effect['after']:.5g}")},
            "source": source,
        }
    )
    return _named(case, key, values, speed)


def _above_one(layout: dict[str, Any]) -> dict[str, Any]:
    """The layout without the degrees of 1, which is what a degree that is not stated means."""
    implied = ("pp", "cp", "ep", "etp", "attention_dp")
    return {name: value for name, value in layout.items() if not (name in implied and value == 1)}


def _facts(
    name: str,
    family: str,
    model: str,
    arch: Mapping[str, object] | None,
    chip: str,
    chips: int,
    values: Mapping[str, Any],
) -> dict[str, Any]:
    return {
        "id": identifier("pub", name),
        "kind": "published",
        "role": ROLES.get(values["role"], SWEEP),
        "task": TASKS[values["phase"]],
        "model": model or None,
        "family": family or None,
        "architecture": numbers_of(arch, model),
        "chip": chip,
        "chips": chips,
    }


def _named(case: PastCase, key: str, values: Mapping[str, Any], speed: float) -> NamedCase:
    sizes = (case.seq_len, case.global_batch, case.input_len, case.output_len, case.concurrency)
    # runs of one document whose releases follow each other; engines of two vendors are two workloads
    stack = (case.framework or "").split(" ")[0].lower()
    swept = case.role == SWEEP
    # engines of several sizes are variants of one serving sweep, which compares them by the chip
    chips = None if swept and case.phase == "serving" else case.chips
    scenario = (values.get("load") or {}).get("scenario")
    workload = (case.task, case.model, case.chip, chips, case.precision, *sizes, stack, scenario, swept)
    return NamedCase(case, key, workload, speed, swept)


def _chosen(found: Iterable[NamedCase], left_out: Counter[str]) -> list[NamedCase]:
    """Of each workload the newest release, of a sweep the fastest variant, of equal layouts the newest and fastest."""
    workloads: dict[tuple[object, ...], list[NamedCase]] = {}
    for named in found:
        workloads.setdefault(named.workload, []).append(named)
    kept = []
    for rows in workloads.values():
        # rows of training say themselves which of them an equal run of a newer release replaces
        newest = max(_version(named) for named in rows) if rows[0].case.phase == "serving" else ()
        current = [named for named in rows if not () < _version(named) < newest]
        left_out["an older release of the same workload"] += len(rows) - len(current)
        best: dict[object, NamedCase] = {}
        for named in sorted(sorted(current, key=lambda one: (-one.speed, one.case.id)), key=_version, reverse=True):
            best.setdefault(() if named.swept else _degrees(named.case), named)
        left_out["slower than another variant of a sweep, or than a repetition"] += len(current) - len(best)
        kept += best.values()
    return kept


def _degrees(case: PastCase) -> str:
    """The layout without what is tuned inside it."""
    return case.layout.model_dump_json(exclude={"micro_batch", "recompute", "vp"})


def _version(named: NamedCase) -> tuple[float, ...]:
    found = VERSION.search(named.case.release or "")
    numbers = re.search(r"\d+(?:\.\d+)*", (named.case.release or "")[found.start() if found else 0 :])
    return tuple(float(part) for part in numbers[0].split(".")) if found and numbers else ()


def _release(printed: str | None) -> str | None:
    """A release where what is printed holds a version; some tables print the machine there."""
    return printed[:80] if printed and VERSION.search(printed) else None


def _precision(printed: str | None) -> str | None:
    try:
        dtype, assumed = dtype_of(printed)
    except Refused:
        return None
    return None if assumed else dtype


def _chip(name: str) -> Any:
    try:
        return catalog.chip(name)
    except ShardwiseError as error:
        raise Refused("chip not in the catalogue") from error


def _reason(error: Refused | ValidationError) -> str:
    reason = first_problem(error) if isinstance(error, ValidationError) else str(error)
    # rows with other numbers fail for one reason
    return re.sub(r"\d+", "N", reason)
