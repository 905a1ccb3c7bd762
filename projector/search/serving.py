"""What a serving plan can change beside its layout: batch, prefill chunk, storage types, graph capture.

- requests an attention rank decodes at once: powers of two up to what the stated concurrency can fill
- prefill chunk: 512 to 8192 tokens a step
- weights and KV cache in fp8 or fp4 only where numerics may change; graph capture on GPUs
"""

from typing import Any

import numpy as np

from projector.search.layouts import layout_rows
from projector.search.menu import Search
from projector.search.rows import Form, Rows, branch, keep, length

AXES = ("dp", "tp", "pp")
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
# with a stated concurrency fewer seats only make requests wait
FEWEST_SEATS = 8
CHUNKS = (512, 2048, 8192)

NARROWINGS = (
    "prefill chunks are left as they are",
    "engine batches are reduced to every fourth power of two",
)


def serving_layouts(search: Search, _narrowed: int) -> Rows:
    """The layouts alone, simplest first; nothing of them is ever narrowed."""
    return layout_rows(search, AXES)


def serving_rows(search: Search, rows: Rows, narrowed: int, most: int | None) -> Rows | None:
    """Every combination on these layouts, before the legality of the whole plan, in the order of the layouts.

    None as soon as more than `most` rows stand. narrowed: how many of NARROWINGS apply.
    """
    rows = _with_batches(search, rows, BATCHES if narrowed < 2 else BATCHES[::2])
    rows = branch(rows, _storage_forms(search))
    choices: dict[str, tuple[Any, ...]] = {
        "kv_cache_dtype": search.menu("kv_cache_dtype", ("fp8",) if search.constraints.allow_numerics_changes else ()),
        "chunked_prefill_tokens": search.menu("chunked_prefill_tokens", CHUNKS if narrowed < 1 else ()),
        "cuda_graphs": search.menu("cuda_graphs", (True,) if _has_graphs(search) else ()),
    }
    for field, values in choices.items():
        if most is not None and length(rows) * len(values) > most:
            return None
        rows = branch(rows, [{field: value} for value in values])
    return rows


def _has_graphs(search: Search) -> bool:
    return search.hardware is None or search.hardware.kind == "gpu"


def _with_batches(search: Search, rows: Rows, sizes: tuple[int, ...]) -> Rows:
    named = search.menu("max_num_seqs", ())
    fixed = "max_num_seqs" in search.constraints.fixed
    ranks = rows["attention_dp"]
    rows = branch(
        rows,
        [{"max_num_seqs": size * ranks} for size in (() if fixed else sizes)] + [{"max_num_seqs": v} for v in named],
    )
    kept = search.kept({"max_num_seqs": rows["max_num_seqs"]})
    if search.workload.concurrency is not None and not fixed:
        share = np.ceil(search.workload.concurrency * rows["attention_dp"] / rows["dp"])
        filled = 2.0 ** np.ceil(np.log2(np.maximum(share, FEWEST_SEATS)))
        seats = rows["max_num_seqs"]
        kept &= ((seats >= FEWEST_SEATS) & (seats <= filled)) | np.isin(seats, named)
    return keep(rows, kept)


def _storage_forms(search: Search) -> list[Form]:
    """(weight_dtype, compute_dtype): a narrow weight is computed with in its own type where the chip offers that."""
    base = search.base
    fixed = search.constraints.fixed
    weights = ("fp8", "fp4") if search.constraints.allow_numerics_changes else ()
    offered = () if search.hardware is None else tuple(search.hardware.peak_flop_per_s)
    forms: list[Form] = []
    for weight in search.menu("weight_dtype", weights):
        unchanged = weight == base.weight_dtype
        computed = base.compute_dtype if unchanged or weight not in offered else weight
        forms.append({"weight_dtype": weight, "compute_dtype": fixed.get("compute_dtype", computed)})
    return forms
