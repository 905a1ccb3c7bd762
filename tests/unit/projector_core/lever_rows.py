"""The table of the levers of serving: for each field a change, where it is made, and which way it must move what.

`python -m tests.validation.write_serving_tables` writes it into docs/serving.md; test_lever_table.py holds it against
the projector. A field without a row, and a row that moves nothing, fail there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

# "-" falls, "+" rises, "0" stays within 2 %, "" either way (what decides stands in the lever's mechanism)
Sign = Literal["-", "+", "0", ""]
Fields = Mapping[str, object]

ONE_NODE: Fields = {"tp": 8, "chunked_prefill_tokens": 8192}
# whole experts on the ranks that own requests: rows travel
SPREAD: Fields = {"dp": 8, "attention_dp": 8, "ep": 8, "weight_dtype": "fp8", "max_num_seqs": 256}
WIDE: Fields = {"dp": 32, "attention_dp": 32, "ep": 32, "weight_dtype": "fp8", "max_num_seqs": 4096}
SLICED: Fields = {"tp": 8, "etp": 8, "weight_dtype": "fp8"}
POOLS: Fields = {"tp": 4, "prefill_replicas": 1, "prefill_tp": 4}


@dataclass(frozen=True)
class Load:
    """Prompt and output tokens, requests in flight, and what else the traffic is."""

    input_len: int = 1024
    output_len: int = 512
    concurrency: int = 4
    more: Fields = field(default_factory=dict)


FEW, BUSY, LONG = Load(), Load(concurrency=128), Load(16384, 512, 32)
PROMPTS = Load(8192, 2, 4)


@dataclass(frozen=True)
class Row:
    """One field: `change` made in a plan of `model` on `chip`, and how figures answer.

    ttft, tpot, memory (of the fullest chip), held (requests the KV pools hold). why: what decides, in a few words.
    """

    field: str
    change: Fields
    ttft: Sign = ""
    tpot: Sign = ""
    memory: Sign = ""
    held: Sign = ""
    why: str = ""
    plan: Fields = field(default_factory=lambda: ONE_NODE)
    load: Load = FEW
    model: str = "llama-3.1-70b"
    chip: str = "h200"


MOE = "deepseek-v3"
ROWS: tuple[Row, ...] = (
    Row("tp", {"tp": 8}, "-", "-", "-", "+", "weights, heads and MLP are sharded", {"tp": 2}),
    Row("pp", {"pp": 2}, "", "", "-", "+", "layers are; a token still passes all of them", {"tp": 4}),
    Row(
        "ep", {"ep": 8, "etp": 1}, "", "", "0", "", "the same weights a chip, whole instead of sliced", SLICED, BUSY,
        MOE,
    ),
    Row("etp", {"etp": 8, "ep": 1}, "", "", "0", "", "the reverse", SLICED | {"ep": 8, "etp": 1}, BUSY, MOE),
    Row("expert_dispatch", {"expert_dispatch": "deepep"}, "", "-", "", "", "a row once a node", WIDE, BUSY, MOE),
    Row(
        "overlap_ep", {"overlap_ep": True}, "", "+", "", "", "halves read weights twice", SPREAD,
        Load(concurrency=64), MOE,
    ),
    Row("dp", {"dp": 2}, "-", "-", "-", "+", "engines share the requests", {"tp": 4}, Load(concurrency=32)),
    Row(
        "max_num_seqs", {"max_num_seqs": 16}, "+", "-", "-", "", "the others wait", ONE_NODE | {"max_num_seqs": 128},
        BUSY,
    ),
    Row(
        "attention_dp", {"dp": 8, "attention_dp": 8, "tp": 1}, "", "", "", "+",
        "latents are kept once, not on every rank", SLICED | {"ep": 8, "etp": 1, "max_num_seqs": 256}, BUSY, MOE,
    ),
    Row("weight_dtype", {"weight_dtype": "fp8"}, "-", "-", "-", "+", "half the bytes and twice the peak"),
    Row("compute_dtype", {"compute_dtype": "fp8"}, "-", "", "0", "0", "products alone", load=PROMPTS),
    Row(
        "expert_dtype", {"expert_dtype": "fp4"}, "-", "-", "-", "+", "experts alone, units for it", SPREAD, BUSY, MOE,
        "b200",
    ),
    Row("kv_cache_dtype", {"kv_cache_dtype": "fp8"}, "", "-", "-", "+", "cache reads", load=LONG),
    Row(
        "speculation", {"speculation": "eagle", "speculative_tokens": 3}, "", "-", "+", "-",
        "few requests: weights once", load=Load(1024, 512, 1, {"draft_acceptance_frac": 0.7}),
    ),
    Row(
        "speculative_tokens", {"speculative_tokens": 8}, "", "+", "", "", "drafts nobody accepts",
        ONE_NODE | {"speculation": "draft_model", "speculative_tokens": 2},
        Load(1024, 512, 1, {"draft_acceptance_frac": 0.3}),
    ),
    Row(
        "prefill_replicas", {"prefill_replicas": 1, "prefill_tp": 4}, "", "-", "", "", "no chunks beside decoding",
        {"tp": 4}, BUSY,
    ),
    Row("prefill_tp", {"prefill_tp": 8}, "-", "", "", "", "prompts over more chips", POOLS | {"prefill_tp": 2}),
    Row(
        "prefill_pp", {"prefill_pp": 2}, "+", "", "", "", "hops, and no faster for one prompt", POOLS,
        Load(concurrency=1),
    ),
    Row(
        "prefill_attention_dp", {"prefill_attention_dp": 2}, "-", "0", "", "0", "ranks take prompts of their own",
        POOLS, Load(4096, 32, 32),
    ),
    Row(
        "prefill_ep", {"prefill_ep": 8, "prefill_etp": 1}, "", "", "", "", "as ep",
        SLICED | {"prefill_replicas": 1, "prefill_tp": 8, "prefill_etp": 8}, FEW, MOE,
    ),
    Row(
        "prefill_etp", {"prefill_etp": 8, "prefill_ep": 1}, "", "", "", "", "as etp",
        SLICED | {"prefill_replicas": 1, "prefill_tp": 8, "prefill_ep": 8}, FEW, MOE,
    ),
    Row(
        "chunked_prefill_tokens", {"chunked_prefill_tokens": 512}, "+", "", "-", "", "steps stay short",
        load=Load(8192, 512, 16),
    ),
    Row(
        "max_batched_tokens", {"max_batched_tokens": 2048}, "+", "", "-", "", "chunks shrink",
        load=Load(8192, 512, 16),
    ),
    Row("cuda_graphs", {"cuda_graphs": False}, "", "+", "-", "+", "launches wait for the host", model="llama-3.1-8b"),
    Row(
        "cuda_graph_mode", {"cuda_graph_mode": "piecewise"}, "", "+", "", "", "attention is launched",
        model="llama-3.1-8b",
    ),
    Row("hbm_frac", {"hbm_frac": 0.8}, "0", "0", "", "-", "the KV pool alone"),
    Row(
        "attention_backend", {"attention_backend": "triton"}, "+", "+", "0", "0", "lower rates of attention",
        load=LONG,
    ),
    Row("tp_all_reduce", {"tp_all_reduce": "ring"}, "", "+", "0", "0", "2 (tp - 1) hops for a small message"),
    Row(
        "quick_reduce", {"quick_reduce": True}, "-", "", "0", "0", "half the bytes of large messages", load=PROMPTS,
        chip="mi325x",
    ),
    Row(
        "expert_all_to_all", {"expert_all_to_all": "direct"}, "", "+", "0", "0", "a message to every rank", WIDE,
        BUSY, MOE,
    ),
    Row(
        "redundant_experts", {"redundant_experts": 8}, "", "-", "+", "-", "the busiest rank hands rows over", SPREAD,
        Load(concurrency=256, more={"expert_imbalance": 1.5}), MOE,
    ),
    Row("fuse_all_reduce_norm", {"fuse_all_reduce_norm": True}, "", "-", "0", "0", "a launch and a pass for each"),
    Row("fused_kernels", {"fused_kernels": False}, "+", "+", "", "", "floors and passes of small kernels"),
    Row(
        "kv_block_tokens", {"kv_block_tokens": 64}, "0", "0", "", "-", "half a block a request is wasted",
        load=Load(64, 64, 4),
    ),
    Row(
        "kv_transfer", {"kv_transfer": "mooncake"}, "-", "0", "0", "0",
        "start-up, and what it sends while prefilling", POOLS | {"tp": 8, "prefill_tp": 8}, Load(8192, 64, 1),
    ),
)  # fmt: skip
