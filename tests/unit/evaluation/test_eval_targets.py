"""What a row is compared with, and in which convention its FLOP/s are read."""

import pytest
from evaluation_examples import row

from agents.evaluation.architecture import architecture_of
from agents.evaluation.refusal import Refused
from agents.evaluation.targets import DERIVED, FLOP_RATE, MFU, STEP_TIME, TOKENS, target_of
from projector.catalog import chip
from projector.model_flop import model_flop_per_token

TOKENS_A_STEP = 4096 * 64


def target(**changes):
    one = row(**changes)
    return target_of(one, architecture_of(one.arch, one.model, one.source), one.seq_len or 0, chip(one.chip))


def test_the_first_printed_figure_counts():
    everything = {"step_time_s": 2.0, "tokens_per_s_per_chip": 40_000, "mfu": 0.4, "tflops_per_chip": 400}
    assert target(measured=everything).kind == STEP_TIME
    assert target(measured=everything | {"step_time_s": None}).kind == TOKENS
    assert target(measured={"tokens_per_s_per_chip": None, "mfu": 0.4}, derived={"step_time_s": 2.0}).kind == DERIVED


def test_a_step_time_is_spread_over_its_tokens_and_a_rate_over_the_chips():
    assert target(measured={"step_time_s": 2.0}).s_per_token == 2.0 / TOKENS_A_STEP
    assert target(measured={"tokens_per_s_per_chip": 1000}).s_per_token == 1 / 8000


def test_a_rate_needs_no_global_batch_and_a_step_time_does():
    assert target(measured={"step_time_s": 2.0}, global_batch=None).kind == TOKENS
    with pytest.raises(Refused, match="a step time without the global batch"):
        target(measured={"step_time_s": 2.0, "tokens_per_s_per_chip": None}, global_batch=None)


def flop_of(convention: str | None, recompute: str = "none", **measured):
    one = row(adopted={"recompute": recompute})
    whole = model_flop_per_token(architecture_of(one.arch, one.model, one.source), 4096)
    found = target(
        measured={"tokens_per_s_per_chip": None, **measured},
        flops_convention=convention,
        adopted={"recompute": recompute},
    )
    return found, whole


def test_model_flop_count_attention_whole_and_mfu_is_against_the_16_bit_peak():
    by_mfu, whole = flop_of("model FLOPs", mfu=0.5)
    assert by_mfu.kind == MFU
    assert by_mfu.s_per_token == pytest.approx(whole / (0.5 * chip("h100").peak_flop_per_s["bf16"].value * 8))
    by_rate, _ = flop_of("model FLOPs: 3*(2N*s + 4*L*d*s^2) per sequence (non-causal attention)", tflops_per_chip=400)
    assert by_rate.kind == FLOP_RATE
    assert by_rate.s_per_token == pytest.approx(whole / (400e12 * 8))


def test_megatron_core_counts_half_of_the_attention():
    causal, whole = flop_of("model TFLOP/s/GPU", tflops_per_chip=400)
    attention = 6 * 16 * (128 + 128) * 16 * 4096
    assert causal.s_per_token * 400e12 * 8 == pytest.approx(whole - attention / 2)


def test_hardware_flop_count_the_recompute_the_row_states():
    full, _ = flop_of("hardware FLOPs incl. recompute", recompute="full", tflops_per_chip=400)
    none, _ = flop_of("hardware FLOPs incl. recompute", recompute="none", tflops_per_chip=400)
    assert full.s_per_token / none.s_per_token == pytest.approx(96 / 72)
    with pytest.raises(Refused, match="without the recompute"):
        flop_of("hardware FLOPs incl. recompute", recompute="custom", tflops_per_chip=400)


def test_an_unknown_convention_is_a_reason():
    with pytest.raises(Refused, match="convention that is not known: banana tflop/s"):
        flop_of("Banana TFLOP/s", tflops_per_chip=400)


def test_a_row_without_any_speed_has_no_target():
    assert target(measured={"tokens_per_s_per_chip": None, "mem_gb_per_chip": 40}) is None
