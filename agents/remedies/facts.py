"""Facts: every number and name of a job that remedies are weighed with, from the request's fields first, then its text.

None is unknown. What was read from the text is listed in `from_text`, so that the answer can say so.
"""

import re
from dataclasses import dataclass, field
from typing import Literal

from agents.observed import Observed
from agents.remedies.words import counted, number_of, plain, without_orders
from agents.request import PlanRequest
from projector import catalog
from projector.errors import ShardwiseError
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import HardwareProfile

Setting = Literal["training", "fine-tuning", "rl", "serving"]
Link = Literal["none", "pcie", "ethernet", "infiniband", "nvlink", "torus", "unknown"]

# what a number of the text is called, by the fact it states
NAMES: dict[str, tuple[str, ...]] = {
    "tp": (r"tp(?: size)?", r"tensor[ -]parallel(?:ism)?(?: size)?", "model axis"),
    "pp": (r"pp(?: size)?", r"pipeline[ -]parallel(?:ism)?(?: size)?", r"pipeline stages"),
    "vp": (r"vp", r"vpp", r"virtual stages", r"virtual pipeline"),
    "ep": (r"ep(?: size)?", r"expert[ -]parallel(?:ism)?(?: size)?"),
    "cp": (r"cp(?: size)?", r"context[ -]parallel(?:ism)?(?: size)?", "ulysses", "sequence parallel size"),
    "dp": (r"dp(?: size)?", r"data[ -]parallel(?:ism)?(?: size)?", "replicas", "data"),
    "fsdp": (r"fsdp2?", "dp shard", "hsdp shard"),
    "zero": (r"zero(?:[ -]?stage)?[ -]?", "deepspeed stage"),
    "micro_batch": (r"micro[ -]?batch(?: size)?", "mbs", "per device batch(?: size)?", "local batch", r"mb"),
    "global_batch": (r"global[ -]?batch(?: size)?", "gbs", r"(?<!micro )(?<!device )(?<!local )batch(?: size)?"),
    "grad_accum": (r"(?:grad(?:ient)? )?accum\w*(?: steps)?", "ga", "gas", "microsteps"),
    "microbatches": (r"micro[ -]?batches", "num micro ?batches"),
    "seq_len": (r"seq(?:uence)?(?:[ -]?len(?:gth)?)?", "max len(?:gth)?", "context(?: length)?"),
    "input_len": ("isl", r"input(?: len(?:gth)?| tokens)?", r"prompt(?: len(?:gth)?| tokens)?"),
    "output_len": ("osl", r"output(?: len(?:gth)?| tokens)?", r"max (?:new )?tokens"),
    "concurrency": (r"(?:max )?concurren(?:cy|t)(?: per replica| requests)?", "users", "in flight", "max num seqs"),
    "tokens_per_chip": (r"tokens per (?:gpu|chip|device)", r"tokens gpu"),
    "layers": ("layers", r"num(?:ber of)? layers"),
    "kv_heads": (r"(?:num )?(?:kv|key value) heads",),
    "nodes": ("nodes",),
    "draft_tokens": (r"(?:mtp|eagle|draft(?: tokens)?|spec(?:ulative)? tokens)",),
    "experts": ("(?:num )?experts",),
    "params_b": (r"params b", "total b", "parameters b"),
    "active_b": ("active b",),
}
BEFORE: dict[str, tuple[str, ...]] = {
    "nodes": ("nodes",),
    "concurrency": ("concurrent", "users", "requests in flight"),
    "layers": ("layers",),
    "kv_heads": ("kv heads",),
    "microbatches": ("micro-?batches",),
    "experts": ("experts",),
}


@dataclass(frozen=True)
class Facts:
    """One job. params and active in parameters; degrees over devices; share fields are fractions."""

    setting: Setting
    text: str = ""
    chip: HardwareProfile | None = None
    model: ModelArchitecture | None = None
    is_tpu: bool = False
    is_moe: bool = False
    is_mla: bool = False
    params: float | None = None
    active: float | None = None
    chips: float | None = None
    link: Link = "unknown"
    numbers: dict[str, float] = field(default_factory=dict)
    observed: Observed = field(default_factory=Observed)
    from_text: tuple[str, ...] = ()

    def get(self, name: str) -> float | None:
        """The number, or None."""
        return self.numbers.get(name)

    def degree(self, name: str) -> float:
        """A parallelism degree; one where nothing says otherwise."""
        return self.numbers.get(name, 1.0)

    @property
    def nodes(self) -> float | None:
        """Hosts of the job."""
        stated = self.numbers.get("nodes")
        if stated is not None or self.chips is None or self.chip is None:
            return stated
        return max(1.0, self.chips / self.chip.chips_per_node)

    @property
    def chips_per_node(self) -> float | None:
        """Chips that share a host, where chips and nodes are known."""
        nodes = self.nodes
        return self.chips / nodes if self.chips is not None and nodes else None

    @property
    def tokens_per_chip(self) -> float | None:
        """Tokens of a training step over the chips: stated, or batch times length over chips."""
        stated = self.observed.tokens_per_step_per_chip or self.numbers.get("tokens_per_chip")
        batch, seq = self.numbers.get("global_batch"), self.numbers.get("seq_len")
        if stated is not None or batch is None or seq is None or not self.chips or self.setting == "serving":
            return stated
        return batch * seq / self.chips

    @property
    def memory_gb(self) -> float | None:
        """Memory of a chip."""
        return self.chip.hbm_bytes.value / 1e9 if self.chip is not None else None


def facts_of(request: PlanRequest) -> Facts:
    """The facts of a request: fields win over text. UnknownName for a model or chip in no catalogue."""
    text = plain(without_orders(request.symptom))
    numbers, read = _text_numbers(text)
    numbers |= _plan_numbers(request) | _workload_numbers(request)
    model = _model(request)
    chip = _chip(request, text)
    params, active = _sizes(model, text, numbers)
    moe = model.is_moe if model is not None else bool(re.search(r"\bmoe\b|mixture of experts|experts|-a\d+b", text))
    return Facts(
        setting=_setting(request, text),
        text=text,
        chip=chip,
        model=model,
        is_tpu=chip.kind == "tpu" if chip is not None else bool(re.search(r"\btpu\b|\bici\b", text)),
        is_moe=moe,
        is_mla=model.is_mla if model is not None else bool(re.search(r"\bmla\b|latent (kv|attention)", text)),
        params=params,
        active=active if active is not None else params if not moe else None,
        chips=float(request.cluster.chips) if request.cluster is not None else _chips(text),
        link=_link(text, chip),
        numbers={**numbers, **({"kv_heads": float(model.kv_heads)} if model is not None else {})},
        observed=request.observed or Observed(),
        from_text=read,
    )


def _text_numbers(text: str) -> tuple[dict[str, float], tuple[str, ...]]:
    found: dict[str, float] = {}
    for name, names in NAMES.items():
        value = number_of(text, names)
        value = counted(text, BEFORE[name]) if value is None and name in BEFORE else value
        if value is not None and value > 0:
            found[name] = value
    return found, tuple(found)


def _plan_numbers(request: PlanRequest) -> dict[str, float]:
    plan = request.current_plan
    if plan is None:
        return {}
    names = ("tp", "pp", "vp", "ep", "cp", "dp", "fsdp", "micro_batch", "grad_accum", "attention_dp")
    return {name: float(getattr(plan, name)) for name in names if name in plan.model_fields_set}


def _workload_numbers(request: PlanRequest) -> dict[str, float]:
    work = request.workload
    names = ("seq_len", "global_batch", "input_len", "output_len", "concurrency", "expert_imbalance")
    stated = {name: getattr(work, name) for name in names} if work is not None else {}
    return {name: float(value) for name, value in stated.items() if value is not None}


def _model(request: PlanRequest) -> ModelArchitecture | None:
    if request.architecture is not None:
        return request.architecture
    name = request.workload.model if request.workload is not None else None
    return catalog.architecture(name) if name is not None else None


def _chip(request: PlanRequest, text: str) -> HardwareProfile | None:
    if request.cluster is not None:
        return catalog.chip(request.cluster.chip)
    for name in request.hardware:
        return catalog.chip(name)
    named = re.search(r"hardware ([a-z0-9 -]+?)(?= x\d| chips| link|\.|,|$)", text)
    if named is None:
        return None
    try:
        return catalog.chip(named[1].strip())
    except ShardwiseError:
        return catalog.match_chip(named[1].strip())


def _sizes(model: ModelArchitecture | None, text: str, numbers: dict[str, float]) -> tuple[float | None, float | None]:
    if model is not None:
        return float(model.parameters), float(model.active_parameters)
    total = numbers.get("params_b")
    named = re.search(r"(?<![\w.])(\d+(?:\.\d+)?)b(?:-a(\d+(?:\.\d+)?)b)?\b", text)
    if total is None and named:
        total = float(named[1])
    active = numbers.get("active_b") or (float(named[2]) if named and named[2] else None)
    return (total * 1e9 if total else None), (active * 1e9 if active else None)


def _setting(request: PlanRequest, text: str) -> Setting:
    if re.search(r"\b(rollouts?|reinforcement|grpo|ppo|rlhf|weight sync|actor|reward model|\brl\b)", text):
        return "rl"
    if (request.observed is not None and request.observed.phases is not None) or "phase rl" in text:
        return "rl"
    work = request.workload
    if work is not None and "phase" in work.model_fields_set:
        serving = work.phase == "serving"
    elif request.current_plan is not None:
        serving = request.current_plan.phase == "serving"
    else:
        serving = bool(re.search(r"\b(serv\w+|decod\w+|prefill|ttft|tpot|requests?|inference|kv cache)\b", text))
    if serving:
        return "serving"
    return "fine-tuning" if re.search(r"\b(sft|fine-?tun\w+|q?lora|dpo)\b", text) else "training"


def _chips(text: str) -> float | None:
    stated = number_of(text, ("chips", "gpus", "count"))
    return stated if stated is not None else counted(text, ("gpus?", "chips?", "cards?", "devices?", "npus?"))


def _link(text: str, chip: HardwareProfile | None) -> Link:
    if re.search(r"\bpcie\b|no nvlink|without (peer|nvlink)|p2p (is )?(disabled|off|false)|p2p disable", text):
        return "pcie"
    if re.search(r"\b(ethernet|\d+ ?gbe|tcp|roce|efa)\b", text):
        return "ethernet"
    if re.search(r"\b(ici|torus)\b", text) or (chip is not None and chip.kind == "tpu"):
        return "torus"
    if re.search(r"\b(infiniband|ib|hdr|ndr)\b", text):
        return "infiniband"
    if re.search(r"nvlink|nvswitch|nvl\d*|infinity fabric|xgmi", text):
        return "nvlink"
    return "none" if re.search(r"link (none|n/?a)\b", text) else "unknown"
