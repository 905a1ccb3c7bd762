"""Software: what the training stack runs, where it changes cost or memory by more than a tuning detail."""

from typing import Literal

from pydantic import Field

from projector.specs.record import Record


class Software(Record):
    """Kernel generation and habits of a framework. The default is a current stack: fused attention, no dropout.

    attention "unfused" writes the score matrix to memory (Megatron-LM and DeepSpeed up to 2022);
    attention_kernels "flash2" are FlashAttention-2, written for Ampere: on Hopper and later they leave out the
    asynchronous units that "vendor" kernels (cuDNN, Transformer Engine, FlashAttention-3) use;
    attention_bias True adds a bias to every score inside the kernel even where the model's description states none;
    dropout True keeps the dropout masks for the backward pass (GPT-2 and GPT-3 recipes);
    pointwise_passes: memory traffic of norms, activations and other element-wise operators over that of fused kernels:
    a framework that runs module by module writes and reads every intermediate;
    recompute_stops_early True: recompute ends where the last kept tensor exists again, so the last product of a layer,
    which nothing but the next layer reads, is not repeated (PyTorch's non-reentrant checkpoints; XLA removes it as dead
    code; Megatron's reentrant checkpoints repeat it);
    expert_passes: the same for what stands around routed experts: permutations with their index kernels and padding,
    activation, casts;
    expert_dispatch "token" sends one copy of a token to a domain, which forwards it to the experts there (as DeepEP
    does), "expert" one copy to every expert wherever it is;
    clamped_passes: traffic of experts' clamped activations with their biases over that of one fused kernel;
    expert_products "each": a product an expert, a few at a time, "together": one kernel for those of all experts;
    expert_pause_s: what a layer of experts waits in each forward pass for the host, which reads how many tokens each
    expert got before it can launch what follows;
    expert_imbalance: tokens the busiest rank of an expert group gets over the mean: 1 where the router is forced to
    balance, as benchmarks do, NATURAL_IMBALANCE where it routes as it has learnt to;
    expert_overlap True hides that exchange behind the compute of another micro-batch (DualPipe);
    expert_load: rows each expert computes over those routed to it: the capacity factor where a stack pads to it;
    flat_gathers True: sharded weights and gradients pass the network whole on every rank's own link, ranks of one node
    share nothing (DeepSpeed ZeRO-3 of 2021);
    zero_update "broadcast": each rank of a ZeRO-1 group sends its updated weights in a message of its own, one after
    the other (InternEvo), "gather": one all-gather a bucket;
    gradient_wire_bytes: bytes a gradient of replicated weights travels with (4: Megatron's default; 2: reduced in 16
    bit); narrow_weight_gather True: weights are gathered in the dtype they are multiplied in, not in 16 bit;
    async_tp_gradients True hides the backward collectives of tensor parallelism behind weight gradients (Megatron-LM);
    trains_mtp True: the prediction layers a checkpoint has are trained beside the model (Megatron-Bridge's recipes);
    pipeline_pause_s: what a stage of a pipeline waits in each micro-batch beside its work: an engine that interprets
    the schedule and blocks on every transfer;
    host_factor: launches where a current stack needs one: eager modules, element-wise kernels that are not fused, loss
    scaling. It multiplies the host's launch time and the floor each kernel pays on the device.
    hiding_frac: share of the compute that can hide communication: the first and last layer have no neighbour;
    collective_drift: ranks whose hosts launch piece by piece drift apart, and a collective waits for the last: so many
    gaps between kernels (nothing where kernels leave no gaps);
    bias_slowdown, broadcast_s: what the two habits above cost.

    Of memory:
    loss_bytes: bytes a logit the loss holds at its peak beside the product of the head: 4 where an fp32 copy becomes
    its own gradient (Megatron), 2 where no fp32 array is written and the gradient has 16 bit (flash-attn's fused
    cross-entropy; XLA fuses casts into the sums), 12 for PyTorch's own on fp32 logits, module by module (log-softmax,
    its gradient and the gradient of its input);
    offloads_inputs True: layer inputs that full recompute starts from wait in host memory;
    selective_products True: recompute "selective" keeps every other matrix product's result and the attention output
    and repeats all else (torchtitan's per-operator policy), False: it repeats norms and activations only;
    gradient_bytes: bytes a parameter of gradients of replicated weights: 4 in fp32, 2 where they are summed in 16 bit,
    6 where 16-bit ones are added to fp32 ones (DeepSpeed's BF16 optimizer);
    bucket_bytes: the flat buffer gradients are reduced through, where it is no part of the gradients;
    gathers_stages True: FSDP inside a pipeline keeps a stage's weights gathered and its gradients whole until the last
    micro-batch (torchtitan, PyTorch's pipeline schedules);
    live_parameters: most parameters that are gathered at once, whatever a layer holds (DeepSpeed ZeRO-3).
    """

    attention: Literal["fused", "unfused"] = Field("fused", description="whether the score matrix reaches memory")
    attention_kernels: Literal["vendor", "flash2"] = Field("vendor", description="whose fused attention kernels run")
    attention_bias: bool = Field(False, description="whether fused kernels add a bias to each score, as for ALiBi")
    dropout: bool = Field(False, description="whether dropout masks are applied and kept")
    pointwise_passes: float = Field(1.0, ge=1, description="traffic of element-wise operators beside fused kernels")
    expert_passes: float = Field(1.0, ge=1, description="traffic around routed experts beside fused kernels")
    recompute_stops_early: bool = Field(False, description="whether full recompute leaves out a layer's last product")
    expert_dispatch: Literal["token", "expert"] = Field("token", description="what crosses the network to experts")
    hiding_frac: float = Field(0.6, ge=0, le=1, description="share of compute that can hide communication")
    collective_drift: float = Field(4.0, ge=0, description="gaps between kernels a collective waits for the last rank")
    bias_slowdown: float = Field(
        1.5, ge=1, description="time of fused attention with a bias on every score over without"
    )
    broadcast_s: float = Field(2.6e-3, ge=0, description="host time of one broadcast of a rank's updated weights")
    clamped_passes: float = Field(1.0, ge=1, description="traffic of clamped activations over a fused kernel's")
    expert_products: Literal["each", "together"] = Field("each", description="how products of several experts run")
    expert_pause_s: float = Field(0.0, ge=0, description="wait for the host in each layer of experts, seconds")
    expert_imbalance: float = Field(1.0, ge=1, description="tokens of the busiest expert rank over the mean")
    expert_overlap: bool = Field(False, description="whether compute hides the exchange of tokens with experts")
    expert_load: float = Field(1.0, ge=1, description="rows of the busiest expert device over a balanced share")
    flat_gathers: bool = Field(False, description="whether each rank pulls whole weights over its own network link")
    zero_update: Literal["gather", "broadcast"] = Field("gather", description="how updated weights of ZeRO-1 travel")
    gradient_wire_bytes: Literal[2, 4] = Field(4, description="bytes a gradient is reduced in between whole copies")
    narrow_weight_gather: bool = Field(False, description="whether weights travel in the dtype they are multiplied in")
    async_tp_gradients: bool = Field(True, description="whether weight gradients hide backward collectives of tp")
    trains_mtp: bool = Field(False, description="whether a checkpoint's multi-token-prediction layers are trained")
    pipeline_pause_s: float = Field(0.0, ge=0, description="pause of a pipeline stage in each micro-batch, seconds")
    host_factor: float = Field(1.0, ge=1, description="launch time beside that of a current stack")
    loss_bytes: float = Field(4.0, ge=0, description="bytes a logit the loss holds beside the head's product")
    offloads_inputs: bool = Field(False, description="whether recomputed layers' inputs wait in host memory")
    selective_products: bool = Field(False, description="whether selective recompute keeps every other product")
    gradient_bytes: Literal[2, 4, 6] = Field(4, description="bytes a gradient of replicated weights takes")
    bucket_bytes: float = Field(0.0, ge=0, description="buffer of gradients on their way, beside the gradients")
    gathers_stages: bool = Field(False, description="whether FSDP in a pipeline keeps whole stages gathered")
    live_parameters: float | None = Field(None, gt=0, description="most parameters gathered at once")


# Stacks. What a kernel generation does is public documentation; the figures come from one fit of all constants together
# on published step times, pulled to the priors that `agents.evaluation.parameters` states with their reasons; one a
# stack and none a model. In brackets the rows that bear on each.
#   pointwise_passes   1.1 for PyTorch module by module (160 rows of llm-foundry and torchtitan), 3 for InternEvo (54)
#   expert_passes      4 for the recipes of 2025 (22 rows), 3.7 to 26.04 (77), 1.2 for the fused kernels since 26.06
#                      (21), 1.1 where nobody names the stack (19), 5.3 for XLA, which sorts tokens in steps (7)
#   expert_pause_s     1 ms for the recipes of 2025, which run eagerly, 0.6 and 0.1 ms since 26.01 and 26.06, which
#                      record parts in CUDA graphs, 0.5 ms where nobody names the stack (the same rows)
#   clamped_passes     18 (23 rows), 9 with fused experts (6): a count of the tensors such a chain moves gives 9
#   pipeline_pause_s   0.12 for DeepSpeed's pipeline engine of 2022 (52 rows of BLOOM's trials)
#   hiding_frac        0.6 for all (98 rows that have more to hide)
#   collective_drift   4: vTrain's single-node runs show 7 to 13 gaps a collective at tp 1, 2, 4 and 8; of 0, 2, 4, 6
#                      and 8 its step times have the least median error with 4, its multi-node ones with 6
#   bias_slowdown      1.5: 158 runs of MPT models (llm-foundry, ALiBi, on A100 and H100); 1 to 2 were compared, each of
#                      the three chips alone chooses the same
#   broadcast_s        the slope of InternEvo's step time over the size of its ZeRO-1 group, 2.6 to 6.5 ms a rank (16
#                      rows, 16 to 1,024 ranks)
#   flat_gathers       DeepSpeed ZeRO-3 of 2021: its steps at the smallest micro-batch take as long as every weight
#                      takes over one 200 Gb/s link three times, on 384 to 2,240 GPUs alike (6 rows)
#   host_factor        12 for Megatron-LM of 2022 (1,260 single-node runs of vTrain on A100: 60 us a launch)
CURRENT = Software(clamped_passes=18.0, expert_passes=1.1, expert_pause_s=5e-4)
# Busiest over mean where nothing forces the balance: four pairs of runs, one workload at 16k to 128k tokens with and
# without a forced balance, that differ by 1.45 to 1.5 times their expert work and exchange (Megatron-MoE-ModelZoo).
NATURAL_IMBALANCE = 1.45
# Engines send decoding tokens straight to every expert: hops matter more than bytes (DeepEP, low-latency kernels).
SERVING = Software(expert_dispatch="expert", expert_products="together")
MEGATRON_2022 = Software(attention="unfused", dropout=True, gradient_wire_bytes=2, host_factor=12.0)
# Fused attention was an option (--use-flash-attn) that comparisons of that time left off: MegaScale (arXiv:2402.15627)
# counts it among its own gains over Megatron-LM. Gradients are reduced in fp32.
MEGATRON_2023 = MEGATRON_2022.model_copy(update={"gradient_wire_bytes": 4})
# ZeRO stage 1 sums 16-bit gradients and reduces them through buckets of 5e8, twice in 16 bit or once in fp32.
MEGATRON_DEEPSPEED = MEGATRON_2022.model_copy(
    update={"pipeline_pause_s": 0.12, "gradient_bytes": 2, "bucket_bytes": 2e9}
)
# Performance recipes of Megatron-Bridge and NeMo: gradients reduced in 16 bit, weights gathered in fp8 where they are.
MEGATRON_RECIPES = Software(
    clamped_passes=18.0,
    gradient_wire_bytes=2,
    gradient_bytes=2,
    narrow_weight_gather=True,
    expert_passes=3.7,
    expert_pause_s=6e-4,
)
MEGATRON_RECIPES_2025 = MEGATRON_RECIPES.model_copy(update={"expert_passes": 4.0, "expert_pause_s": 1.0e-3})
# Since 26.06, for block-scaled dtypes: one kernel for the products of all experts, their activation and their casts,
# and the exchange of tokens beside the compute of another micro-batch.
MEGATRON_RECIPES_FUSED_EXPERTS = MEGATRON_RECIPES.model_copy(
    update={
        "clamped_passes": 9.0,
        "expert_passes": 1.2,
        "expert_pause_s": 1e-4,
        "expert_overlap": True,
        "expert_products": "together",
    }
)
PYTORCH_COMPILED = Software(attention_kernels="flash2", recompute_stops_early=True)
PYTORCH_EAGER = PYTORCH_COMPILED.model_copy(update={"pointwise_passes": 1.1})
TORCHTITAN = PYTORCH_COMPILED.model_copy(update={"selective_products": True, "gathers_stages": True})
# Before 2025 its loss was not compiled.
TORCHTITAN_2024 = TORCHTITAN.model_copy(update={"loss_bytes": 12.0})
# without torch.compile
TORCHTITAN_2024_EAGER = TORCHTITAN_2024.model_copy(update={"pointwise_passes": 1.1})
# stage3_max_live_parameters is 1e9 unless told otherwise
DEEPSPEED_ZERO3 = MEGATRON_2022.model_copy(update={"live_parameters": 1e9, "flat_gathers": True})
# Its MPT models use ALiBi unless told otherwise; its loss is flash-attn's.
LLM_FOUNDRY = PYTORCH_EAGER.model_copy(update={"attention_bias": True, "loss_bytes": 2.0})
XLA = Software(loss_bytes=2.0, recompute_stops_early=True, expert_passes=5.3, expert_products="together")
INTERNEVO = Software(
    attention_kernels="flash2",
    pointwise_passes=3.0,
    zero_update="broadcast",
    gradient_wire_bytes=2,
    async_tp_gradients=False,
)


def megatron_recipes(release: tuple[int, int] | None, *, block_scaled: bool) -> Software:
    """The recipes of a release, (year, month) as (26, 4); of none in particular where it is not known.

    block_scaled: whether products run in a dtype whose scales go with blocks of values (mxfp8, nvfp4).
    """
    if release is None:
        return MEGATRON_RECIPES
    if release < (26, 1):
        return MEGATRON_RECIPES_2025
    return MEGATRON_RECIPES_FUSED_EXPERTS if block_scaled and release >= (26, 6) else MEGATRON_RECIPES
