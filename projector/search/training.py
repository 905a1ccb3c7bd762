"""What a training plan can change beside its layout: sharding, sequence parallelism, batch, schedule, recompute.

- sharding: weights replicated with the optimizer replicated or sharded (ZeRO 0, 1), sharded over all of dp, or over
  the part of dp inside a fast domain or slice (hybrid); ZeRO 2 only where the current plan or a constraint names it
- micro-batch: powers of two; gradient accumulation follows from the global batch
- interleaving: chunk counts up to MOST_VIRTUAL_STAGES a device that cut the layers, or the layers with embedding and
  head, into equal chunks
- sequence parallelism wherever tp > 1 and the sequence allows it
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from projector.cost.stages import ends_count_as_layers
from projector.errors import InvalidDescription
from projector.rules.slices import slice_count
from projector.search.factors import divisors
from projector.search.layouts import layout_rows
from projector.search.menu import Search
from projector.search.rows import Form, Rows, branch, keep, length
from projector.specs.architecture import ModelArchitecture

AXES = ("dp", "cp", "tp", "pp")
MICRO_BATCHES = (1, 2, 4, 8, 16)
MOST_VIRTUAL_STAGES = 8

# What is left out, one step after the other, while the space is too large.
NARROWINGS = (
    "tensor-parallel overlap is left as it is",
    "recompute of some layers and of single blocks is left out",
    "interleaving is reduced to the fewest or the most chunks a device",
    "micro-batches above 4 are left out",
    "experts both spread and sliced are left out",
    "hybrid sharding is left out",
    "micro-batches above 2 are left out",
    "selective recompute is left out",
)


def training_layouts(search: Search, narrowed: int) -> Rows:
    """The layouts alone, simplest first. narrowed: how many of NARROWINGS apply."""
    return layout_rows(search, AXES, mixed_experts=narrowed < 5)


def training_rows(search: Search, rows: Rows, narrowed: int, most: int | None) -> Rows | None:
    """Every combination on these layouts, before the legality of the whole plan, in the order of the layouts.

    None as soon as more than `most` rows stand. narrowed: how many of NARROWINGS apply.
    """
    rows = _with_micro_batches(search, rows, 2 if narrowed >= 7 else 4 if narrowed >= 4 else max(MICRO_BATCHES))
    rows = _with_sequence_parallelism(search, rows)
    rows = _with_sharding(search, rows, hybrid=narrowed < 6)
    rows = _with_schedules(search, rows, few=narrowed >= 3)
    rows = _with_stage_lengths(search, rows)
    forms = _recompute_forms(search, rows, selective=narrowed < 8, partial=narrowed < 2)
    if most is not None and length(rows) * len(forms) > most:
        return None
    rows = branch(rows, forms)
    choices: dict[str, tuple[Any, ...]] = {
        "compute_dtype": search.menu("compute_dtype", _dtypes(search)),
        "overlap_grad_reduce": search.menu("overlap_grad_reduce", (True,)),
        "overlap_param_gather": search.menu("overlap_param_gather", (True,)),
    }
    for field, values in choices.items():
        if most is not None and length(rows) * len(values) > most:
            return None
        rows = branch(rows, [{field: value} for value in values])
    rows = _with_tp_overlap(search, rows, vary=narrowed < 1)
    return None if most is not None and length(rows) > most else rows


def sequences_per_step(search: Search) -> int:
    """The global batch in sequences: stated, or that of the current plan. InvalidDescription without either."""
    if search.workload.global_batch is not None:
        return search.workload.global_batch
    if search.current is None:
        raise InvalidDescription(
            "plans cannot be laid out without the global batch", hint="state workload.global_batch or current_plan"
        )
    return search.current.dp * search.current.micro_batch * search.current.grad_accum


def _dtypes(search: Search) -> tuple[str, ...]:
    if not search.constraints.allow_numerics_changes or search.hardware is None:
        return ()
    return tuple(dtype for dtype in ("bf16", "fp8") if dtype in search.hardware.peak_flop_per_s)


def _with_micro_batches(search: Search, rows: Rows, largest: int) -> Rows:
    sequences = sequences_per_step(search)
    rows = branch(rows, _micro_batch_forms(search, rows, sequences, largest))
    share = rows["dp"] * rows["micro_batch"]
    rows = keep(rows, sequences % share == 0)
    rows["grad_accum"] = sequences // (rows["dp"] * rows["micro_batch"])
    return keep(rows, search.kept(rows))


def _micro_batch_forms(search: Search, rows: Rows, sequences: int, largest: int) -> list[Form]:
    """What a rank pushes through at once: what is left of its share where the number of micro-batches is fixed."""
    steps, fixed = search.constraints.fixed.get("grad_accum"), "micro_batch" in search.constraints.fixed
    if steps is not None and not fixed:
        return [{"micro_batch": np.maximum(sequences // (rows["dp"] * int(steps)), 1)}]
    sizes = search.menu("micro_batch", [size for size in MICRO_BATCHES if size <= largest])
    return [{"micro_batch": size} for size in sizes]


def _with_sequence_parallelism(search: Search, rows: Rows) -> Rows:
    possible = rows["tp"] > 1
    if search.workload.seq_len is not None:
        possible &= search.workload.seq_len % (rows["cp"] * rows["tp"]) == 0
    values = search.menu("sp", (True,))
    return branch(rows, [{"sp": possible & bool(value)} for value in values])


def _with_sharding(search: Search, rows: Rows, *, hybrid: bool) -> Rows:
    stages = [stage for stage in search.menu("zero_stage", (0, 1)) if stage != 3]
    # groups inside a fast domain or slice first: a tie is broken in their favour
    groups = [*([_local_group(search, rows)] if hybrid else []), rows["dp"], *search.menu("fsdp", ())]
    forms: list[Form] = [{"fsdp": 1, "zero_stage": stage} for stage in stages]
    forms += [{"fsdp": group, "zero_stage": np.where(np.asarray(group) > 1, 3, 0)} for group in groups]
    rows = branch(rows, forms)
    inert = (rows["zero_stage"] > 0) & (rows["dp"] * rows["cp"] == 1)
    return keep(rows, (rows["dp"] % rows["fsdp"] == 0) & ~inert & search.kept(rows))


def _local_group(search: Search, rows: Rows) -> NDArray[np.int64]:
    """Data-parallel ranks inside one fast domain (GPU) or slice (torus), where that splits dp evenly; else 1."""
    devices = search.domain_devices or search.devices // slice_count(search.cluster, search.hardware)
    inner = rows["tp"] * rows["cp"]
    group = np.maximum(devices // inner, 1)
    fits = (devices % inner == 0) & (rows["dp"] % group == 0)
    local: NDArray[np.int64] = np.where(fits, group, 1)
    return local


def _with_schedules(search: Search, rows: Rows, *, few: bool) -> Rows:
    chunks = search.menu("vp", (1, *_chunk_counts(search, few=few)))
    rows = branch(rows, [{"vp": count} for count in chunks])
    interleaved = rows["vp"] > 1
    possible = (rows["pp"] > 1) & (rows["grad_accum"] % rows["pp"] == 0)
    if search.architecture is not None:
        layers, parts = search.architecture.layers, rows["pp"] * rows["vp"]
        given = (rows["vp"] == search.base.vp) & (rows["pp"] == search.base.pp)
        possible &= (layers % parts == 0) | ends_count_as_layers(layers, parts) | given
    rows = keep(rows, ~interleaved | possible)
    # other orders only where the current plan or a constraint has one: few stacks run them
    usual = np.where(rows["vp"] > 1, "interleaved", "1f1b")
    others = [name for name in search.menu("schedule", ()) if name not in ("1f1b", "interleaved")]
    plain = (rows["vp"] == 1) & (rows["pp"] > 1)
    return branch(rows, [{"schedule": usual}, *({"schedule": np.where(plain, name, usual)} for name in others)])


def _with_stage_lengths(search: Search, rows: Rows) -> Rows:
    """First and last stages of their own length only where the current plan or a constraint has them."""
    for field in ("first_stage_layers", "last_stage_layers"):
        values = search.menu(field, (0,))
        if values != (0,):
            rows = branch(rows, [{field: np.where(rows["pp"] > 1, value, 0)} for value in values])
    return rows


def _chunk_counts(search: Search, *, few: bool) -> tuple[int, ...]:
    if search.architecture is None:
        return ()
    layers = search.architecture.layers
    dividing = sorted({*divisors(layers), *divisors(layers + 2)})
    counts = tuple(count for count in dividing if 1 < count <= MOST_VIRTUAL_STAGES)
    return tuple(dict.fromkeys((*counts[:1], *counts[-1:]))) if few else counts


def _recompute_forms(search: Search, rows: Rows, *, selective: bool, partial: bool) -> list[Form]:
    """Recompute from nothing to everything; partial: also of all MLPs and experts, and of half of the layers."""
    modes = search.menu("recompute", ("none", "selective", "full") if selective else ("none", "full"))
    modules = search.menu("recompute_modules", ("", *_mlp_modules(search.architecture)) if partial else ("",))
    layers: tuple[int, ...] = search.menu("recompute_layers", (0,))
    forms: list[Form] = []
    for mode in modes:
        if mode == "none":
            forms.append({"recompute": mode, "recompute_modules": "", "recompute_layers": 0})
        for named in modules if mode == "selective" else ():
            forms += [{"recompute": mode, "recompute_modules": named, "recompute_layers": each} for each in layers]
        if mode == "full":
            some: list[NDArray[np.int64] | int] = [*_half_of_a_stage(search, rows, partial), *layers]
            forms += [{"recompute": mode, "recompute_modules": "", "recompute_layers": each} for each in some]
    return forms


def _half_of_a_stage(search: Search, rows: Rows, partial: bool) -> tuple[NDArray[np.int64], ...]:
    if not partial or search.architecture is None or "recompute_layers" in search.constraints.fixed:
        return ()
    return (-(-search.architecture.layers // rows["pp"]) // 2,)


def _mlp_modules(model: ModelArchitecture | None) -> tuple[str, ...]:
    """The modules that hold what follows attention in the model's layers."""
    if model is None:
        return ()
    dense, experts = model.moe_layers < model.layers, model.moe_layers > 0
    return ("+".join([*(["mlp"] if dense else []), *(["moe"] if experts else [])]),)


def _with_tp_overlap(search: Search, rows: Rows, *, vary: bool) -> Rows:
    values = search.menu("overlap_tp", (False, True) if vary else ())
    return branch(rows, [{"overlap_tp": (rows["tp"] > 1) & bool(value)} for value in values])
