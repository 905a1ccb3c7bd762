"""A case as a request: what the fields of `PlanRequest` can hold goes there, everything else stays words."""

import re
from dataclasses import dataclass
from typing import Any

from agents.evaluation.case_figures import flat, observed_of
from agents.evaluation.case_rows import CaseInput
from agents.request import MOST_SYMPTOM, PlanRequest
from projector import catalog
from projector.errors import ShardwiseError
from projector.legality import check
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan
from projector.specs.workload import WorkloadSpec

SIZE_TOLERANCE = 0.10  # of total and active parameters, for an architecture that stands in for a stated size
PHASE_WORDS = {
    "train": "Pre-training.",
    "sft": "Fine-tuning (sft).",
    "rl": "Reinforcement learning.",
    "serve": "Serving.",
}
DEGREES = ("tp", "pp", "cp", "ep")


@dataclass(frozen=True)
class CaseRequest:
    """The request, and what it had to assume of the case, as sentences."""

    request: PlanRequest
    assumed: tuple[str, ...]


def request_of(given: CaseInput) -> CaseRequest:
    """The fullest request the case supports; with a current plan only where it is legal."""
    chip = chip_of(given)
    model, assumed = model_of(given)
    observed, used = observed_of(given.before.figures)
    cluster = _cluster(given, chip)
    workload = _workload(given, model)
    stated: dict[str, Any] = {"workload": workload, "symptom": _text(given, used), "observed": observed}
    if chip is not None:
        stated["hardware"] = (chip.id,)
    notes = [assumed] if assumed else []
    if cluster is not None and model is not None and given.phase != "rl":  # a plan lays out one model, not two phases
        stated["cluster"] = cluster
        plan = _plan(given, model, cluster, chip, workload)
        if plan is not None:
            stated["current_plan"] = plan
    return CaseRequest(PlanRequest.model_validate(stated), tuple(notes))


def chip_of(given: CaseInput) -> HardwareProfile | None:
    """The chip of the catalogue, where the words name one without doubt; a family alone ('A100') its commonest form."""
    words = re.sub(r"\(.*?\)", "", given.hardware.chip).strip()
    memory = re.search(r"(\d+) ?gb", words.lower())
    size = float(memory[1]) * 1e9 if memory else None
    for name in (words, words.replace(" ", "-"), re.sub(r"\s*\d+ ?gb\w*", "", words, flags=re.IGNORECASE).strip()):
        try:
            return catalog.chip(name.lower())
        except ShardwiseError:
            continue
    return catalog.match_chip(words, size) if words else None


def model_of(given: CaseInput) -> tuple[ModelArchitecture | None, str]:
    """The catalogue's model by name, else the nearest in size and kind within a tenth, and what that assumes."""
    name = re.sub(r"\(.*?\)", "", given.model.name.lower()).strip()
    tokens = [token for token in re.split(r"[\s/]+", name) if token]
    for guess in (name, "-".join(tokens), *("-".join(tokens[:end]) for end in range(len(tokens) - 1, 0, -1))):
        try:
            return catalog.architecture(guess), ""
        except ShardwiseError:
            continue
    total, active = sizes_of(given)
    if total is None or (given.is_moe and active is None):
        return None, ""
    near = [one for one in catalog.architectures() if one.is_moe == given.is_moe and _is_near(one, total, active)]
    if not near:
        return None, ""
    model = min(near, key=lambda one: (abs(one.parameters - total), one.name))
    return model, f"{model.name} stands in for '{given.model.name}' by its size"


def sizes_of(given: CaseInput) -> tuple[float | None, float | None]:
    """Total and active parameters, of stated numbers or of the name ('30B-A3B')."""
    numbers = given.model.numbers
    named = re.search(r"(?<![\w.])(\d+(?:\.\d+)?)[bB](?:-[aA](\d+(?:\.\d+)?)[bB])?\b", given.model.name)
    total = numbers.get("total_b", numbers.get("params_b", named[1] if named else None))
    active = numbers.get("active_b", named[2] if named else None)
    return _billions(total), _billions(active)


def _billions(value: object) -> float | None:
    try:
        return float(str(value)) * 1e9 if value is not None else None
    except ValueError:
        return None


def _is_near(model: ModelArchitecture, total: float, active: float | None) -> bool:
    near = abs(model.parameters / total - 1) <= SIZE_TOLERANCE
    return near and (active is None or abs(model.active_parameters / active - 1) <= 2 * SIZE_TOLERANCE)


def _cluster(given: CaseInput, chip: HardwareProfile | None) -> ClusterSpec | None:
    count = given.hardware.count
    if chip is None or count is None or count < 1 or count != int(count):
        return None
    return ClusterSpec(chip=chip.id, chips=int(count))


def _workload(given: CaseInput, model: ModelArchitecture | None) -> WorkloadSpec:
    config = given.before.config
    stated: dict[str, Any] = {"phase": "serving" if given.phase == "serve" else "training"}
    if model is not None:
        stated["model"] = model.name
    keys = (
        (("input_len", ("isl", "input_len")), ("output_len", ("osl", "output_len")), ("concurrency", ("concurrency",)))
        if given.phase == "serve"
        else (("seq_len", ("seq", "seq_len", "max_len")), ("global_batch", ("global_batch", "gbs", "batch")))
    )
    for field, spellings in keys:
        value = next((config[key] for key in spellings if _is_count(config.get(key))), None)
        if value is not None:
            stated[field] = int(value)
    return WorkloadSpec.model_validate(stated)


def _is_count(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 1 and value == int(value)


def _plan(
    given: CaseInput,
    model: ModelArchitecture,
    cluster: ClusterSpec,
    chip: HardwareProfile | None,
    workload: WorkloadSpec,
) -> ParallelismPlan | None:
    """The layout the configuration states, where its degrees divide the devices and no rule forbids it."""
    config = given.before.config
    degrees = {axis: int(config[axis]) for axis in DEGREES if _is_count(config.get(axis))}
    devices = cluster.chips * (chip.devices_per_chip if chip is not None else 1)
    inside = degrees.get("tp", 1) * degrees.get("pp", 1) * degrees.get("cp", 1)
    sharded = re.search(r"fsdp|full.?shard|zero.?3", str(config.get("dp", "")).lower()) or config.get("zero") == 3
    if devices % inside or not (degrees or sharded):
        return None
    dp = devices // inside
    stated: dict[str, Any] = {"phase": workload.phase, "dp": dp, **degrees}
    if workload.phase == "training":
        stated |= {"fsdp": dp, "zero_stage": 3} if sharded else {"zero_stage": 1}
        micro = next((config[key] for key in ("micro_batch", "mbs", "local_batch") if _is_count(config.get(key))), None)
        stated["micro_batch"] = int(micro) if micro is not None else 1
        if workload.global_batch is not None:
            if workload.global_batch % (dp * stated["micro_batch"]):
                return None
            stated["grad_accum"] = workload.global_batch // (dp * stated["micro_batch"])
    try:
        plan = ParallelismPlan.model_validate(stated)
    except ValueError:
        return None
    return plan if not check(plan, workload, model, cluster, chip) else None


def _text(given: CaseInput, used: frozenset[str]) -> str:
    """Everything as words, the symptom first: a field of the request that says the same twice changes nothing."""
    machine = given.hardware
    parts = [PHASE_WORDS[given.phase], given.symptom.rstrip(".") + "."]
    config = "; ".join(f"{key} {value}" for key, value in flat(given.before.config))
    figures = "; ".join(
        f"{key} {value}" for key, value in flat(given.before.figures) if key.replace(" ", "_") not in used
    )
    parts += [f"Configuration: {config}." if config else "", f"Figures: {figures}." if figures else ""]
    numbers = ", ".join(f"{key} {value}" for key, value in flat(given.model.numbers))
    kind = " Mixture of experts." if given.is_moe else ""
    parts.append(f"Model {given.model.name}{', ' + numbers if numbers else ''}.{kind}")
    count = f", {machine.count:g} chips" if machine.count else ""
    nodes = f", {machine.nodes:g} nodes" if machine.nodes else ""
    parts.append(f"Hardware {machine.chip}{count}{nodes}, link {machine.link or 'not stated'}.")
    return "\n".join(part for part in parts if part)[:MOST_SYMPTOM]
