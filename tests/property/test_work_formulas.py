"""Whatever a file claims of an operator's inputs, a formula answers with plain figures or with nothing."""

from hypothesis import example, given
from hypothesis import strategies as st

from traces.trace import OpInputs
from traces.work.call import Call
from traces.work.table import WORK_OF, formula_of, work_of_call

_LISTED = """
aten::mm aten::addmm aten::linear aten::matmul aten::_scaled_mm _C::cutlass_scaled_mm _rocm_C::wvSplitK
_C::gptq_marlin_gemm _C::awq_gemm sgl_kernel::fp8_scaled_mm aiter::gemm_a8w8_bpreshuffle aiter::gemm_a16w16
vllm::w8a8_block_fp8_matmul flashinfer::bmm_fp8
aten::scaled_dot_product_attention aten::_scaled_dot_product_flash_attention
aten::_scaled_dot_product_efficient_attention aten::_scaled_dot_product_fused_attention_overrideable
aten::_scaled_dot_product_flash_attention_backward aten::_scaled_dot_product_efficient_attention_backward
aten::_scaled_dot_product_cudnn_attention_backward aten::_flash_attention_forward aten::_flash_attention_backward
aten::_efficient_attention_forward aten::_efficient_attention_backward flash_attn::_flash_attn_forward
flash_attn::_flash_attn_backward flash_attn::_flash_attn_varlen_forward flash_attn::_flash_attn_varlen_backward
aiter::mha_batch_prefill
vllm::rocm_aiter_fused_moe sglang::inplace_fused_experts aten::_grouped_mm aten::_scaled_grouped_mm
aten::convolution aten::cudnn_convolution aten::miopen_convolution aten::_conv_depthwise2d aten::convolution_backward
aten::cudnn_convolution_backward_input aten::cudnn_convolution_backward_weight
aten::native_layer_norm aten::native_layer_norm_backward aten::native_batch_norm aten::native_batch_norm_backward
aten::cudnn_batch_norm_backward aten::native_group_norm aten::native_group_norm_backward aten::_fused_rms_norm
aten::_fused_rms_norm_backward _C::rms_norm _C::fused_add_rms_norm aiter::add_rmsnorm
aten::neg aten::add aten::where aten::eq aten::mul_ aten::copy_ aten::fill_ aten::native_dropout _C::silu_and_mul
_C::rotary_embedding _C::static_scaled_fp8_quant sgl_kernel::sgl_per_token_quant_fp8
_C_cache_ops::reshape_and_cache_flash triton_poi_fused_mul_0
aten::sum aten::linalg_vector_norm aten::argmax aten::all aten::prod aten::max aten::_softmax
aten::_softmax_backward_data aten::cumsum aten::sort
aten::embedding aten::index_select aten::embedding_dense_backward aten::gather
aten::cat aten::_foreach_add_ aten::_foreach_addcmul_ aten::_foreach_norm aten::_foreach_zero_ aten::_fused_adamw_
aten::_fused_sgd_
"""
NAMES = _LISTED.split()
TYPES = ("float", "c10::BFloat16", "c10::Float8_e4m3fn", "long int", "Scalar", "ScalarList", "TensorList", "", "odd")
LITERALS = (
    "",
    "0",
    "1",
    "-1",
    "True",
    "[1, 1]",
    "[0]",
    "(2,2)",
    "[True, True, False]",
    "0.5",
    "[",
    "99999999999999999",
)

shapes = st.lists(st.sampled_from((-1, 0, 1, 2, 3, 4, 8, 16, 2**62)) | st.integers(0, 64), max_size=5).map(tuple)
columns = st.integers(0, 18).flatmap(
    lambda count: st.tuples(
        st.lists(shapes, min_size=count, max_size=count),
        st.lists(st.sampled_from(TYPES), max_size=18),
        st.lists(st.sampled_from(LITERALS), max_size=18),
        st.lists(shapes, max_size=count),
        st.lists(st.lists(shapes, max_size=3).map(tuple), max_size=3),
    )
)
inputs = columns.map(lambda parts: OpInputs(*(tuple(one) for one in parts)))
kernels = st.sampled_from(("", "gemm_tf32", "multi_tensor_apply_kernel<float>", "OpaqueType<2u>", "winograd"))


@given(name=st.sampled_from(NAMES), one=inputs, kernel=kernels)
@example(name="aten::convolution", one=OpInputs(), kernel="")
def test_a_formula_answers_with_figures_or_with_nothing(name: str, one: OpInputs, kernel: str):
    work = work_of_call(Call(name, one, kernel))
    if work is not None:
        assert work.moved_bytes > 0
        assert work.flop is None or work.flop >= 0
        assert isinstance(work.moved_bytes, int)


def test_every_rule_has_an_example_here_that_no_earlier_rule_takes():
    covered = {id(formula_of(name)) for name in NAMES}
    assert [rule.names.pattern for rule in WORK_OF if id(rule.formula) not in covered] == []
