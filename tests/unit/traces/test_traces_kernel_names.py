"""What names say. Spellings are those of real traces and libraries."""

import pytest

from traces.kernel_names import (
    communication_of,
    host_communication_of,
    is_copy,
    kind_of,
    kind_of_operator,
    without_parameters,
)

COMMUNICATION = {
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "all_gather",
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)": "all_reduce",
    "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "reduce_scatter",
    "ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)": "broadcast",
    "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)": "send_recv",
    "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)": "nccl",
    "void dpsk::ep::internode::dispatch<false, 8, true, 8>(int4*, float*, long*)": "expert_dispatch",
    "void dpsk::ep::internode::combine<false, 8, __nv_bfloat16, 8, 2, 16, 24>(int4*)": "expert_combine",
    "void dpsk::ep::internode::cached_notify<false>(int, int, int)": "expert_notify",
    "void deep_ep::intranode::dispatch<8, 768>(int4*)": "expert_dispatch",
    "void deep_ep::internode_ll::combine<true>(void*)": "expert_combine",
    "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)": "all_reduce",
    "void (anonymous namespace)::one_shot_all_reduce_kernel<c10::BFloat16, 8>(c10::BFloat16*)": "all_reduce",
    "void (anonymous namespace)::two_shot_all_reduce_kernel<c10::BFloat16, 8>(c10::BFloat16*)": "all_reduce",
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)": "all_reduce",
    "void aiter::cross_device_reduce_2stage<__hip_bfloat16, 8>(aiter::RankData*)": "all_reduce",
    "void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport<...>()": "all_reduce",
    "nvshmemi_transfer_rma_nbi": "one_sided",
    "void quickreduce::allreduce_prototype_twoshot<...>(half*)": "all_reduce",
}
NOT_COMMUNICATION = [
    "triton_poi_fused_all_gather_into_tensor_0",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(at::native::ReduceOp<float>)",
    "void dpsk::ep::cuda::get_dispatch_layout<256, 32, 8>(long const*, int*)",
    "void at::native::_scatter_gather_elementwise_kernel<128, 4>(int)",
    "_finalize_matmul_scatter_bf16",
    "void gemm<ncclTag>(ncclComm*)",
]
KINDS = {
    "gemm": [
        "nvjet_tst_64x64_64x16_2x1_2cta_v_bz_bias_TNT",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x32x64_MI16x16x1",
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8>(Params)",
        "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_cga1x1x1_tmaOpt_clmp_swiGlu_dynBatch_sm100f",
        "ampere_sgemm_128x64_nn",
        "void splitKreduce_kernel<32, 16, int, float>(cublasSplitKParams<float>)",
        "triton_tem_fused_mm_3",
    ],
    "attention": [
        "fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext",
        "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128>>(Params)",
        "void cutlass::device_kernel<flash::FlashAttnBwd<flash::CollectiveMainloopBwd<2>>>(Params)",
        "kernel_unified_attention_2d",
        "attn_fwd",
        "void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16>(int)",
        "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, unsigned char>(int)",
        "void (anonymous namespace)::store_kvcache<2048l, 4, false, long>(StoreKVCacheParams)",
        "_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelE",
    ],
    "norm": [
        "std::enable_if<vllm::_typeConvert<T>::exists, void>::type vllm::fused_add_rms_norm_kernel<T, 8>(int)",
        "void layer_norm::ln_fwd_kernel<layer_norm::Kernel_traits<__nv_bfloat16>>(int)",
        "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8ELb0EEvPT0_",
        "void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(int)",
        "triton_red_fused_add_mean_mul_pow_rsqrt_0",
    ],
    "moe": [
        "_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1_swiglu",
        "void moe::dev::finalize::finalizeKernelVecLoad<moe::dev::finalize::KernelParams<cutlass::bfloat16_t>>(int)",
        "aiter_fused_moe_kernel_bf16",
        "void cutlass::device_kernel<dpsk::grouped_gemm::cuda::m_grouped_fp8_ptp128c::GemmKernel>(Params)",
        "_combined_routing_memset",
        "void dpsk::ep::cuda::get_dispatch_layout<256, 32, 8>(long const*)",
    ],
    "quantise": [
        "void vllm::scaled_fp8_quant_kernel_strided<c10::BFloat16, c10::Float8_e4m3fn>(int)",
        "void cuda::per_token_cast_to_fp8_with_channels<__nv_bfloat16, 128, false, 128, false>(int)",
        "void tensorrt_llm::kernels::quantize_with_block_size<(BlockScaleQuantizationType)2>(int)",
    ],
    "elementwise": [
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)",
        "triton_poi_fused_constant_pad_nd_moe_forward_0",
        "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)",
        "_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16E",
        "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>(float*)",
        "void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda(T&)::{lambda()#3}>(int)",
    ],
    "embedding": [
        "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long, 2, 2, -2, true>(int)",
        "void split_embedding_codegen_forward_unweighted_kernel<float>(int)",
    ],
    "optimizer": ["void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>(int)"],
    "sampling": [
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>>>(int)"
    ],
    "other": [
        "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x32",
        "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw",
        "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int>>(int*)",
        "_ZN2ck16tensor_operation6device39kernel_grouped_conv_fwd_xdl_cshuffle_v3INS_28GridwiseGemm_xdl_cshuffle_v3E",
    ],
}


@pytest.mark.parametrize(("name", "collective"), COMMUNICATION.items())
def test_communication_kernels(name: str, collective: str) -> None:
    assert communication_of(name) == collective


@pytest.mark.parametrize("name", NOT_COMMUNICATION)
def test_names_that_only_look_like_communication(name: str) -> None:
    assert communication_of(name) is None


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in KINDS.items() for name in names])
def test_kinds_of_computation(kind: str, name: str) -> None:
    assert kind_of(name) == kind
    assert communication_of(name) is None
    assert not is_copy(name)


@pytest.mark.parametrize("name", ["triton__0d1d2d3d", "my_kernel", "", "foo::bar<int>(int)"])
def test_names_that_say_nothing(name: str) -> None:
    assert kind_of(name) is None
    assert communication_of(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "Memcpy DtoD (Device -> Device)",
        "Memset (Device)",
        "__amd_rocclr_copyBuffer",
        "__amd_rocclr_fillBufferAligned.kd",
        "CopyDeviceToHost",
        "hipMemcpyAsync",
    ],
)
def test_copies(name: str) -> None:
    assert is_copy(name)


@pytest.mark.parametrize("name", ["_combined_routing_memset", "direct_copy_kernel_cuda", "memcpy_like_gemm"])
def test_kernels_that_are_no_copies(name: str) -> None:
    assert not is_copy(name)


def test_the_parameter_list_does_not_count() -> None:
    assert without_parameters("void f<int>(a(b), c)") == "void f<int>"
    assert without_parameters("f") == "f"
    assert without_parameters("broken)") == "broken)"
    assert kind_of("void mystery<int>(cutlass::gemm::Params)") is None


@pytest.mark.parametrize(
    ("operator", "collective"),
    [
        ("nccl:all_reduce", "all_reduce"),
        ("nccl:_all_gather_base", "all_gather"),
        ("gloo:all_reduce", "all_reduce"),
        ("record_param_comms", "collective"),
        ("c10d::allreduce_", "all_reduce"),
        ("c10d::_reduce_scatter_base_", "reduce_scatter"),
        ("c10d::alltoall_base_", "all_to_all"),
        ("_c10d_functional::all_reduce", "all_reduce"),
        ("_c10d_functional::wait_tensor", "wait"),
        ("symm_mem::multimem_all_reduce_", "all_reduce"),
        ("vllm::all_reduce", "all_reduce"),
        ("_C_custom_ar::all_reduce", "all_reduce"),
        ("aten::mm", None),
        ("fsdp::all_gather_copy_in", None),
        ("FSDP::all_gather (blocks.0)", None),
        ("torch.distributed.ddp.reducer::copy_bucket_to_grad", None),
        ("symm_mem::fused_all_gather_matmul", None),
        ("autograd::engine::evaluate_function: AddBackward0", None),
    ],
)
def test_host_collectives(operator: str, collective: str | None) -> None:
    assert host_communication_of(operator) == collective


@pytest.mark.parametrize(
    ("operator", "kind"),
    [
        ("aten::addmm", "gemm"),
        ("vllm::moe_forward", "moe"),
        ("vllm::unified_attention_with_output", "attention"),
        ("aten::embedding", "embedding"),
        ("aten::native_layer_norm", "norm"),
        ("aten::add_", "elementwise"),
        ("_C::rotary_embedding", "elementwise"),
        ("Torch-Compiled Region: 0/1", None),
    ],
)
def test_kinds_of_operators(operator: str, kind: str | None) -> None:
    assert kind_of_operator(operator) == kind
