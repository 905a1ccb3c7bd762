"""Matrix products: 2 M N K operations; A, B and C moved once."""

import pytest

from tests.unit.work.work_examples import BF16, FP8, FP16, FP32, known, work
from traces.work.call import Work

A, B = ([64, 32], BF16), ([32, 48], BF16)
# 2 * 64 * 48 * 32, and (64 * 32 + 32 * 48 + 64 * 48) * 2 bytes: what the framework's own counter says of it
FLOP, BYTES = 196_608, 13_312


def test_mm():
    assert work("aten::mm", A, B) == Work(FLOP, BYTES, "bf16")


def test_a_result_handed_over_is_not_read():
    assert work("aten::mm", A, B, ([64, 48], BF16)) == Work(FLOP, BYTES, "bf16")


def test_addmm_reads_the_bias():
    assert work("aten::addmm", ([48], BF16), A, B, "1", "1") == Work(FLOP, BYTES + 48 * 2, "bf16")


def test_linear_takes_weights_as_out_by_in():
    assert work("aten::linear", ([2, 32, 32], BF16), ([48, 32], BF16), None) == Work(FLOP, BYTES, "bf16")


def test_a_batch_multiplies_everything():
    assert work("aten::bmm", ([4, 8, 16], FP32), ([4, 16, 8], FP32)) == Work(8192, 4 * (128 + 128 + 64) * 4, "fp32")


def test_an_expanded_operand_is_read_once():
    found = known("aten::bmm", ([4, 8, 16], FP32), ([4, 16, 8], FP32), strides={0: [128, 16, 1], 1: [0, 8, 1]})
    assert found.moved_bytes == (4 * 128 + 128 + 4 * 64) * 4


def test_matmul_broadcasts_batches():
    found = known("aten::matmul", ([5, 1, 8, 16], FP16), ([3, 16, 4], FP16))
    assert (found.flop, found.moved_bytes) == (2 * 15 * 8 * 4 * 16, (5 * 128 + 3 * 64 + 15 * 32) * 2)


def test_matmul_of_vectors():
    assert known("aten::matmul", ([16], FP32), ([16], FP32)).flop == 32
    assert known("aten::mv", ([8, 16], FP32), ([16], FP32)).flop == 2 * 8 * 16


@pytest.mark.parametrize("right", [[33, 48], [33, 31]])
def test_shapes_that_do_not_multiply_have_no_work(right: list[int]):
    assert work("aten::mm", A, (right, BF16)) is None


def test_without_shapes_nothing_is_known():
    assert work("aten::mm") is None
    assert work("aten::mm", "", "") is None


def test_a_scaled_product_runs_in_fp8_and_states_its_result():
    literals = (None, None, "15", "True")
    found = known("aten::_scaled_mm", ([64, 32], FP8), ([32, 48], FP8), ([1], FP32), ([1], FP32), *literals)
    assert found == Work(FLOP, 64 * 32 + 32 * 48 + 64 * 48 * 2 + 8, "fp8")


def test_a_scaled_product_without_a_stated_result_says_what_is_assumed():
    found = known("aten::_scaled_mm", ([64, 32], FP8), ([32, 48], FP8), ([1], FP32), ([1], FP32))
    assert "16-bit" in found.assumed


def test_narrow_weights_are_multiplied_in_the_activations_format():
    assert known("aten::linear", ([64, 32], BF16), ([48, 32], FP8), None).format == "bf16"


def test_fp32_runs_in_tf32_where_the_kernel_says_so():
    found = known("aten::mm", ([64, 32], FP32), ([32, 48], FP32), kernel="cutlass_80_tensorop_s1688gemm_128x128")
    assert found.format == "tf32"


def test_a_library_writes_into_its_first_input():
    found = known(
        "_C::cutlass_scaled_mm", ([64, 48], BF16), ([64, 32], FP8), ([32, 48], FP8), ([64, 1], FP32), None, None
    )
    assert (found.flop, found.format, found.assumed) == (FLOP, "fp8", "")
    assert found.moved_bytes == 64 * 32 + 32 * 48 + 64 * 48 * 2 + 64 * 4


def test_a_library_that_takes_the_weight_first():
    assert known("_rocm_C::wvSplitK", ([48, 32], BF16), ([64, 32], BF16), "304").flop == FLOP


def test_four_bit_factors_are_two_an_element():
    packed = "c10::Float4_e2m1fn_x2"
    found = known(
        "aiter::gemm_a4w4_blockscale", ([64, 16], packed), ([48, 16], packed), ([64, 1], FP32), ([48, 1], FP32)
    )
    assert (found.flop, found.format) == (FLOP, "fp4")


def test_a_product_that_narrows_its_activations_runs_in_the_narrow_format():
    found = known("vllm::apply_w8a8_block_fp8_linear", ([64, 32], BF16), ([48, 32], FP8), "[128, 128]")
    assert (found.flop, found.format) == (FLOP, "fp8")


def test_marlin_states_its_sizes_as_literals():
    packed = ([2, 96], "int")
    found = known("_C::gptq_marlin_gemm", ([64, 32], FP16), None, packed, ([1, 48], FP16), "64", "48", "32", "True")
    assert found == Work(FLOP, 64 * 32 * 2 + 2 * 96 * 4 + 48 * 2 + 64 * 48 * 2, "fp16")


def test_sizes_no_device_holds_are_no_work():
    assert work("aten::mm", ([2**40, 2**40], BF16), ([2**40, 2**40], BF16)) is None
    assert work("aten::mm", ([-4, 32], BF16), ([32, 48], BF16)) is None
