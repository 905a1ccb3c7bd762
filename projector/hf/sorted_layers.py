"""Families whose layers differ: the reader of each, and the keys it reads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from projector.hf import gemma4, nemotron_h, qwen_hybrid
from projector.hf.fields import Config
from projector.hf.layers import Layers


@dataclass(frozen=True)
class LayerReader:
    """How a family's layers are read, and the keys that takes beyond the common ones."""

    read: Callable[[Config], Layers]
    keys: frozenset[str]


READERS: Mapping[str, LayerReader] = {
    "nemotron_h": LayerReader(nemotron_h.read, nemotron_h.KEYS),
    **dict.fromkeys(
        ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"), LayerReader(qwen_hybrid.read, qwen_hybrid.KEYS)
    ),
    "gemma4_text": LayerReader(gemma4.read, gemma4.KEYS),
}
