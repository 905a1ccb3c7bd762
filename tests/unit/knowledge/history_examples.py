"""Past cases made by hand for the tests of history: no row of a published workload."""

from typing import Any

from knowledge_base.past import PastCase, PastQuestion

DENSE = {
    "parameters": 8e9,
    "active_parameters": 8e9,
    "layers": 32,
    "hidden_size": 4096,
    "heads": 32,
    "kv_heads": 8,
    "experts": 0,
}
MIXTURE = DENSE | {"parameters": 30e9, "active_parameters": 3e9, "experts": 128}
SOURCE = {"title": "a report", "url": "https://example.org/report", "date": "2025-06-01"}


def published(case_id: str, **changes: Any) -> PastCase:
    """A dense model of 8 billion parameters on 64 H100, its layout and speed."""
    return PastCase.model_validate(
        {
            "id": case_id,
            "kind": "published",
            "role": "adopted",
            "phase": "training",
            "task": "pretrain",
            "model": "made-up-8b",
            "family": "made-up-8b",
            "architecture": DENSE,
            "chip": "h100-sxm",
            "chips": 64,
            "framework": "Megatron-LM",
            "release": "0.12",
            "precision": "bf16",
            "seq_len": 4096,
            "global_batch": 256,
            "layout": {"dp": 16, "tp": 4, "pp": 1, "cp": 1, "ep": 1},
            "effect": {"metric": "tokens/s per chip", "after": 9000.0, "unit": "tokens/s/chip"},
            "source": SOURCE,
        }
        | changes
    )


def change(case_id: str, **changes: Any) -> PastCase:
    """Tensor parallelism from 2 to 4 on the same job, which made it faster."""
    return published(
        case_id,
        **(
            {
                "kind": "change",
                "role": None,
                "bottleneck": "communication",
                "baseline": {"dp": 32, "tp": 2},
                "levers": ("tensor_parallelism",),
                "effect": {"metric": "step time", "unit": "s", "before": 2.0, "after": 1.6, "ratio": 1.25}
                | {"outcome": "improved"},
            }
            | changes
        ),
    )


def question(**changes: Any) -> PastQuestion:
    """The job of `published`, asked about."""
    return PastQuestion.model_validate(
        {
            "phase": "training",
            "model": "made-up-8b",
            "architecture": DENSE,
            "chip": "h100-sxm",
            "chips": 64,
            "precision": "bf16",
            "seq_len": 4096,
            "global_batch": 256,
        }
        | changes
    )
