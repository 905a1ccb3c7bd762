"""WORK_OF: operator name -> formula. An operator is added here, with a formula of its family's file; the first rule
whose pattern matches the whole name decides. An operator without a rule has unknown work."""

from typing import Final

from traces.remembered import remembered
from traces.work import convolution, gather, moe, norm, pointwise, reduction, tensor_lists
from traces.work.as_run import as_run
from traces.work.attention_table import ATTENTION
from traces.work.call import Call, Work
from traces.work.custom_gemm import group_scaled, operands, packed_weights
from traces.work.gemm import addmm, linear, matmul, mm, scaled_mm
from traces.work.rule import Formula, Rule, rules

_LONGEST_NAME: Final = 512
_CACHED: Final = 65_536
_LARGEST: Final = 2**62
_MOST_DIMENSIONS: Final = 16

_PRODUCTS: Final = rules(
    (r"aten::(?:mm|bmm)", mm),
    (r"aten::(?:addmm_?|_addmm_activation|baddbmm_?)", addmm),
    (r"aten::(?:linear|mkldnn_linear)|vllm::rocm_unquantized_gemm(?:_impl)?", linear),
    (r"aten::(?:matmul|mv|dot|vdot)", matmul),
    (r"aten::_scaled_mm", scaled_mm),
    (r"_C::cutlass_scaled_mm(?:_azp)?", operands(1, 2, scales=(3, 4, 5), out=0)),
    (r"_rocm_C::(?:wvSplitKQ?|LLMM1)", operands(1, 0)),
    (r"(?:_C|_moe_C)::(?:gptq_)?marlin_gemm", packed_weights),
    (r"_C::awq_gemm", group_scaled),
    (r"sgl_kernel::(?:fp8_|int8_|fp8_blockwise_)scaled_mm", operands(0, 1, scales=(2, 3))),
    (r"aiter::gemm_a(?:8w8|4w4)(?:_\w{1,40})?", operands(0, 1, scales=(2, 3))),
    (r"aiter::(?:gemm_a16w16|hipb_mm|rocb_mm)(?:_\w{1,40})?", operands(0, 1)),
    (r"vllm::(?:apply_)?w8a8_(?:triton_)?block_(?:fp8_linear|fp8_matmul|scaled_mm)", operands(0, 1, run_in="fp8")),
    (r"flashinfer::bmm_fp8", operands(0, 1, scales=(3, 4), out=2)),
)

_EXPERTS: Final = rules(
    (r"vllm::(?:rocm_aiter_fused_moe|(?:inplace_|outplace_)?fused_experts)", moe.fused_experts),
    (r"sglang::(?:inplace_|outplace_)fused_experts", moe.fused_experts),
    (r"aten::_grouped_mm", moe.grouped_mm),
    (r"aten::_scaled_grouped_mm", moe.scaled_grouped_mm),
)

_CONVOLUTIONS: Final = rules(
    (r"aten::(?:convolution|_convolution|convolution_overrideable)", convolution.convolution),
    (r"aten::cudnn_convolution", convolution.backend_convolution),
    (r"aten::(?:miopen|miopen_depthwise|mkldnn)_convolution", convolution.backend_convolution_with_bias),
    (r"aten::_conv_depthwise2d", convolution.depthwise_convolution),
    (r"aten::convolution_backward", convolution.convolution_backward),
    (r"aten::(?:cudnn|miopen)_convolution_backward_input", convolution.backward_of_input),
    (r"aten::(?:cudnn|miopen)_convolution_backward_weight", convolution.backward_of_weight),
)

_NORMS: Final = rules(
    (r"aten::native_layer_norm", norm.forward(0, 2, 3)),
    (r"aten::native_layer_norm_backward", norm.backward(0, 1, 3, 4, 5, 6)),
    (r"aten::(?:native|cudnn|miopen)_batch_norm|aten::_native_batch_norm_legit", norm.forward(0, 1, 2, 3, 4)),
    (r"aten::native_batch_norm_backward", norm.backward(0, 1, 2, 3, 4, 5, 6)),
    (r"aten::(?:cudnn|miopen)_batch_norm_backward", norm.backward(1, 0, 2, 3, 4, 5, 6)),
    (r"aten::native_group_norm", norm.forward(0, 1, 2)),
    (r"aten::native_group_norm_backward", norm.backward(0, 1, 2, 3, 4)),
    (r"aten::_fused_rms_norm", norm.rms_norm(0, 2)),
    (r"aten::_fused_rms_norm_backward", norm.backward(0, 1, 3, 4)),
    (r"(?:_C|sgl_kernel)::rms_?norm|aiter::rms_?norm", norm.rms_norm(1, 2)),
    (r"(?:_C|sgl_kernel)::fused_add_rms_?norm", norm.add_rms_norm(0, 2)),
    (r"aiter::add_rms_?norm", norm.add_rms_norm(1, 4)),
)

_UNARY: Final = (
    "abs|neg|exp|exp2|expm1|log|log2|log1p|sqrt|rsqrt|square|reciprocal|sin|cos|tan|tanh|atan|erf|erfc|sign|round|floor"
    "|ceil|trunc|sigmoid|log_sigmoid_forward|silu|gelu|relu|relu6|leaky_relu|elu|mish|softplus|hardtanh|hardswish"
    "|hardsigmoid|bitwise_not|nan_to_num|tril|triu"
)
_BINARY: Final = (
    "add|sub|rsub|mul|div|true_divide|floor_divide|fmod|remainder|pow|maximum|minimum|atan2|clamp_min|clamp_max"
    "|threshold|masked_fill|bitwise_and|bitwise_or|bitwise_xor|threshold_backward|gelu_backward|silu_backward"
    "|tanh_backward|sigmoid_backward|hardtanh_backward|leaky_relu_backward|elu_backward|hardswish_backward"
    "|native_dropout_backward|xlogy"
)
_TERNARY: Final = "clamp|where|addcmul|addcdiv|lerp|softplus_backward"
_COMPARISON: Final = "eq|ne|lt|le|gt|ge|logical_and|logical_or|logical_xor|logical_not|isnan|isinf|isfinite"
# a compiler's kernel may read only part of an argument where it gathers, joins or slices
_PARTIAL: Final = "embedding|gather|index|scatter|cat|slice|split|select|stack|pool|strided|unfold|sort|roll"

_POINTWISE: Final = rules(
    (rf"aten::(?:{_UNARY})", pointwise.elementwise(1)),
    (rf"aten::(?:{_BINARY})", pointwise.elementwise(2)),
    (rf"aten::(?:{_TERNARY})", pointwise.elementwise(3)),
    (rf"aten::(?:{_COMPARISON})", pointwise.comparison),
    (rf"aten::(?:{_UNARY}|{_BINARY}|{_TERNARY})_", pointwise.in_place),
    (r"aten::copy_", pointwise.copy),
    (r"aten::(?:fill_|zero_)", pointwise.fill),
    (r"aten::native_dropout", pointwise.dropout),
    (r"(?:_C|sgl_kernel|aiter)::(?:silu|gelu|gelu_tanh)_and_mul", pointwise.gated(1)),
    (r"(?:_C|sgl_kernel)::rotary_embedding", pointwise.rotary(1, 2, 0)),
    (r"_C::(?:static|dynamic|dynamic_per_token)_scaled_(?:fp8|int8)_quant", pointwise.converted(1, 0, 2)),
    (r"sgl_kernel::sgl_per_(?:token|tensor|token_group)_quant_(?:fp8|int8|8bit)", pointwise.converted(0, 1, 2)),
    (r"_C_cache_ops::reshape_and_cache(?:_flash)?|sglang::store_cache", pointwise.cache_write(0, 1, 2, 4)),
    (rf"triton_(?:poi|red|per)_fused_(?!\w{{0,400}}(?:{_PARTIAL}))\w{{1,400}}", pointwise.fused),
)

_REDUCTIONS: Final = rules(
    (r"aten::(?:sum|mean|amax|amin|logsumexp)", reduction.reduction(1)),
    (r"aten::linalg_vector_norm", reduction.reduction(2)),
    (r"aten::(?:argmax|argmin)", reduction.reduction_along(1, result_bytes=reduction.INDEX_BYTES)),
    (r"aten::(?:all|any)", reduction.reduction_along(1, result_bytes=1)),
    (r"aten::prod", reduction.reduction_along(1)),
    (r"aten::(?:max|min)", reduction.extreme),
    (r"aten::(?:_softmax|_log_softmax)", reduction.softmax),
    (r"aten::(?:_softmax|_log_softmax)_backward_data", reduction.softmax_backward),
    (r"aten::(?:cumsum|cumprod|logcumsumexp)", reduction.scan),
    (r"aten::sort", reduction.sort),
)

_LOOK_UPS: Final = rules(
    (r"aten::embedding", gather.embedding),
    (r"aten::index_select", gather.index_select),
    (r"aten::embedding_dense_backward", gather.embedding_backward),
    (r"aten::gather", gather.gather),
)

_FOREACH_UNARY: Final = "sqrt|neg|abs|exp|reciprocal|rsqrt"

_LISTS: Final = rules(
    (r"aten::cat", tensor_lists.concatenate),
    (
        rf"aten::_foreach_(?:add|sub|mul|div|maximum|minimum|lerp|pow|{_FOREACH_UNARY})_?",
        tensor_lists.foreach(writes=1),
    ),
    (r"aten::_foreach_(?:addcmul|addcdiv)_?", tensor_lists.foreach(writes=1, flop=3)),
    (r"aten::_foreach_norm", tensor_lists.foreach(writes=0, flop=2)),
    (r"aten::_foreach_zero_", tensor_lists.foreach(reads=0, writes=1, flop=0)),
    (r"aten::_fused_adamw?_", tensor_lists.foreach(reads=4, writes=3, flop=15)),
    (r"aten::_fused_sgd_", tensor_lists.foreach(reads=3, writes=2, flop=4)),
)

COVERING: Final[tuple[Rule, ...]] = (*_PRODUCTS, *ATTENTION, *_EXPERTS, *_CONVOLUTIONS)
"""Formulas that cover everything their operator runs, operators inside it included: they may claim its kernels."""

WORK_OF: Final[tuple[Rule, ...]] = (*COVERING, *_NORMS, *_POINTWISE, *_REDUCTIONS, *_LOOK_UPS, *_LISTS)


@remembered(_CACHED)
def formula_of(operator: str) -> Formula | None:
    """The formula of an operator name, or None."""
    return _first(WORK_OF, operator)


@remembered(_CACHED)
def is_covering(operator: str) -> bool:
    """Whether the operator's formula covers the operators inside it."""
    return _first(COVERING, operator) is not None


def work_of_call(call: Call) -> Work | None:
    """Work of a call; None without a formula, without the shapes it needs, or with shapes no device could hold."""
    formula = formula_of(call.name)
    if formula is None or not _readable(call):
        return None
    work = formula(call)
    if work is None or not 0 < work.moved_bytes < _LARGEST or not 0 <= (work.flop or 0) < _LARGEST:
        return None
    return as_run(work, call.kernel)


def _readable(call: Call) -> bool:
    """Whether every tensor has sizes a tensor can have and a known element type."""
    return all(
        len(shape) <= _MOST_DIMENSIONS and min(shape, default=0) >= 0 and (not shape or call.element(index) is not None)
        for index, shape in enumerate(call.inputs.dims)
    )


def _first(among: tuple[Rule, ...], operator: str) -> Formula | None:
    if len(operator) > _LONGEST_NAME:
        return None
    return next((rule.formula for rule in among if rule.names.fullmatch(operator)), None)
