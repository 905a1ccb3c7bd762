"""Pointwise operators, norms, reductions, look-ups and lists: bytes decide."""

import pytest

from tests.unit.work.work_examples import BF16, FP8, FP32, INT64, known, list_call, work
from traces.work.call import Work
from traces.work.table import work_of_call

X = ([4, 8], FP32)


def test_a_sum_of_two():
    assert work("aten::add", X, X, "1") == Work(32, 3 * 128, "vector")


def test_a_broadcast_operand_is_read_once():
    assert work("aten::mul", X, ([4, 1], FP32)) == Work(32, 128 + 16 + 128, "vector")


def test_the_wider_type_wins_but_not_that_of_a_single_number():
    assert known("aten::mul", X, ([4, 8], BF16)).moved_bytes == 128 + 64 + 128
    assert known("aten::mul", ([4, 8], BF16), ([], "double")).moved_bytes == 64 + 8 + 64


def test_a_result_handed_over_is_written_only():
    assert work("aten::add", X, X, "1", X) == Work(32, 3 * 128, "vector")


def test_a_repeated_dimension_is_read_once():
    found = known("aten::copy_", X, X, "False", strides={0: [8, 1], 1: [1, 0]})
    assert found.moved_bytes == 128 + 16


@pytest.mark.parametrize(
    ("name", "moved"),
    [("aten::mul_", 3 * 128), ("aten::copy_", 2 * 128), ("aten::add_", 3 * 128), ("aten::masked_fill_", 3 * 128)],
)
def test_in_place(name, moved):
    assert known(name, X, X).moved_bytes == moved


def test_fills_write_and_comparisons_answer_in_bytes():
    assert work("aten::fill_", X, "0.") == Work(0, 128, "vector")
    assert work("aten::eq", X, "1") == Work(32, 128 + 32, "vector")


def test_reductions_keep_what_is_not_named():
    assert known("aten::mean", X, "[-1]", "True", None).moved_bytes == 128 + 4 * 4
    assert known("aten::sum", X, None).moved_bytes == 128 + 4
    assert known("aten::argmax", X, "-1", "False").moved_bytes == 128 + 4 * 8
    assert known("aten::max", X, "1", "False").moved_bytes == 128 + 4 * 12
    assert known("aten::all", X).moved_bytes == 128 + 1


def test_softmax_and_its_gradient():
    assert work("aten::_softmax", X, "-1", "False") == Work(160, 256, "vector")
    assert work("aten::_softmax_backward_data", X, X, "-1", "6") == Work(128, 384, "vector")


def test_norms():
    weight = ([8], FP32)
    assert known("aten::native_layer_norm", X, "[8]", weight, weight).moved_bytes == 256 + 64
    assert known("_C::rms_norm", X, X, weight, "1e-6").moved_bytes == 256 + 32
    assert known("_C::fused_add_rms_norm", X, X, weight, "1e-6").moved_bytes == 512 + 32
    assert known("aiter::add_rmsnorm", X, X, X, X, weight, "1e-6").moved_bytes == 512 + 32
    mean = ([4, 1], FP32)
    assert known("aten::native_layer_norm_backward", X, X, "[8]", mean, mean, weight, weight).moved_bytes == 384 + 96


def test_look_ups_read_the_rows_they_need():
    table = ([1000, 8], BF16)
    assert known("aten::embedding", table, ([4], INT64)).moved_bytes == 2 * 4 * 16 + 32
    assert known("aten::index_select", table, "0", ([4], INT64)).moved_bytes == 2 * 4 * 16 + 32
    assert work("aten::index_select", table, "1", ([4], INT64)) is None
    wide = known("aten::gather", table, "0", ([4, 8], INT64), "False", strides={0: [8, 1], 2: [1, 0]})
    assert wide.moved_bytes == 2 * 32 * 2 + 4 * 8
    assert known("aten::embedding", ([2, 8], BF16), ([4], INT64)).moved_bytes == (2 + 4) * 16 + 32


def test_a_serving_engine_s_own():
    gate = known("_C::silu_and_mul", ([4, 8], BF16), ([4, 16], BF16))
    assert gate.moved_bytes == 4 * 16 * 2 + 4 * 8 * 2
    heads = known(
        "_C::rotary_embedding", ([4], INT64), ([4, 64], BF16), ([4, 16], BF16), "16", ([99, 16], BF16), "True"
    )
    assert heads.moved_bytes == 2 * 4 * 80 * 2 + 32
    key, cache = ([4, 2, 8], BF16), ([999, 16, 2, 8], "unsigned char")
    stored = known("_C_cache_ops::reshape_and_cache_flash", key, key, cache, cache, ([4], INT64))
    assert stored.moved_bytes == 2 * 4 * 16 * (2 + 1) + 32
    narrowed = known("_C::static_scaled_fp8_quant", ([4, 8], FP8), ([4, 8], BF16), ([], FP32))
    assert narrowed.moved_bytes == 32 + 64 + 4


def test_a_compiler_s_kernel_moves_its_arguments():
    assert work("triton_poi_fused_mul_silu_2", X, X, "32") == Work(None, 256, "vector")
    assert work("triton_poi_fused_embedding_0", X, X, "32") is None
    assert work("triton_tem_fused_mm_3", X, X, "32") is None


FOREACH = (
    "multi_tensor_apply_kernel<TensorListMetadata<1>, BinaryOpScalarFunctor<{}, 1, 1, 0>, std::plus<float>, float>"
)


def test_lists_take_their_type_from_the_kernel():
    shapes = [[4, 8], [8]]
    found = work_of_call(list_call("aten::_foreach_add_", shapes, kernel=FOREACH.format("c10::BFloat16")))
    assert found == Work(40, 2 * 40 * 2, "vector")
    found = work_of_call(list_call("aten::_foreach_mul_", shapes, shapes, kernel=FOREACH.format("float")))
    assert found == Work(40, 3 * 40 * 4, "vector")
    adam = "multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<4>, FusedAdamMathFunctor<float, 4>, float>"
    found = work_of_call(list_call("aten::_fused_adamw_", shapes, shapes, shapes, shapes, [], [[1], [1]], kernel=adam))
    assert found == Work(600, 7 * 40 * 4, "vector")
    cat = "CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, 3, 64, 64>"
    assert work_of_call(list_call("aten::cat", shapes, kernel=cat)) == Work(0, 2 * 40 * 2, "vector")


def test_lists_without_a_type_or_too_long_for_the_profiler_are_unknown():
    assert work_of_call(list_call("aten::_foreach_add_", [[4, 8]], kernel="unnamed")) is None
    assert work_of_call(list_call("aten::_foreach_add_", [], kernel=FOREACH.format("float"))) is None


def test_unknown_operators_and_types():
    assert work("aten::frobnicate", X, X) is None
    assert work("aten::add", ([4, 8], "Quaternion"), ([4, 8], "Quaternion")) is None
    assert work("aten::add", X, ([4, 8], "Quaternion")) is None
