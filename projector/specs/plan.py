"""ParallelismPlan: how one job is laid out, and its TPU mesh form."""

from typing import Literal, Self, get_args

from pydantic import Field, field_validator, model_validator

from projector.specs.record import MOST_DEVICES, MOST_SEQUENCES, MOST_TOKENS, MOST_WIDTH, Record

Phase = Literal["training", "serving"]
Dtype = Literal["fp32", "bf16", "fp16", "fp8", "int8", "fp4"]
# What matrix products can run in: also 8-bit floats with a scale a block of 32, and 4-bit ones with a scale of 16.
ComputeDtype = Literal["fp32", "bf16", "fp16", "fp8", "mxfp8", "int8", "fp4", "nvfp4"]
Recompute = Literal["none", "selective", "full"]
ExpertDispatch = Literal["auto", "all_to_all", "deepep", "all_gather"]
OptimizerName = Literal["adam", "adam_bf16", "adam_8bit", "adafactor", "muon", "sgd"]
ContextKind = Literal["ring", "all_to_all", "all_gather"]
RecomputeModule = Literal["core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts"]
AttentionBackend = Literal["auto", "flashinfer", "flash_attention", "trtllm", "cutlass", "triton", "aiter", "ck"]
AllReduce = Literal["auto", "ring", "one_shot", "two_shot", "hierarchical"]
AllToAll = Literal["auto", "direct", "single_shot", "hierarchical"]
Speculation = Literal["none", "mtp", "eagle", "ngram", "draft_model"]
KvTransfer = Literal["auto", "nixl", "mooncake", "mori"]
Schedule = Literal["1f1b", "interleaved", "zero_bubble", "dualpipe"]
Degree = int

MESH_AXES = ("replica", "data", "seq", "model")
# What makes two plans distinct layouts. Sizes inside an expert follow from these where an engine has one form of them.
LAYOUT_FIELDS = (
    "dp", "fsdp", "tp", "pp", "cp", "ep", "attention_dp",
    "prefill_replicas", "prefill_tp", "prefill_pp", "prefill_attention_dp", "prefill_ep",
)  # fmt: skip


class MeshForm(Record):
    """The same layout as TPU users and PROMPTS write it; axes multiply to the device count.

    `seq` is context parallelism (never Megatron's sequence parallelism), `model` is tensor parallelism.
    The form does not say whether weights are sharded over `data`.
    """

    replica: int = Field(1, ge=1, le=MOST_DEVICES)
    data: int = Field(1, ge=1, le=MOST_DEVICES)
    seq: int = Field(1, ge=1, le=MOST_DEVICES)
    model: int = Field(1, ge=1, le=MOST_DEVICES)


class ParallelismPlan(Record):
    """One layout. Degrees are over devices; `devices = dp * cp * tp * pp`.

    dp         all data parallelism (training) or engine replicas x attention data parallelism (serving)
    fsdp       size of the weight-sharding group inside dp: 1 replicated, dp fully sharded, between hybrid
    tp, sp     tensor parallelism; Megatron sequence parallelism inside the TP group
    pp, vp     pipeline stages; virtual stages a device
    first_stage_layers, last_stage_layers   layers of the first and of the last of pp devices, over their virtual
               stages, the others sharing the rest evenly; 0: as an even split has it
    schedule   order of a pipeline's passes: 1f1b, interleaved 1F1B (vp > 1), zero_bubble is ZB-H1 (arXiv:2401.10241:
               weight gradients apart from the backward pass, in what would be idle), dualpipe DeepSeek-V3's
               (arXiv:2412.19437: micro-batches enter at both ends, each device holds two stages, so each weight is
               held twice, and forward and backward passes run together)
    cp         context parallelism
    cp_kind    how its ranks share attention: ring (keys travel around it), all_to_all (tokens are traded for heads:
               Ulysses), all_gather (all keys at once: Llama 3)
    ep, etp    expert parallelism and tensor parallelism inside an expert; ep * etp divides dp * cp * tp
    expert_dispatch   how tokens reach their experts: all_to_all sends a copy to every expert wherever it is, deepep one
               to every domain of fast links that forwards it there, all_gather gives all tokens of the group to every
               rank; auto: as the stack does
    overlap_ep   two micro-batches alternate, so that compute of one hides the exchange of the other with experts; off:
               as the stack does
    optimizer_shard   devices of dp * cp that share one copy of the optimizer state with zero_stage 1 or 2 and fsdp 1;
               0: all of them
    recompute     which activations are made again in the backward pass: none, some of every layer, all
    recompute_modules   what recompute "selective" makes again, sorted and joined by "+" ("layernorm+moe_act"), by
               Megatron-Core's names; "": norms and activations, or what the stack repeats by itself
    recompute_layers   layers of a stage the recompute mode holds for, the others keep everything; 0: all of them
    optimizer     adam with fp32 moments, with 16-bit or 8-bit ones, adafactor, muon (adam outside matrices), sgd
    offload_optimizer     master weights and moments wait in host memory and cross the host link for each update
    offload_activations   what layers keep for the backward pass waits in host memory
    micro_batch   sequences a data-parallel rank pushes through at once
    grad_accum    micro-batches a step
    """

    phase: Phase = "training"
    dp: Degree = Field(1, ge=1, le=MOST_DEVICES)
    fsdp: Degree = Field(1, ge=1, le=MOST_DEVICES)
    zero_stage: Literal[0, 1, 2, 3] = 0
    optimizer_shard: int = Field(0, ge=0, le=MOST_DEVICES)
    tp: Degree = Field(1, ge=1, le=MOST_DEVICES)
    sp: bool = False
    pp: Degree = Field(1, ge=1, le=MOST_DEVICES)
    vp: Degree = Field(1, ge=1, le=MOST_DEVICES)
    cp: Degree = Field(1, ge=1, le=MOST_DEVICES)
    cp_kind: ContextKind = "ring"
    ep: Degree = Field(1, ge=1, le=MOST_DEVICES)
    etp: Degree = Field(1, ge=1, le=MOST_DEVICES)
    expert_dispatch: ExpertDispatch = "auto"
    micro_batch: int = Field(1, ge=1, le=MOST_SEQUENCES)
    grad_accum: int = Field(1, ge=1, le=MOST_SEQUENCES)
    recompute: Recompute = "none"
    recompute_modules: str = ""
    recompute_layers: int = Field(0, ge=0, le=MOST_WIDTH)
    schedule: Schedule = "1f1b"
    first_stage_layers: int = Field(0, ge=0, le=MOST_WIDTH)
    last_stage_layers: int = Field(0, ge=0, le=MOST_WIDTH)
    compute_dtype: ComputeDtype = "bf16"
    optimizer: OptimizerName = "adam"
    offload_optimizer: bool = False
    offload_activations: bool = False
    overlap_grad_reduce: bool = True
    overlap_param_gather: bool = True
    overlap_tp: bool = False
    overlap_ep: bool = False
    # serving
    attention_dp: Degree = Field(
        1, ge=1, le=MOST_DEVICES, description="ranks of one engine that own whole requests; divides dp"
    )
    weight_dtype: Dtype = "bf16"
    kv_cache_dtype: Dtype = "bf16"
    max_num_seqs: int = Field(64, ge=1, le=MOST_SEQUENCES, description="requests an engine decodes at once")
    chunked_prefill_tokens: int = Field(
        2048, ge=0, le=MOST_TOKENS, description="prefill tokens a mixed step; 0: whole prompts"
    )
    cuda_graphs: bool = True
    cuda_graph_mode: Literal["full", "piecewise"] = Field(
        "full", description="full: whole decode steps are replayed; piecewise: all steps, attention launched between"
    )
    expert_dtype: Literal["same", Dtype] = Field("same", description="storage of routed experts; same: weight_dtype")
    max_batched_tokens: int = Field(
        0, ge=0, le=MOST_TOKENS, description="tokens a step of one attention rank, decoding ones included; 0: no cap"
    )
    kv_block_tokens: int = Field(16, ge=1, le=1024, description="tokens of a block of the KV pool")
    hbm_frac: float = Field(0.9, gt=0, le=1, description="share of HBM an engine takes: weights, working set, KV pool")
    fused_kernels: bool = Field(
        True, description="norms, rotary embedding, casts and activations fused with neighbours"
    )
    attention_backend: AttentionBackend = "auto"
    tp_all_reduce: AllReduce = "auto"
    quick_reduce: bool = Field(False, description="tensor-parallel all-reduces in 8 bit (AMD's Quick Reduce)")
    fuse_all_reduce_norm: bool = Field(False, description="the norm behind an all-reduce runs in its kernel")
    expert_all_to_all: AllToAll = "auto"
    redundant_experts: int = Field(0, ge=0, le=MOST_WIDTH, description="copies of busy experts over the ep group")
    speculation: Speculation = "none"
    speculative_tokens: int = Field(0, ge=0, le=64, description="tokens drafted a step; 0 without speculation")
    prefill_replicas: int = Field(
        0, ge=0, le=MOST_DEVICES, description="engines of a prefill pool; 0: the same engines prefill and decode"
    )
    prefill_tp: Degree = Field(1, ge=1, le=MOST_DEVICES)
    prefill_pp: Degree = Field(1, ge=1, le=MOST_DEVICES)
    prefill_attention_dp: Degree = Field(1, ge=1, le=MOST_DEVICES)
    prefill_ep: Degree = Field(1, ge=1, le=MOST_DEVICES)
    prefill_etp: Degree = Field(1, ge=1, le=MOST_DEVICES)
    kv_transfer: KvTransfer = Field("auto", description="library that moves keys and values between the pools")

    @field_validator("recompute_modules")
    @classmethod
    def _modules_in_order(cls, value: str) -> str:
        named = value.split("+") if value else []
        known = get_args(RecomputeModule)
        foreign = sorted(set(named) - set(known))
        if foreign:
            raise ValueError(f"recompute_modules knows no {', '.join(foreign)}; it knows {', '.join(known)}")
        if named != sorted(set(named)):
            raise ValueError(f"recompute_modules are each named once and sorted: {'+'.join(sorted(set(named)))}")
        return value

    @model_validator(mode="after")
    def _degrees_agree(self) -> Self:
        if self.dp % self.fsdp:
            raise ValueError(f"fsdp {self.fsdp} does not divide dp {self.dp}")
        if (self.dp * self.cp * self.tp) % (self.ep * self.etp):
            raise ValueError(
                f"ep * etp = {self.ep * self.etp} does not divide dp * cp * tp = {self.dp * self.cp * self.tp}"
            )
        if self.optimizer_shard and (self.dp * self.cp) % self.optimizer_shard:
            raise ValueError(f"optimizer_shard {self.optimizer_shard} does not divide dp * cp = {self.dp * self.cp}")
        if self.dp % self.attention_dp:
            raise ValueError(f"attention_dp {self.attention_dp} does not divide dp {self.dp}")
        if (self.prefill_attention_dp * self.prefill_tp) % (self.prefill_ep * self.prefill_etp):
            raise ValueError(
                f"prefill_ep * prefill_etp = {self.prefill_ep * self.prefill_etp} does not divide "
                f"prefill_attention_dp * prefill_tp = {self.prefill_attention_dp * self.prefill_tp}"
            )
        if (self.speculation == "none") != (self.speculative_tokens == 0):
            raise ValueError(f"speculation {self.speculation} with speculative_tokens {self.speculative_tokens}")
        return self

    @property
    def devices(self) -> int:
        """Devices the plan occupies."""
        return self.dp * self.cp * self.tp * self.pp + self.prefill_devices

    @property
    def prefill_devices(self) -> int:
        """Devices of the prefill pool; 0 where the same engines prefill and decode."""
        return self.prefill_replicas * self.prefill_attention_dp * self.prefill_tp * self.prefill_pp

    @property
    def replicas(self) -> int:
        """Independent engines of a serving plan."""
        return self.dp // self.attention_dp

    @property
    def layout(self) -> tuple[int, ...]:
        """The LAYOUT_FIELDS: what makes two plans distinct layouts."""
        return tuple(getattr(self, field) for field in LAYOUT_FIELDS)

    def mesh(self) -> MeshForm | None:
        """The TPU mesh form, or None where it cannot say the plan (pp > 1 or ep > 1 have no axis in it)."""
        if self.pp > 1 or self.ep > 1:
            return None
        replica = self.dp // self.fsdp if 1 < self.fsdp < self.dp else 1
        return MeshForm(replica=replica, data=self.dp // replica, seq=self.cp, model=self.tp)
