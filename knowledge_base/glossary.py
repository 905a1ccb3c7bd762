"""The field's words for what a query says otherwise: abbreviations (HSDP), and plain words (a card, a box, a filler).

One line a meaning; several forms of it are written on its line. A form is matched as a whole token (`keyword.tokens`),
so an abbreviation may not be an English word of another meaning. An expansion is added to a query, and takes nothing
from it: a plain word that was meant plainly costs little.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_ABBREVIATIONS: Final = """
1f1b: pipeline schedule, bubble
a2a alltoall: all-to-all exchange of experts, dispatch and combine
ac: activation recompute, checkpointing
act acts: activations
ag: all-gather
apc: prefix caching
ar: all-reduce
attn: attention
awq gptq w4a16: weight-only 4-bit weights
bs: batch size
bw: bandwidth
ce: cross-entropy loss, logits
ckpt: checkpoint
comm comms: communication
conc: concurrency
cp: context parallelism
cpu ram dram: host memory
ctx: context length
cudagraph cudagraphs: CUDA graphs
dbo tbo: two micro-batch overlap of the exchange, dual batch
dcn: data-centre network between slices
ddp: data parallelism, gradient all-reduce
deepep: expert dispatch and combine, fused all-to-all dispatcher
dp: data parallelism
dpa: attention data parallelism
dualpipe: bidirectional pipeline schedule
e4m3 e5m2: fp8
eagle medusa mtp: speculative decoding, draft tokens
efa ib infiniband rdma roce ethernet: network between nodes
ep: expert parallelism
eplb: expert load balancing, redundant experts
etp: expert tensor parallelism, slicing experts
fa2 fa3 flashattention flashinfer fa: attention kernels, backend
ffn mlp: feed-forward layer
fsdp fsdp2: fully sharded data parallelism
full-shard: ZeRO-3 full sharding, weights
ga gas: gradient accumulation
gemm gemms: matrix multiplication
gmm: grouped GEMM of experts
gqa: grouped-query attention, KV heads
grad grads: gradients
grpo ppo rlhf: RL step, rollout, policy update
gspmd shardy xla: compiler, partitioner, sharding rules
hfu: utilisation that counts recomputed FLOP
hsdp: hybrid sharding inside a node, replicated across nodes
ici: torus links of a TPU slice
isl: prompt length
itl tpot tbt: time per token, inter-token latency
kv: KV cache, keys and values
kvcache: KV cache
lat: latency
lm-head lmhead: logits, output layer
lora qlora peft: adapters, fine-tuning with frozen weights
mbs: micro-batch
mem: memory
mfu: utilisation
mla: latent attention
moe: mixture of experts
mxfp4 mxfp8 nvfp4: block-scaled formats
nccl rccl: collectives
nvl72: rack-scale NVLink domain
nvlink nvswitch: fast domain inside a node
nvls: in-switch all-reduce
offload: host memory
oom: out of memory, capacity
opt optim: optimizer
osl: output length
p2p: send and receive, ring
param params: weights
pcie: no NVLink, PCIe
pd: separate prefill and decode pools, disaggregation
pp: pipeline parallelism, stages
preempt preempted preemption evicted: KV cache full, requests computed again
qps rps: load, requests per second
remat: activation recompute
rl: reinforcement learning
rs: reduce-scatter
seq seqlen: sequence length
sft: fine-tuning
shard-grad-op: ZeRO-2, weights kept gathered after the forward pass
sp: sequence parallelism
spec: speculative decoding
swap swapping: host memory
symm-mem: asynchronous tensor parallelism
te: fp8 training
thpt tput: throughput
tp: tensor parallelism
ttft: time to first token
ulysses: all-to-all context parallelism
util: utilisation
vocab: vocabulary, logits
vp vpp: interleaved virtual pipeline stages
w8a8: fp8 weights and activations
xgmi: links between AMD GPUs
xpyd: ratio of prefill and decode pools, disaggregation
zb zbv zb-v zb-h1 zbh1: zero-bubble pipeline schedule
zero-1 zero1: optimizer state sharded
zero-2 zero2: optimizer and gradients sharded, weights kept
zero-3 zero3: fully sharded weights, gathered for each layer
"""

_PLAIN_WORDS: Final = """
accelerator accelerators card cards: chip, GPU, rank
answer answers reply replies: decode, output tokens, response
bit bits: quantised format
box boxes machine machines server servers: node
cable cables wire: link, network
cluster: chips, nodes
copied copies copy duplicate duplicated: replicas, replicated
crash crashes crashed: out of memory
disk ssd: storage, input
discard discarded throw thrown drop dropped: dropped
document documents essay: long prompt, long sequence
filler: padding
freeze freezes stutter stutters hiccup: latency spikes, time per token
guess guesses guessing: draft tokens, speculation
history conversation chat: prefix, KV cache
hidden hide hides cover covers: overlap
idle bored: idle, waiting
intermediate: activations of the forward pass
iteration iterations: step
layers: pipeline stages
neighbour neighbours neighbor neighbors: inside a node
parameters: weights
person people user users customers: concurrent requests, batch
popular favourite: hot, imbalance
question questions: prompt, prefill
recompute recomputed twice: activation recompute, checkpointing
slot slots: capacity, bubble
specialist specialists: experts, mixture of experts
split splits divide divided cut: shard, parallelism
updates: gradients, optimizer
vocabulary dictionary: vocabulary, logits
word words: tokens
"""


def _parsed(lines: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines.strip().splitlines():
        forms, words = line.split(": ")
        found |= dict.fromkeys(forms.split(), words)
    return found


EXPANSIONS: Final[Mapping[str, str]] = MappingProxyType(_parsed(_ABBREVIATIONS) | _parsed(_PLAIN_WORDS))
