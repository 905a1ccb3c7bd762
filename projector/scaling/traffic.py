"""How the bytes a device sends along each axis scale with the mesh.

Volumes are relative: only their ratio between two plans is used, so the unknown sizes of the model cancel.
D = dp, C = cp, T = tp, P = pp, V = vp, m = micro-batches, R = D * C, S = ranks a copy of the weights is sharded over.
A step works on a fixed number of sequences, so a rank sees 1 / (D * C) of its tokens and holds 1 / P of the layers.

  tp    (T - 1) / T * c / (D * C * P)          all-reduces (or gather and scatter) of every layer's tokens;
                                               c = 4 a layer, 6 where full recompute repeats the forward pass
  cp    (C - 1) / C / (D * T * P)              keys and values of the other chunks, once round the ring
  data  S > 1: [3 m (S - 1) / S + 2 (R / S - 1) / (R / S) / S] / (T * P)
        else:  2 (R - 1) / R / (T * P)         weights gathered twice and gradients scattered for each micro-batch,
                                               replicas joined once; or one all-reduce of the gradients
  pp    V / (D * C) (over T with sp)           one boundary activation a micro-batch and chunk
  ep    (E - 1) / E * c / (D * C * P)          tokens to their experts and back (over T with sp)

Serving: tp, ep and attention data parallelism move the rows of a rank; cp and weight traffic do not exist.
Sources: Megatron-LM (arXiv:2104.04473), sequence parallelism (arXiv:2205.05198), ZeRO (arXiv:1910.02054), ring
attention (arXiv:2310.01889). Left out: padding, imbalance of experts, latency of many small messages.
"""

from typing import Literal

import numpy as np

from projector.scaling.term import Column, Degrees, Move
from projector.scaling.work import row_factor

Flow = Literal["tp", "cp", "data", "pp", "ep"]
FLOWS: tuple[Flow, ...] = ("tp", "cp", "data", "pp", "ep")


def volumes(move: Move) -> dict[Flow, tuple[Column, Column]]:
    """Relative volume of each flow under the current plan (shape [1]) and under each plan (shape [n])."""
    if move.serving:
        one = np.ones(1)
        before, after = _serving(move.before, one), _serving(move.after, row_factor(move).estimate)
    else:
        before, after = _training(move.before), _training(move.after)
    return {flow: (before[flow], after[flow]) for flow in FLOWS}


def spans(degrees: Degrees) -> dict[Flow, Column]:
    """Devices the groups of each flow reach across, tp innermost, then cp, dp and pp; shape [n]."""
    d = degrees
    inner = d.tp * d.cp
    return {
        "tp": d.tp,
        "cp": inner,
        "ep": d.ep * d.etp,
        "data": np.where(d.shard > 1, d.tp * d.shard, inner * d.dp),
        "pp": d.devices,
    }


def _remote(size: Column) -> Column:
    return (size - 1.0) / size


def _training(d: Degrees) -> dict[Flow, Column]:
    plans = d.plans
    replicas, share = d.replicas, 1.0 / (d.replicas * d.pp)
    layer_collectives = np.where(plans.recompute == "full", 6.0, 4.0)
    split_rows = np.where(plans.sp, d.tp, 1.0)
    copies = replicas / d.shard
    sharded = 3.0 * d.rounds * _remote(d.shard) + 2.0 * _remote(copies) / d.shard
    data = np.where(d.shard > 1, sharded, 2.0 * _remote(replicas)) / (d.tp * d.pp)
    return {
        "tp": _remote(d.tp) * layer_collectives * share,
        "cp": _remote(d.cp) / (d.dp * d.tp * d.pp),
        "data": data,
        "pp": np.where(d.pp > 1, d.vp / (replicas * split_rows), 0.0),
        "ep": _remote(d.ep) * layer_collectives * share / split_rows,
    }


def _serving(d: Degrees, rows: Column) -> dict[Flow, Column]:
    share = rows / d.pp
    return {
        "tp": _remote(d.tp) * share,
        "cp": np.zeros_like(share),
        "data": _remote(d.attention_dp) * share,
        "pp": np.where(d.pp > 1, rows, 0.0),
        "ep": _remote(d.ep) * share,
    }
