"""Abbreviations of the field in words: a query that says HSDP should find a note that says hybrid sharding.

One line a short form; several short forms of one thing are written on its line. A form is matched as a whole token
(`keyword.tokens`), so no form may be an English word. An expansion is added to a query, and takes nothing from it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_LINES: Final = """
a2a alltoall: all-to-all exchange of experts, dispatch and combine
ac gc: activation recompute, checkpointing
ag: all-gather
ar: all-reduce
apc: prefix caching
awq gptq w4a16: weight-only 4-bit weights
bs: batch size
ce: cross-entropy loss, logits
cp: context parallelism
cpu ram dram: host memory
cudagraph cudagraphs: CUDA graphs
dbo tbo: two micro-batch overlap of the exchange, dual batch
dcn: data-centre network between slices
ddp: data parallelism, gradient all-reduce
deepep: expert dispatch and combine, fused all-to-all dispatcher
dp: data parallelism
dpa: attention data parallelism
dualpipe: bidirectional pipeline schedule
eagle medusa mtp: speculative decoding, draft tokens
ep: expert parallelism
etp: expert tensor parallelism, slicing experts
fa2 fa3 flashattention flashinfer fa: attention kernels, backend
fsdp fsdp2: fully sharded data parallelism
full-shard: ZeRO-3 full sharding, weights
gemm gemms: matrix multiplication
gqa: grouped-query attention, KV heads
grpo ppo rlhf: RL step, rollout, policy update
hfu: utilisation that counts recomputed FLOP
hsdp: hybrid sharding inside a node, replicated across nodes
ici: torus links of a TPU slice
itl tpot tbt: time per token, inter-token latency
kv: KV cache, keys and values
lora qlora peft: adapters, fine-tuning with frozen weights
mbs: micro-batch
mfu: utilisation
mla: latent attention
moe: mixture of experts
mxfp4 mxfp8 nvfp4: block-scaled formats
nccl rccl: collectives
nvl72: rack-scale NVLink domain
nvls: in-switch all-reduce
offload: host memory
oom: out of memory, capacity
p2p: send and receive, ring
pcie: no NVLink, PCIe
pd: separate prefill and decode pools, disaggregation
pp: pipeline parallelism, stages
qps rps: load, requests per second
remat: activation recompute
rl: reinforcement learning
rs: reduce-scatter
sft: fine-tuning
shard-grad-op: ZeRO-2, weights kept gathered after the forward pass
sp: sequence parallelism
symm-mem: asynchronous tensor parallelism
te: fp8 training
tp: tensor parallelism
ttft: time to first token
ulysses: all-to-all context parallelism
vp vpp: interleaved virtual pipeline stages
w8a8: fp8 weights and activations
xgmi: links between AMD GPUs
xpyd: ratio of prefill and decode pools, disaggregation
zb zbv zb-v zb-h1 zbh1: zero-bubble pipeline schedule
zero-1 zero1: optimizer state sharded
zero-2 zero2: optimizer and gradients sharded, weights kept
zero-3 zero3: fully sharded weights, gathered for each layer
"""


def _parsed(lines: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines.strip().splitlines():
        forms, words = line.split(": ")
        found |= dict.fromkeys(forms.split(), words)
    return found


EXPANSIONS: Final[Mapping[str, str]] = MappingProxyType(_parsed(_LINES))
