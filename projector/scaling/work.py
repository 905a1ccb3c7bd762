"""How the arithmetic of one device scales: the compute factor of a plan against the measured one."""

import numpy as np

from projector.breakdown import TimeBreakdown
from projector.graph.columns import DTYPE_BYTES as BYTES
from projector.scaling.term import Column, Move, Term
from projector.specs.hardware import HardwareProfile

# Assumed, each with its range: what cannot be read off a breakdown.
ATTENTION_SHARE = (0.0, 0.10, 0.35)  # of compute, where the trace does not tell kinds apart
GEMM_KINDS = frozenset({"gemm", "attention", "moe"})
EFFICIENCY_LOSS_A_DOUBLING = 0.06  # narrower GEMMs on either side of a layout move
WEIGHT_SHARE = 0.5  # of a decode step that reads weights
KV_SHARE = 0.25  # of a decode step that reads the KV cache
CHUNK_RANGE = (0.7, 1.5)  # another prefill chunk


def compute_factor(move: Move, measured: TimeBreakdown, hardware: HardwareProfile | None) -> Term:
    """Compute seconds of a device under each plan over the measured ones, shape [n].

    Training: f = (D / D') * (r' / r) * (P / P'), with D = dp * cp * tp * pp devices sharing a fixed global batch,
    r passes a step in units of a forward pass (3 without recompute, 4 with full, 3 + attention share with selective),
    P the peak of the compute type, which only the GEMM share of the time follows.
    Serving: see `_serving_factor`.
    Left out: padding, uneven stages, tile effects; the range grows by 6 % for each doubling a layout moves.
    """
    spread = EFFICIENCY_LOSS_A_DOUBLING * move.doublings
    if move.serving:
        return _serving_factor(move).widened(spread)
    share = Term.exact(move.before.devices / move.after.devices)
    return (share * _passes(move, measured) * _precision(move, measured, hardware)).widened(spread)


def row_factor(move: Move) -> Term:
    """Rows (requests) a rank of a serving plan works on over the measured ones.

    With a fixed number of requests in flight they follow dp / dp'; with engines full all the time they follow
    max_num_seqs' / max_num_seqs. Which of the two holds is unknown, so both bound the factor.
    """
    capacity = move.after.plans.max_num_seqs / float(move.current.max_num_seqs)
    return Term.between(move.before.dp / move.after.dp, capacity)


def _passes(move: Move, measured: TimeBreakdown) -> Term:
    low, middle, high = _attention_share(measured)
    before, after = move.current.recompute, move.after.plans.recompute

    def factor(share: float) -> Column:
        passes = {"none": 3.0, "selective": 3.0 + share, "full": 4.0}
        taken = np.select([after == mode for mode in passes], list(passes.values()))
        return taken / passes[before]

    ends = np.stack([factor(low), factor(middle), factor(high)])
    return Term(ends.min(axis=0), ends[1], ends.max(axis=0))


def _attention_share(measured: TimeBreakdown) -> tuple[float, float, float]:
    total = sum(kind.time_s for kind in measured.by_kind)
    if total <= 0:
        return ATTENTION_SHARE
    share = sum(kind.time_s for kind in measured.by_kind if kind.kind == "attention") / total
    return (share, share, share)


def _precision(move: Move, measured: TimeBreakdown, hardware: HardwareProfile | None) -> Term:
    """(1 - g) + g * P / P' for a GEMM share g of compute; between 1 and P / P' where kinds are not told apart."""
    one = np.ones(len(move.after.plans))
    if not move.changed("compute_dtype").any():
        return Term.exact(one)
    ratio = np.array(
        [_peak_ratio(move.current.compute_dtype, str(to), hardware) for to in move.after.plans.compute_dtype]
    )
    total = sum(kind.time_s for kind in measured.by_kind)
    if total <= 0:
        return Term.between(one, ratio)
    gemm = sum(kind.time_s for kind in measured.by_kind if kind.kind in GEMM_KINDS) / total
    # casts and small GEMMs eat part of the gain: the estimate takes two thirds of it
    full = 1.0 - gemm + gemm * ratio
    return Term(np.minimum(one, full), one + (full - one) * 2 / 3, np.maximum(one, full))


def _peak_ratio(before: str, after: str, hardware: HardwareProfile | None) -> float:
    peaks = {} if hardware is None else {str(dtype): figure.value for dtype, figure in hardware.peak_flop_per_s.items()}
    if before in peaks and after in peaks:
        return peaks[before] / peaks[after]
    return BYTES[after] / BYTES[before]


def _serving_factor(move: Move) -> Term:
    """A decode step reads its weight shard and works on its rows: between (tp * pp) / (tp' * pp') alone and that
    times the row factor; narrower weights or cache shorten the part of the step assumed to read them."""
    b, a, plans = move.before, move.after, move.after.plans
    shard = (b.tp * b.pp) / (a.tp * a.pp)
    rows = row_factor(move)
    one = np.ones_like(shard)
    factor = Term(np.minimum(one, rows.low), np.sqrt(rows.estimate), np.maximum(one, rows.high)).times(shard)
    weights = np.array([BYTES[str(dtype)] for dtype in plans.weight_dtype]) / BYTES[move.current.weight_dtype]
    cache = np.array([BYTES[str(dtype)] for dtype in plans.kv_cache_dtype]) / BYTES[move.current.kv_cache_dtype]
    factor = factor * _partly(weights, WEIGHT_SHARE) * _partly(cache, KV_SHARE)
    chunk = move.changed("chunked_prefill_tokens")
    mixed = Term(np.where(chunk, CHUNK_RANGE[0], 1.0), one, np.where(chunk, CHUNK_RANGE[1], 1.0))
    return factor * mixed


def _partly(ratio: Column, share: float) -> Term:
    one = np.ones_like(ratio)
    return Term(np.minimum(one, ratio), 1.0 - share * (1.0 - ratio), np.maximum(one, ratio))
