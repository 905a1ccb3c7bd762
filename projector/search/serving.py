"""What a serving plan can change beside its layout, and which pools of prefill engines stand beside it.

Crossed with the layouts, in this order; what `projector.admissible` calls inert is never tried:
- requests an attention rank decodes at once: powers of two up to what the stated concurrency can fill
- weights, routed experts and KV cache in fp8 or fp4 only where numerics may change; graph capture on GPUs
- drafting with the prediction layers of the checkpoint; drafters that would have to be found or trained are not tried
- how tokens reach experts (ep > 1): as the stack does, or a copy a domain; halves of a batch that overlap the exchange
  (attention_dp > 1); copies of busy experts where the traffic states an imbalance
- all-reduces in 8 bit (tp > 1, AMD) where numerics may change
- prefill chunk: 512 to 8192 tokens a step
Every other field is as the current plan or a constraint has it: of those the default is the model's best, or they
trade what it does not see (`hbm_frac`: room for what else needs memory).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from projector.admissible import admissible
from projector.search.layouts import layout_rows
from projector.search.menu import Search
from projector.search.pools import pool_forms
from projector.search.rows import Form, Rows, branch, joined, keep, length

AXES = ("dp", "tp", "pp")
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
# with a stated concurrency fewer seats only make requests wait
FEWEST_SEATS = 8
CHUNKS = (512, 2048, 8192)
# more drafted tokens a step than this pay on no published checkpoint with prediction layers
DRAFTED = (1, 2, 3)

NARROWINGS = (
    "quantised all-reduces and halves that overlap are left as they are",
    "prefill pools take a half of the devices",
    "experts are spread or sliced, not both",
    "token dispatch and copies of experts are left as they are",
    "drafting is left as it is",
    "prefill chunks are left as they are",
    "there is no prefill pool but a stated one",
    "engine batches are reduced to every fourth power of two",
)
NO_SWITCHES, HALF_POOLS, PURE_EXPERTS, NO_EXCHANGE, NO_DRAFTS, NO_CHUNKS, NO_POOLS, FEW_BATCHES = range(
    1, len(NARROWINGS) + 1
)


def serving_layouts(search: Search, narrowed: int) -> Rows:
    """The layouts alone, simplest first: engines that do both, then those beside every prefill pool."""
    shares = () if narrowed >= NO_POOLS else (2,) if narrowed >= HALF_POOLS else (2, 4)
    mixed = narrowed < PURE_EXPERTS
    return joined([layout_rows(search, AXES, mixed_experts=mixed, pool=pool) for pool in pool_forms(search, shares)])


def serving_rows(search: Search, rows: Rows, narrowed: int, most: int | None) -> Rows | None:
    """Every combination on these layouts, before the legality of the whole plan, in the order of the layouts.

    None as soon as more than `most` rows stand. narrowed: how many of NARROWINGS apply.
    """
    rows = _with_batches(search, rows, BATCHES if narrowed < FEW_BATCHES else BATCHES[::2])
    rows = branch(rows, _storage_forms(search))
    for forms in _groups(search, narrowed):
        rows = _crossed(rows, forms)
        if most is not None and length(rows) > most:
            return None
    return rows


def _groups(search: Search, narrowed: int) -> Iterator[dict[str, tuple[Any, ...]]]:
    """Fields with the values to cross the rows with, one group after the other; several fields change together."""
    numerics = search.constraints.allow_numerics_changes
    yield {"kv_cache_dtype": search.menu("kv_cache_dtype", ("fp8",) if numerics else ())}
    yield {"cuda_graphs": search.menu("cuda_graphs", (True,) if _has_graphs(search) else ())}
    yield _drafting(search, narrowed)
    exchange = narrowed < NO_EXCHANGE
    yield {"expert_dispatch": search.menu("expert_dispatch", _worth(search, "expert_dispatch", ("deepep",), exchange))}
    imbalanced = (search.workload.expert_imbalance or 1.0) > 1.0
    copies = _worth(search, "redundant_experts", (32,), exchange and imbalanced)
    yield {"redundant_experts": search.menu("redundant_experts", copies)}
    switches = narrowed < NO_SWITCHES
    yield {"overlap_ep": search.menu("overlap_ep", _worth(search, "overlap_ep", (True,), switches))}
    yield {"quick_reduce": search.menu("quick_reduce", _worth(search, "quick_reduce", (True,), switches and numerics))}
    yield {"chunked_prefill_tokens": search.menu("chunked_prefill_tokens", CHUNKS if narrowed < NO_CHUNKS else ())}


def _worth(search: Search, field: str, values: tuple[Any, ...], wanted: bool) -> tuple[Any, ...]:
    """Those of the values that may be tried here; none where the group is left as it is or the field cannot matter."""
    if not wanted:
        return ()
    known = admissible(field, search.architecture, search.cluster, search.hardware, search.workload)
    return tuple(value for value in values if value in known.values)


def _drafting(search: Search, narrowed: int) -> dict[str, tuple[Any, ...]]:
    """(speculation, speculative_tokens) together: none, the plan's own, and the checkpoint's prediction layers."""
    base, fixed = search.base, search.constraints.fixed
    pairs: list[tuple[str, int]] = [(base.speculation, base.speculative_tokens)]
    own = search.architecture is not None and search.architecture.mtp_layers > 0
    if narrowed < NO_DRAFTS:
        pairs += [("none", 0), *(("mtp", count) for count in DRAFTED if own)]
    method = fixed.get("speculation")
    if method not in (None, "none"):
        counts = [fixed["speculative_tokens"]] if "speculative_tokens" in fixed else [*DRAFTED, base.speculative_tokens]
        pairs += [(str(method), int(count)) for count in counts if count]
    kept = [
        pair
        for pair in dict.fromkeys(pairs)
        if fixed.get("speculation", pair[0]) == pair[0] and fixed.get("speculative_tokens", pair[1]) == pair[1]
    ]
    return {"speculation": tuple(pair[0] for pair in kept), "speculative_tokens": tuple(pair[1] for pair in kept)}


def _crossed(rows: Rows, group: dict[str, tuple[Any, ...]]) -> Rows:
    """Every row once per value of the group, where the layout has a use for it; once at the plan's own elsewhere."""
    count = len(next(iter(group.values())))
    forms: list[Form] = [{field: values[place] for field, values in group.items()} for place in range(count)]
    if not forms:
        return keep(rows, np.zeros(length(rows), dtype=np.bool_))
    uses = {
        "expert_dispatch": rows["ep"] > 1,
        "redundant_experts": rows["ep"] > 1,
        "overlap_ep": (rows["ep"] > 1) & (rows["attention_dp"] > 1),
        "quick_reduce": rows["tp"] > 1,
    }
    field = next(iter(group))
    if field not in uses:
        return branch(rows, forms)
    return branch(rows, [{field: np.where(uses[field], form[field], OFF[field])} for form in forms])


# what a field is where a layout has no use for it
OFF: dict[str, Any] = {"expert_dispatch": "auto", "redundant_experts": 0, "overlap_ep": False, "quick_reduce": False}


def _has_graphs(search: Search) -> bool:
    return search.hardware is None or search.hardware.kind == "gpu"


def _with_batches(search: Search, rows: Rows, sizes: tuple[int, ...]) -> Rows:
    named = search.menu("max_num_seqs", ())
    fixed = "max_num_seqs" in search.constraints.fixed
    ranks = rows["attention_dp"]
    each: list[Form] = [{"max_num_seqs": size * ranks} for size in (() if fixed else sizes)]
    rows = branch(rows, each + [{"max_num_seqs": value} for value in named])
    kept = search.kept({"max_num_seqs": rows["max_num_seqs"]})
    if search.workload.concurrency is not None and not fixed:
        share = np.ceil(search.workload.concurrency * rows["attention_dp"] / rows["dp"])
        filled = 2.0 ** np.ceil(np.log2(np.maximum(share, FEWEST_SEATS)))
        seats = rows["max_num_seqs"]
        kept &= ((seats >= FEWEST_SEATS) & (seats <= filled)) | np.isin(seats, named)
    return keep(rows, kept)


def _storage_forms(search: Search) -> list[Form]:
    """(weight_dtype, compute_dtype, expert_dtype): a narrow weight is computed with in its own type where the chip
    offers that; routed experts may be stored in fp4 alone, where the chip multiplies it."""
    base = search.base
    fixed = search.constraints.fixed
    weights = ("fp8", "fp4") if search.constraints.allow_numerics_changes else ()
    offered = () if search.hardware is None else tuple(search.hardware.peak_flop_per_s)
    experts = _worth(search, "expert_dtype", ("fp4",), search.constraints.allow_numerics_changes)
    forms: list[Form] = []
    for weight in search.menu("weight_dtype", weights):
        unchanged = weight == base.weight_dtype
        computed = base.compute_dtype if unchanged or weight not in offered else weight
        computed = fixed.get("compute_dtype", computed)
        forms += [
            {"weight_dtype": weight, "compute_dtype": computed, "expert_dtype": expert}
            for expert in search.menu("expert_dtype", () if weight == "fp4" else experts)
        ]
    return forms
