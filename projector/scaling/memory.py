"""Which way memory moves when sizes are unknown: every resident part either grows, shrinks or stays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from projector.graph.columns import DTYPE_BYTES as BYTES
from projector.scaling.term import Column, Degrees, Move

WHOLE_PROMPT_TOKENS = 1e6  # stands for "no chunks": longer than any chunk
RECOMPUTE_KEEPS = {"none": 3.0, "selective": 2.0, "full": 1.0}  # only the order counts
TOLERANCE = 1e-9


def memory_direction(move: Move) -> NDArray[Any]:
    """less, same, more or unknown for every plan against the current one, shape [n].

    Each part is followed by how a device's share of it depends on the plan, with S the ranks weights are sharded over:
    weights 1 / (T P S), optimizer and gradients also over the data-parallel ranks from ZeRO stage 1 and 2 on, experts
    1 / (ep etp P), activations micro-batch / (C P) * micro-batches in flight (with and without 1 / T: sequence
    parallelism decides), recompute by order, KV cache rows * bytes / (T P). Parts that move apart give "unknown".
    """
    before, after = _parts(move, move.before), _parts(move, move.after)
    ratios = np.stack([part / before[name][0] for name, part in after.items()])
    grows = (ratios > 1 + TOLERANCE).any(axis=0)
    shrinks = (ratios < 1 - TOLERANCE).any(axis=0)
    # narrow GEMM operands can save activations and cost second copies of the weights
    unclear = (grows & shrinks) | (move.changed("compute_dtype") & ~np.bool_(move.serving))
    return np.select([unclear, grows, shrinks], ["unknown", "more", "less"], "same")


def _parts(move: Move, d: Degrees) -> dict[str, Column]:
    return _serving_parts(d) if move.serving else _training_parts(move, d)


def _training_parts(move: Move, d: Degrees) -> dict[str, Column]:
    plans = d.plans
    stage = np.asarray(plans.zero_stage)
    copies = np.where(plans.schedule == "dualpipe", 2.0, 1.0)
    weights = copies / (d.tp * d.pp * d.shard)
    over_data = 1.0 / (d.tp * d.pp * d.replicas)
    in_flight = np.minimum(d.rounds, d.pp) / d.pp * (1.0 + (d.pp - 1.0) / (d.pp * d.vp) * (d.vp > 1))
    # DualPipe holds one micro-batch more than it has stages, of one of its two stages each
    in_flight = np.where(plans.schedule == "dualpipe", np.minimum(d.rounds, d.pp + 1.0) / d.pp, in_flight)
    rows = d.micro_batch / d.cp * in_flight
    keeps = np.select([plans.recompute == mode for mode in RECOMPUTE_KEEPS], list(RECOMPUTE_KEEPS.values()))
    parts = {
        "weights": weights,
        "gradients": np.where((stage >= 2) & (d.shard <= 1), over_data, weights),
        "optimizer": np.where((stage >= 1) & (d.shard <= 1), over_data, weights),
        "sharded_activations": rows / d.tp,
        "whole_activations": rows / np.where(plans.sp, d.tp, 1.0),
        "kept_activations": keeps,
    }
    return parts | _expert_parts(move, d)


def _serving_parts(d: Degrees) -> dict[str, Column]:
    plans = d.plans
    shard = 1.0 / (d.tp * d.pp)
    chunk = np.asarray(plans.chunked_prefill_tokens)
    cache = np.asarray(plans.max_num_seqs) / d.attention_dp * shard
    return {
        "weights": shard * _operand_bytes(plans.weight_dtype),
        "experts": _operand_bytes(plans.weight_dtype) / (d.ep * d.etp * d.pp),
        "kv_cache": cache * _operand_bytes(plans.kv_cache_dtype),
        "prefill": np.where(chunk > 0, chunk, WHOLE_PROMPT_TOKENS) / d.tp,
    }


def _expert_parts(move: Move, d: Degrees) -> dict[str, Column]:
    """Only where experts are spread or sliced before or after: nothing says that an unknown model has any."""
    spread = move.current.ep * move.current.etp > 1 or bool(np.any(move.after.ep * move.after.etp > 1))
    return {"experts": 1.0 / (d.ep * d.etp * d.pp)} if spread else {}


def _operand_bytes(dtypes: NDArray[Any]) -> Column:
    return np.array([BYTES[str(dtype)] for dtype in dtypes])
