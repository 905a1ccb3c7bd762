"""What a row is compared with: seconds a trained token over the whole machine, from the first figure that is printed.

In this order: step time, tokens/s per chip, a time or rate that was derived from printed figures, MFU or FLOP/s by the
convention of the source. A step time needs the global batch; rates do not.
"""

from collections.abc import Callable
from dataclasses import dataclass

from agents.evaluation.refusal import Refused
from agents.evaluation.rows import MeasuredRow
from projector.model_flop import attention_flop_per_token, model_flop_per_token
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import HardwareProfile

# FLOP a trained token, of (model, tokens a sequence, recompute mode as printed)
Convention = Callable[[ModelArchitecture, int, str | None], float]
STEP_TIME, TOKENS, DERIVED, MFU, FLOP_RATE = (
    "step time",
    "tokens/s per chip",
    "derived time or rate",
    "MFU",
    "FLOP/s per chip",
)
KINDS = (STEP_TIME, TOKENS, DERIVED, MFU, FLOP_RATE)


@dataclass(frozen=True)
class Target:
    """What a row measured, as seconds a token of the whole machine, and the kind of figure it came from."""

    kind: str
    s_per_token: float


def printed_target(row: MeasuredRow) -> Target | None:
    """The target of a row that prints a time or a token rate; None where it prints neither."""
    measured = row.measured
    tokens = None if row.seq_len is None or row.global_batch is None else row.seq_len * row.global_batch
    if measured.step_time_s is not None and tokens is not None:
        return Target(STEP_TIME, measured.step_time_s / tokens)
    if measured.tokens_per_s_per_chip is not None:
        return Target(TOKENS, 1.0 / (measured.tokens_per_s_per_chip * row.chips))
    if measured.derived_step_time_s is not None and tokens is not None:
        return Target(DERIVED, measured.derived_step_time_s / tokens)
    if measured.derived_tokens_per_s_per_chip is not None:
        return Target(DERIVED, 1.0 / (measured.derived_tokens_per_s_per_chip * row.chips))
    return None


def target_of(row: MeasuredRow, model: ModelArchitecture, seq_len: int, hardware: HardwareProfile) -> Target | None:
    """The target of a row; None where it printed no speed at all. Refused where a rate cannot be converted.

    MFU counts against the chip's dense 16-bit peak. Where both are printed FLOP/s count: they carry no peak.
    """
    printed = printed_target(row)
    measured = row.measured
    if printed is not None or (measured.mfu_frac is None and measured.flop_per_s_per_chip is None):
        if printed is None and measured.step_time_s is not None:
            raise Refused("a step time without the global batch")
        return printed
    flop = _flop_per_token(row, model, seq_len)
    if measured.flop_per_s_per_chip is not None:
        return Target(FLOP_RATE, flop / (measured.flop_per_s_per_chip * row.chips))
    peak = hardware.peak_flop_per_s.get("bf16")
    assert measured.mfu_frac is not None
    if peak is None:
        raise Refused("MFU on a chip without a 16-bit peak")
    return Target(MFU, flop / (measured.mfu_frac * peak.value * row.chips))


def _whole_attention(model: ModelArchitecture, seq_len: int, _: str | None) -> float:
    """PaLM's convention (arXiv:2204.02311, appendix B): attention whole, no recompute."""
    return model_flop_per_token(model, seq_len)


def _causal_attention(model: ModelArchitecture, seq_len: int, _: str | None) -> float:
    """Attention counted over the causal half, no recompute."""
    return model_flop_per_token(model, seq_len) - attention_flop_per_token(model, seq_len) / 2


def _with_recompute(model: ModelArchitecture, seq_len: int, recompute: str | None) -> float:
    """Hardware FLOP of a GPT, 96 l h^2 (1 + s / 6h + V / 16 l h) with full recompute, 72 without (eq. 3 of SC'21)."""
    if recompute not in ("full", "none"):
        raise Refused("hardware FLOP/s without the recompute they count")
    layers, h = model.layers, model.hidden_size
    factor = 96.0 if recompute == "full" else 72.0
    return factor * layers * h * h * (1 + seq_len / (6 * h) + model.vocab_size / (16 * layers * h))


# Parts of a stated convention, and what they mean. Checked on published rows that print FLOP/s and a time: whole
# attention within 3 % (MegaScale, llm-foundry, fms-fsdp, MaxText), causal within 1 % (Megatron-Core's MoE recipes).
CONVENTIONS: tuple[tuple[str, Convention], ...] = (
    ("hardware flop", _with_recompute),
    ("sc21 formula", _with_recompute),
    ("non-causal attention", _whole_attention),
    ("predate the july-2025 causal-attention halving", _whole_attention),
    ("causal", _causal_attention),
)
EXACT: dict[str, Convention] = {
    "model flops": _whole_attention,
    "model tflop/s/gpu": _causal_attention,
}


def _flop_per_token(row: MeasuredRow, model: ModelArchitecture, seq_len: int) -> float:
    stated = (row.flop_convention or "").lower().strip()
    convention = EXACT.get(stated) or next((meaning for part, meaning in CONVENTIONS if part in stated), None)
    if convention is None:
        raise Refused(f"FLOP/s or MFU alone, of a convention that is not known: {stated or 'not stated'}")
    return convention(model, seq_len, row.plan.recompute)
