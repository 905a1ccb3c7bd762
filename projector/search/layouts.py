"""Layouts: how the devices are laid out along axes, over requests and over experts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from projector.legality import legal_mask
from projector.rules import RULES
from projector.search.factors import divisors, ordered_factorisations
from projector.search.menu import Search
from projector.search.pools import Pool, pool_devices
from projector.search.rows import Form, Rows, branch, keep, length
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch

# A ring hides its exchange behind attention only while a rank keeps a long piece of the sequence.
FEWEST_TOKENS_A_CP_RANK = 4096

# What an engine has whatever its layout, what it has with tensor parallelism, and with experts spread over ranks.
ENGINE_FIELDS = (
    "cuda_graph_mode", "expert_dtype", "max_batched_tokens", "kv_block_tokens", "hbm_frac", "fused_kernels",
    "attention_backend", "speculation", "speculative_tokens",
)  # fmt: skip
TP_FIELDS = ("tp_all_reduce", "quick_reduce", "fuse_all_reduce_norm")
EP_FIELDS = ("expert_all_to_all", "redundant_experts", "expert_dispatch", "overlap_ep")

# Rules that read nothing but a layout, so that a plan breaking one stays broken whatever its other fields are.
LAYOUT_RULES = tuple(
    rule
    for rule in RULES
    if rule.needs_model or rule.name in {"slice_boundary", "context_chunks", "experts_inside_engine"}
)


def layout_rows(search: Search, axes: Sequence[str], *, mixed_experts: bool = True, pool: Pool | None = None) -> Rows:
    """Every legal assignment of the devices to `axes`, of ranks to requests (serving) and of experts to devices; of
    the devices that a prefill pool leaves, where one is given.

    Columns: the axes, ep, etp and in serving attention_dp. mixed_experts: whether experts may be both spread and
    sliced. LAYOUT_RULES are applied here, long before the rest is crossed with the rows. Simplest first, so that a
    stable sort by any score breaks ties in favour of data parallelism, then of small tp.
    """
    taken = 0 if pool is None else pool_devices(pool)
    factors = ordered_factorisations(search.devices - taken, len(axes))
    rows: Rows = {axis: factors[:, column] for column, axis in enumerate(axes)}
    simplest = np.lexsort([rows[axis] for axis in ("tp", "pp", "cp") if axis in rows])
    rows = {axis: column[simplest] for axis, column in rows.items()}
    allowed = search.kept(rows)
    for axis in axes:
        allowed &= np.isin(rows[axis], search.menu(axis, _axis_options(search, axis)))
    rows = keep(rows, allowed)
    if search.workload.phase == "serving":
        rows = _with_attention_dp(search, rows)
        rows = _with_engine_experts(search, rows, mixed=mixed_experts)
        rows = rows if pool is None else branch(rows, [pool])
    else:
        rows = _with_experts(search, rows, mixed=mixed_experts)
    legal = legal_mask(
        as_batch(search, rows),
        search.workload,
        search.architecture,
        search.cluster,
        search.hardware,
        rules=LAYOUT_RULES,
    )
    return keep(rows, search.kept(rows) & legal)


def as_batch(search: Search, rows: Rows) -> PlanBatch:
    """The rows as plans of the workload's phase, with what no search varies."""
    columns: dict[str, Any] = {"phase": search.workload.phase, **_unvaried(search, rows), **rows}
    return PlanBatch.from_columns(length(rows), **columns)


def _unvaried(search: Search, rows: Rows) -> Rows:
    """Fields that no search varies, as a constraint or the current plan has them, where a layout has a use for them;
    none where all are as ever."""
    used = _used_in_training(search, rows) if search.workload.phase == "training" else _used_in_serving(rows)
    defaults = {field: ParallelismPlan.model_fields[field].default for field in used}
    values = {field: search.unvaried(field) for field in used}
    return {
        field: np.where(where, values[field], defaults[field])
        for field, where in used.items()
        if values[field] != defaults[field] and field not in rows
    }


def _used_in_training(search: Search, rows: Rows) -> dict[str, NDArray[np.bool_]]:
    accumulates = rows["grad_accum"] > 1 if "grad_accum" in rows else np.ones(length(rows), dtype=bool)
    shares = np.zeros(length(rows), dtype=bool)
    if "zero_stage" in rows:
        shares = np.isin(rows["zero_stage"], (1, 2)) & (rows["fsdp"] == 1)
    shard = int(search.unvaried("optimizer_shard"))
    return {
        "cp_kind": rows["cp"] > 1,
        "expert_dispatch": rows["ep"] > 1,
        "overlap_ep": (rows["ep"] > 1) & accumulates,
        "optimizer_shard": shares & (rows["dp"] * rows["cp"] % max(shard, 1) == 0),
        "optimizer": np.ones(length(rows), dtype=bool),
        "offload_optimizer": np.ones(length(rows), dtype=bool),
        "offload_activations": np.ones(length(rows), dtype=bool),
    }


def _used_in_serving(rows: Rows) -> dict[str, NDArray[np.bool_]]:
    everywhere = np.ones(length(rows), dtype=bool)
    pool = rows["prefill_replicas"] > 0 if "prefill_replicas" in rows else ~everywhere
    return {
        **dict.fromkeys(ENGINE_FIELDS, everywhere),
        **dict.fromkeys(TP_FIELDS, rows["tp"] > 1),
        **dict.fromkeys(EP_FIELDS, rows["ep"] > 1),
        "kv_transfer": pool,
    }


def _axis_options(search: Search, axis: str) -> tuple[int, ...]:
    every = divisors(search.devices)
    constrained = axis in search.constraints.fixed or axis in search.constraints.bounds
    used = getattr(search.base, axis)
    if constrained:
        return every
    if axis == "tp" and search.domain_devices is not None and used <= search.domain_devices:
        return tuple(degree for degree in every if degree <= search.domain_devices)
    if axis == "cp":
        return tuple(degree for degree in every if not short_of_tokens(search, degree))
    if axis == "pp" and search.architecture is None:
        return divisors(used)
    if axis == "pp" and used == 1 and _on_torus(search):
        return (1,)
    return every


def short_of_tokens(search: Search, cp: int) -> bool:
    """Whether so many context ranks leave each under FEWEST_TOKENS_A_CP_RANK, and under what a rank of the current plan
    has; never where the length is unknown.
    """
    seq_len = search.workload.seq_len
    return cp > search.base.cp and seq_len is not None and seq_len < FEWEST_TOKENS_A_CP_RANK * cp


def _on_torus(search: Search) -> bool:
    return search.hardware is not None and search.hardware.intra.kind == "torus"


def _with_attention_dp(search: Search, rows: Rows) -> Rows:
    moe = search.architecture is not None and search.architecture.is_moe
    degrees = search.menu("attention_dp", divisors(search.devices) if moe else (1,))
    rows = branch(rows, [{"attention_dp": degree} for degree in degrees])
    return keep(rows, rows["dp"] % rows["attention_dp"] == 0)


def _with_engine_experts(search: Search, rows: Rows, *, mixed: bool) -> Rows:
    """Experts over all ranks of an engine, which is what engines launch: whole ones spread (ep), each in slices (etp),
    or groups of both. What the current plan or the constraints have stands beside these.

    vLLM spreads or slices over the whole engine; SGLang (ep_size) and TensorRT-LLM (moe_ep * moe_tp) also mix.
    """
    model, base, fixed = search.architecture, search.base, search.constraints.fixed
    if model is not None and not model.is_moe:
        return branch(rows, [{"ep": 1, "etp": 1}])
    ranks = rows["attention_dp"] * rows["tp"]
    forms: list[Form] = [{"ep": fixed.get("ep", base.ep), "etp": fixed.get("etp", base.etp)}]
    if model is not None:
        degrees = search.menu("ep", divisors(model.experts))
        forms += [{"ep": np.gcd(degree, ranks), "etp": ranks // np.gcd(degree, ranks)} for degree in degrees]
    rows = branch(rows, forms)
    ranks = rows["attention_dp"] * rows["tp"]
    named = search.current is not None or {"ep", "etp"} <= fixed.keys()
    stated = named & (rows["ep"] == forms[0]["ep"]) & (rows["etp"] == forms[0]["etp"])
    pure = (rows["ep"] == 1) | (rows["etp"] == 1) | stated
    whole = (rows["ep"] * rows["etp"] == ranks) | stated | (model is None)
    return keep(rows, whole & (pure | mixed))


def _with_experts(search: Search, rows: Rows, *, mixed: bool) -> Rows:
    model, base = search.architecture, search.base
    if model is not None and not model.is_moe:
        return branch(rows, [{"ep": 1, "etp": 1}])
    forms: list[Form] = [{"ep": base.ep, "etp": base.etp}]
    if model is not None:
        degrees = search.menu("ep", divisors(model.experts))
        slices = [rows["tp"], 1, *search.menu("etp", ())]
        forms += [{"ep": degree, "etp": etp} for degree in degrees for etp in slices]
    rows = branch(rows, forms)
    shards = rows["ep"] * rows["etp"]
    data = rows["dp"] * rows.get("cp", 1) * rows["tp"]
    stated = (rows["ep"] == base.ep) & (rows["etp"] == base.etp) & (search.current is not None)
    pure = (rows["ep"] == 1) | (rows["etp"] == 1) | stated
    # with tp > 1 and unsharded experts every rank of the TP group would hold and compute all of them
    useful = (shards > 1) | (rows["tp"] == 1) | stated | (model is None)
    return keep(rows, (data % shards == 0) & useful & (pure | mixed))
