"""The notation of knowledge notes at a plan's own numbers: the fixed set of symbols that planning can fill in.

A variable of a note is one of SYMBOLS if name, unit and meaning agree; its value then comes from the job or the plan.
Variables in KEPT are the author's own: widths of formats, thresholds, efficiencies; they keep the note's value. A note
with any other variable cannot be evaluated. A symbol is None where the job does not state it or the plan makes the
question moot (no pipeline, one node): the note then says nothing about that plan.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from agents.planning.job import Job
from knowledge_base.rule import NoteRule, Symbol
from projector.specs.architecture import ModelArchitecture
from projector.specs.plan import ParallelismPlan
from projector.units import GIGA, TERA

Value = Callable[[ParallelismPlan, Job], float | None]

KEPT: Final = frozenset({"element_bytes", "exchange_bytes", "kv_bytes", "torus_axes"})


@dataclass(frozen=True)
class Known:
    """A symbol planning knows. meaning: how the author's explanation has to begin."""

    name: str
    unit: str
    meaning: str
    value: Value


def values_for(rule: NoteRule, plan: ParallelismPlan, job: Job) -> dict[str, float] | None:
    """Every symbol of the rule at this plan; None where one is not known, or moot."""
    values = {}
    for symbol in rule.symbols:
        value = symbol.value if symbol.name in KEPT else _value(symbol, plan, job)
        if value is None:
            return None
        values[symbol.name] = value
    return values


def evaluable(rule: NoteRule) -> bool:
    """Whether all its variables belong to the fixed set."""
    return all(symbol.name in KEPT or _known(symbol) is not None for symbol in rule.symbols)


def _value(symbol: Symbol, plan: ParallelismPlan, job: Job) -> float | None:
    known = _known(symbol)
    return known.value(plan, job) if known is not None else None


def _known(symbol: Symbol) -> Known | None:
    fitting = (
        known
        for known in SYMBOLS
        if (known.name, known.unit) == (symbol.name, symbol.unit) and re.match(known.meaning, symbol.meaning)
    )
    return next(fitting, None)


def _parameters(plan: ParallelismPlan, job: Job) -> float | None:
    """Of a dense model: notes take every weight to work on every token."""
    del plan
    model = job.architecture
    return None if model is None or model.is_moe else float(model.parameters)


def _layer_parameters(plan: ParallelismPlan, job: Job) -> float | None:
    del plan
    model = job.architecture
    if model is None or model.is_moe or model.sorts:
        return None
    return float(model.attention_parameters + model.dense_mlp_parameters)


def _hidden_size(plan: ParallelismPlan, job: Job) -> float | None:
    del plan
    return float(job.architecture.hidden_size) if job.architecture else None


def _layers(plan: ParallelismPlan, job: Job) -> float | None:
    del plan
    return float(job.architecture.layers) if job.architecture else None


def _with_equal_layers(job: Job) -> ModelArchitecture | None:
    """The model where every layer has the same attention: the notes' formulas multiply one layer's by all."""
    model = job.architecture
    return None if model is None or model.sorts else model


def _query_width(plan: ParallelismPlan, job: Job) -> float | None:
    del plan
    model = _with_equal_layers(job)
    return None if model is None else float(model.heads * model.head_dim)


def _kv_width(plan: ParallelismPlan, job: Job) -> float | None:
    del plan
    model = _with_equal_layers(job)
    return None if model is None or model.is_mla else float(model.kv_heads * model.head_dim)


def _head_dim(plan: ParallelismPlan, job: Job) -> float | None:
    del plan
    model = _with_equal_layers(job)
    return None if model is None or model.is_mla else float(model.head_dim)


def _kv_heads_here(plan: ParallelismPlan, job: Job) -> float | None:
    model = _with_equal_layers(job)
    return None if model is None or model.is_mla else max(1.0, model.kv_heads / plan.tp)


def _weights_here_gb(plan: ParallelismPlan, job: Job) -> float | None:
    weights = _parameters(plan, job)
    return None if weights is None else 2 * weights / (plan.tp * plan.pp) / GIGA


def _experts(plan: ParallelismPlan, job: Job) -> float | None:
    del plan
    return float(job.architecture.experts) if job.architecture and job.architecture.is_moe else None


def _experts_per_token(plan: ParallelismPlan, job: Job) -> float | None:
    del plan
    return float(job.architecture.experts_per_token) if job.architecture and job.architecture.is_moe else None


def _expert_width(plan: ParallelismPlan, job: Job) -> float | None:
    del plan
    return float(job.architecture.moe_intermediate_size) if job.architecture and job.architecture.is_moe else None


def _peak(plan: ParallelismPlan, job: Job) -> float | None:
    del plan
    chip = job.hardware
    if chip is None or "bf16" not in chip.peak_flop_per_s:
        return None
    return chip.peak_flop_per_s["bf16"].value / chip.devices_per_chip / TERA


def _hbm_bandwidth(plan: ParallelismPlan, job: Job) -> float | None:
    del plan
    return job.hardware.hbm_bytes_per_s.value / job.hardware.devices_per_chip / TERA if job.hardware else None


def _rows_to_fill(plan: ParallelismPlan, job: Job) -> float | None:
    """A bf16 GEMM of T rows does T FLOP a byte of weights."""
    peak, bandwidth = _peak(plan, job), _hbm_bandwidth(plan, job)
    return None if peak is None or bandwidth is None else peak / bandwidth


def _link(plan: ParallelismPlan, job: Job) -> float | None:
    """NVLink and its like; moot for a group that leaves the fast domain."""
    chip = job.hardware
    if chip is None or chip.intra.kind != "switch" or chip.intra.bytes_per_s_one_way is None:
        return None
    if plan.tp > chip.intra.max_domain_chips * chip.devices_per_chip:
        return None
    return chip.intra.bytes_per_s_one_way.value / chip.devices_per_chip / GIGA


def _torus_link(plan: ParallelismPlan, job: Job) -> float | None:
    del plan
    chip = job.hardware
    if chip is None or chip.intra.kind != "torus" or not chip.intra.links_per_chip:
        return None
    rate = chip.intra.bytes_per_s_one_way
    return None if rate is None else rate.value / chip.intra.links_per_chip / GIGA


def _node_devices(job: Job) -> int | None:
    """Devices of a node; None on a torus, whose slice is no node."""
    chip = job.hardware
    return None if chip is None or chip.intra.kind == "torus" else chip.chips_per_node * chip.devices_per_chip


def _chips_per_node(plan: ParallelismPlan, job: Job) -> float | None:
    del plan
    devices = _node_devices(job)
    return float(devices) if devices is not None else None


def _nic(plan: ParallelismPlan, job: Job) -> float | None:
    del plan
    chip, devices = job.hardware, _node_devices(job)
    if chip is None or devices is None or job.devices <= devices or chip.inter.bytes_per_s_one_way is None:
        return None
    return chip.inter.bytes_per_s_one_way.value / chip.devices_per_chip / GIGA


def _node_network(plan: ParallelismPlan, job: Job) -> float | None:
    nic, devices = _nic(plan, job), _node_devices(job)
    return None if nic is None or devices is None else nic * devices


def _spanned(members: int, inner: int, job: Job) -> float | None:
    """Nodes a group spans whose neighbours are `inner` devices apart; None within one node."""
    devices = _node_devices(job)
    if devices is None:
        return None
    nodes = members * inner / devices
    return nodes if nodes > 1 and members > 1 else None


def _nodes_of_shards(plan: ParallelismPlan, job: Job) -> float | None:
    return _spanned(plan.fsdp, plan.tp * plan.cp, job)


def _nodes_that_average(plan: ParallelismPlan, job: Job) -> float | None:
    """Of a plan that reduces whole gradients; full sharding is another note's subject."""
    return _spanned(plan.dp, plan.tp * plan.cp, job) if plan.fsdp == 1 else None


def _nodes_of_model(plan: ParallelismPlan, job: Job) -> float | None:
    devices = _node_devices(job)
    if devices is None or plan.pp == 1 or plan.tp > devices:
        return None
    nodes = plan.tp * plan.pp / devices
    return nodes if nodes > 1 else None


def _replicas_of_shards(plan: ParallelismPlan, job: Job) -> float | None:
    del job
    return plan.dp / plan.fsdp if 1 < plan.fsdp < plan.dp else None


def _shard_group(plan: ParallelismPlan, job: Job) -> float | None:
    devices = _node_devices(job)
    inside = devices is not None and plan.fsdp * plan.tp * plan.cp <= devices
    return float(plan.fsdp) if inside and 1 < plan.fsdp < plan.dp else None


def _micro_tokens(plan: ParallelismPlan, job: Job) -> float | None:
    length = job.workload.seq_len
    return None if length is None or job.phase != "training" else plan.micro_batch * length / plan.cp


def _rank_tokens(plan: ParallelismPlan, job: Job) -> float | None:
    """Tokens a rank routes: those of the micro-batch, which a tensor-parallel group shares."""
    tokens = _micro_tokens(plan, job)
    return None if tokens is None else tokens / plan.tp


def _batch(plan: ParallelismPlan, job: Job) -> float | None:
    if job.phase != "serving" or job.workload.concurrency is None:
        return None
    return min(float(plan.max_num_seqs), job.workload.concurrency / plan.replicas)


def _shared_batch(plan: ParallelismPlan, job: Job) -> float | None:
    if job.phase != "serving" or job.workload.concurrency is None:
        return None
    return min(float(plan.max_num_seqs * plan.attention_dp), job.workload.concurrency / plan.replicas)


def _context(plan: ParallelismPlan, job: Job) -> float | None:
    """Mean over the life of a request: the prompt and half of the answer."""
    del plan
    prompt, answer = job.workload.input_len, job.workload.output_len
    return None if prompt is None or answer is None else prompt + answer / 2


def _sequence(plan: ParallelismPlan, job: Job) -> float | None:
    del plan
    return float(job.workload.seq_len) if job.workload.seq_len else None


def _cp_across(plan: ParallelismPlan, job: Job) -> float | None:
    """Moot where the ring stays in a node: the note prices the network."""
    devices = _node_devices(job)
    return float(plan.cp) if devices is not None and plan.cp > 1 and plan.tp * plan.cp > devices else None


def _remote(plan: ParallelismPlan, job: Job) -> float | None:
    """Moot without expert parallelism, and where its group leaves the fast domain."""
    chip = job.hardware
    inside = chip is not None and plan.ep * plan.etp <= chip.intra.max_domain_chips * chip.devices_per_chip
    return 1 - 1 / plan.ep if plan.ep > 1 and inside else None


def _more_than_one(field: str) -> Value:
    def value(plan: ParallelismPlan, job: Job) -> float | None:
        del job
        degree = float(getattr(plan, field))
        return degree if degree > 1 else None

    return value


def _accumulation(plan: ParallelismPlan, job: Job) -> float | None:
    return float(plan.grad_accum) if job.phase == "training" else None


SYMBOLS: Final[tuple[Known, ...]] = (
    Known("parameters", "parameters", "weights of the model", _parameters),
    Known("layer_parameters", "parameters", "weights of one layer", _layer_parameters),
    Known("hidden_size", "elements", "width of the model", _hidden_size),
    Known("layers", "layers", "layers of the model", _layers),
    Known("query_width", "elements", "query heads times head size", _query_width),
    Known("kv_width", "elements", "KV heads times head size", _kv_width),
    Known("head_dim", "elements", "size of a head", _head_dim),
    Known("kv_heads", "heads", "KV heads on one chip", _kv_heads_here),
    Known("weights_gb", "GB", "bf16 weights of one chip", _weights_here_gb),
    Known("experts", "experts", "routed experts", _experts),
    Known("experts_per_token", "experts", "routed experts of a token", _experts_per_token),
    Known("expert_width", "elements", "inner width of one expert", _expert_width),
    Known("peak_tflop_per_s", "TFLOP/s", "dense bf16 peak of one chip", _peak),
    Known("hbm_tb_per_s", "TB/s", "memory bandwidth of one chip", _hbm_bandwidth),
    Known("rows_to_fill", "rows", "rows at which a bf16 GEMM is no longer bound by memory", _rows_to_fill),
    Known("link_gb_per_s_one_way", "GB/s", "NVLink of one chip in one direction", _link),
    Known("ici_link_gb_per_s_one_way", "GB/s", "one (torus )?link in one direction", _torus_link),
    Known("nic_gb_per_s_one_way", "GB/s", "network of one chip in one direction", _nic),
    Known("node_network_gb_per_s_one_way", "GB/s", "network of a whole node in one direction", _node_network),
    Known("chips_per_node", "chips", "chips (of a node|that share the network ports)", _chips_per_node),
    Known("nodes", "nodes", "nodes (the group spans|of the sharding group)", _nodes_of_shards),
    Known("nodes", "nodes", "nodes that average gradients", _nodes_that_average),
    Known("nodes", "nodes", "nodes the model is split over", _nodes_of_model),
    Known("nodes", "nodes", "replicas of the sharded group", _replicas_of_shards),
    Known("shard_group", "devices", "sharding group inside one node", _shard_group),
    Known("tokens", "tokens", "tokens of a micro-batch on one (rank|chip)", _rank_tokens),
    Known("tokens", "tokens", "tokens of (one|the|a) micro-batch$", _micro_tokens),
    Known("micro_tokens", "tokens", "tokens of (one|the last|a) micro-batch on one chip", _rank_tokens),
    Known("tokens_per_device", "tokens", "tokens of one micro-batch on one chip", _rank_tokens),
    Known("sequence", "tokens", "length of one sequence", _sequence),
    Known("grad_accum", "micro-batches", "micro-batches a step", _accumulation),
    Known("micro_batches", "micro-batches", "micro-batches a step", _accumulation),
    Known("tp", "devices", "tensor-parallel degree( with sequence parallelism)?$", _more_than_one("tp")),
    Known("model_axis", "devices", "size of the model", _more_than_one("tp")),
    Known("pp", "stages", "pipeline stages", _more_than_one("pp")),
    Known("vp", "chunks", "virtual stages a device", _more_than_one("vp")),
    Known("cp", "devices", "context-parallel degree", _cp_across),
    Known("ep", "devices", "expert-parallel degree$", _more_than_one("ep")),
    Known("remote_frac", "fraction", "routed copies that leave the rank or node", _remote),
    Known("batch", "requests", "requests decoded together", _batch),
    Known("batch", "requests", "requests decoded at once by the group that shares the experts", _shared_batch),
    Known("context", "tokens", "mean tokens of a request in the cache", _context),
)
