"""Fused experts and grouped products."""

import pytest

from tests.unit.work.work_examples import BF16, FP8, FP32, known, work
from traces.work.moe import experts_read

ROUTED = ([512, 2], FP32)


def test_experts_read_by_an_even_router():
    assert experts_read(64, 16, 2) == 26  # 64 (1 - (62 / 64) ** 16) = 25.5
    assert experts_read(16, 512, 1) == 16
    assert experts_read(8, 1, 2) == 2
    assert experts_read(4, 3, 9) == 4


def test_a_gated_expert_is_three_products():
    found = known("vllm::rocm_aiter_fused_moe", ([512, 64], BF16), ([4, 256, 64], BF16), ([4, 64, 128], BF16), ROUTED)
    assert found.flop == 512 * 2 * 2 * (256 * 64 + 128 * 64)
    assert found.moved_bytes == (2 * 512 * 64 + 4 * (256 * 64 + 64 * 128)) * 2
    assert "4 of 4" in found.assumed


def test_four_bit_weights_hold_two_numbers_a_byte():
    weights = ([4, 256, 32], "unsigned char"), ([4, 64, 64], "unsigned char")
    found = known("vllm::fused_experts", ([512, 64], BF16), *weights, ROUTED)
    assert found.flop == 512 * 2 * 2 * (256 * 64 + 128 * 64)
    assert found.moved_bytes == 2 * 512 * 64 * 2 + 4 * (256 * 32 + 64 * 64)
    assert found.format == "bf16"


def test_fp8_experts_multiply_in_fp8():
    found = known("vllm::inplace_fused_experts", ([512, 64], BF16), ([4, 256, 64], FP8), ([4, 64, 128], FP8), ROUTED)
    assert found.format == "fp8"


@pytest.mark.parametrize("w2", [[4, 64, 100], [3, 64, 128], [4, 60, 128]])
def test_experts_that_do_not_fit_have_no_work(w2):
    assert work("vllm::fused_experts", ([512, 64], BF16), ([4, 256, 64], BF16), (w2, BF16), ROUTED) is None


def test_experts_whose_weights_are_not_inputs_are_unknown():
    assert work("vllm::moe_forward", ([888, 3072], BF16), ([888, 128], BF16), None) is None


def test_grouped_rows_meet_one_matrix_each():
    found = known("aten::_grouped_mm", ([512, 64], BF16), ([4, 64, 32], BF16), ([4], "int"))
    assert found.flop == 2 * 512 * 64 * 32
    assert found.moved_bytes == (512 * 64 + 4 * 64 * 32 + 512 * 32) * 2


def test_grouped_gradients_of_weights():
    found = known("aten::_grouped_mm", ([64, 512], BF16), ([512, 32], BF16), ([4], "int"))
    assert found.flop == 2 * 64 * 512 * 32
    assert found.moved_bytes == (64 * 512 + 512 * 32 + 4 * 64 * 32) * 2
