"""What limits kernels: the roofline where their work is known, the rows that matrix kernels see, or their kind."""

from dataclasses import dataclass
from typing import Literal

from agents.planning.signals import Signals
from agents.planning.work_evidence import limits_of
from projector.breakdown import OperatorKind
from projector.graph.columns import DTYPE_BYTES
from projector.specs.plan import ComputeDtype

Limiter = Literal["arithmetic", "hbm", "unresolved"]
Basis = Literal["roofline", "rows", "phase", "nothing"]

FEW_ROWS = 32  # below the ridge of every accelerator sold for this work: 75 to 600 FLOP/byte
MATRIX_KINDS: tuple[OperatorKind, ...] = ("gemm", "attention", "moe")
STREAMING_KINDS: tuple[OperatorKind, ...] = ("norm", "elementwise", "quantise", "embedding", "sampling", "optimizer")


@dataclass(frozen=True)
class MatrixLimit:
    """What limits matrix kernels of so many rows. intensity and ridge in FLOP/byte, only with basis "roofline"."""

    limiter: Limiter
    basis: Basis
    rows: float | None
    intensity_flop_per_byte: float | None = None
    ridge_flop_per_byte: float | None = None


@dataclass(frozen=True)
class KindLimits:
    """Parts of the time of one kind by what limits it, summing to 1; basis: what says so."""

    arithmetic: float
    memory: float
    unresolved: float
    basis: str


def kind_limits(signals: Signals, kind: OperatorKind, matrix: MatrixLimit, experts: MatrixLimit) -> KindLimits:
    """What limits the kernels of one kind: the roofline where the work is known, the kind for the rest."""
    known = limits_of(signals.work, kind)
    limiter = _limiter_by_kind(kind, matrix, experts)
    limit = experts if kind == "moe" else matrix
    by_kind = {
        "roofline": f"{limit.rows or 0:.0f} rows against the chip's ridge",
        "rows": f"{limit.rows or 0:.0f} rows: weights are read for few uses",
        "phase": "matrix kernels of training",
        "nothing": "neither rows of a pass nor a chip to compare with",
    }[limit.basis]
    if kind not in MATRIX_KINDS:
        by_kind = "pointwise kernels read and write" if limiter == "hbm" else "no rule says what they do"
    beside = "the chip's roofline" if signals.chip is not None else "the ridges of all chips, as this one is unknown,"
    told = [f"FLOP and bytes beside {beside} for {(1 - known.open) * 100:.0f} % of its time"] if known.open < 1 else []
    return KindLimits(
        arithmetic=known.arithmetic + (known.open if limiter == "arithmetic" else 0.0),
        memory=known.memory + (known.open if limiter == "hbm" else 0.0),
        unresolved=known.open if limiter == "unresolved" else 0.0,
        basis="; ".join([*told, by_kind] if known.open > 0.005 else told),
    )


def matrix_limits_known(signals: Signals) -> bool:
    """Whether the roofline says what limits at least half of the time of matrix kernels, or there are none."""
    shares = [(signals.kinds.get(kind, 0.0), limits_of(signals.work, kind).open) for kind in MATRIX_KINDS]
    return sum(share * part for share, part in shares) <= 0.5 * sum(share for share, _ in shares)


def _limiter_by_kind(kind: OperatorKind, matrix: MatrixLimit, experts: MatrixLimit) -> Limiter:
    """What limits kernels whose work is not known: pointwise ones read and write, of unknown kinds nobody can say."""
    if kind in MATRIX_KINDS:
        return (experts if kind == "moe" else matrix).limiter
    return "hbm" if kind in STREAMING_KINDS else "unresolved"


def row_limit(signals: Signals, rows: float | None) -> MatrixLimit:
    """Whether matrix kernels of `rows` rows are limited by arithmetic or by reading their weights.

    A GEMM of T rows against weights of b bytes a value does 2 T FLOP for every b bytes it reads, so at most 2 T / b
    FLOP/byte (activations left out); below the chip's ridge, peak FLOP/s over HBM bytes/s, bandwidth limits it. Without
    the chip only very few rows decide, and without rows the phase does: training passes are long, and decode and
    prefill of serving cannot be told apart.
    """
    chip = signals.chip
    dtype: ComputeDtype = signals.dtype or "bf16"
    if rows is not None and chip is not None and dtype in chip.peak_flop_per_s:
        intensity = 2 * rows / DTYPE_BYTES[dtype]
        ridge = chip.peak_flop_per_s[dtype].value / chip.hbm_bytes_per_s.value
        return MatrixLimit("hbm" if intensity < ridge else "arithmetic", "roofline", rows, intensity, ridge)
    if rows is not None and rows <= FEW_ROWS:
        return MatrixLimit("hbm", "rows", rows)
    if signals.phase == "training":
        return MatrixLimit("arithmetic", "phase", rows)
    return MatrixLimit("unresolved", "nothing", rows)
