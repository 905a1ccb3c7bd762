"""Rows and workloads of our own making in the ground-truth format: a small dense model on eight H100."""

import json
from collections.abc import Mapping
from typing import Any

from agents.evaluation.rows import MeasuredRow, Unreadable, read_rows
from agents.evaluation.workloads import Workload, read_workloads

LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 16,
    "hidden_size": 2048,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "intermediate_size": 8192,
    "vocab_size": 32000,
}
MIXTRAL = LLAMA | {
    "model_type": "mixtral",
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "tie_word_embeddings": False,
}


def row_values(name: str = "row-1", **changes: Any) -> dict[str, Any]:
    """A row as its file has it. Nested parts (hardware, adopted, measured, derived) are merged, the rest replaced."""
    values: dict[str, Any] = {
        "id": name,
        "workload_id": "small|h100|8",
        "group_id": "small|h100-sxm",
        "family": "small",
        "model": "small-1b",
        "phase": "pretrain",
        "source": "github:example/numbers@abc:table.md (line 3)",
        "framework": "Megatron-Core",
        "release": "1.0",
        "superseded": False,
        "arch": LLAMA,
        "arch_complete": True,
        "hardware": {"chip": "H100-SXM", "count": 8, "topology": None},
        "hardware_known": True,
        "precision_class": "bf16",
        "seq_len": 4096,
        "global_batch": 64,
        "micro_batch": 1,
        "adopted": {"dp": 8, "tp": 1, "pp": 1, "vp": 1, "cp": 1, "ep": 1, "recompute": "none", "extra": None},
        "measured": {"tokens_per_s_per_chip": 40_000},
        "derived": {},
        "flops_convention": None,
    }
    for key, value in changes.items():
        merged = isinstance(value, Mapping) and isinstance(values.get(key), dict) and key != "arch"
        values[key] = {**values[key], **value} if merged else value
    return values


def text_of(*values: Mapping[str, Any]) -> str:
    """Objects as lines."""
    return "".join(json.dumps(one) + "\n" for one in values)


def read(*values: Mapping[str, Any]) -> list[MeasuredRow | Unreadable]:
    """Objects through the reader."""
    return list(read_rows(text_of(*values), "rows.jsonl"))


def row(name: str = "row-1", **changes: Any) -> MeasuredRow:
    """One readable row."""
    found = read(row_values(name, **changes))[0]
    assert isinstance(found, MeasuredRow), found
    return found


def workload_values(name: str = "small|h100|8", **changes: Any) -> dict[str, Any]:
    """A workload as its file has it, whose expert is row-1."""
    return {
        "workload_id": name,
        "file": "training",
        "phase": "pretrain",
        "model": "small-1b",
        "family": "small",
        "chip": "H100-SXM",
        "count": 8,
        "precision": "bf16",
        "seq_len": 4096,
        "global_batch": 64,
        "nontrivial_parallelism": True,
        "topk_eligible": True,
        "expert_row_ids": ["row-1"],
        "row_ids": ["row-1"],
        "framework": ["Megatron-Core"],
        "stratum": "modern",
        "layout_key": name,
    } | changes


def workload(name: str = "small|h100|8", **changes: Any) -> Workload:
    """One readable workload."""
    found = next(iter(read_workloads(text_of(workload_values(name, **changes)), "workloads.jsonl")))
    assert isinstance(found, Workload), found
    return found


VTRAIN_HEADER = (
    "# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,"
    "tensor parallelism,data parallelism,pipeline parallelism,iteration time (ms)\n"
)
