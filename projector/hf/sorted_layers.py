"""Families whose layers differ: the reader of each, and the keys it reads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from projector.hf import gemma4, kimi_linear, mamba_hybrids, nemotron_h, qwen_hybrid, sparse, uneven
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
    **dict.fromkeys(("deepseek_v32", "glm_moe_dsa"), LayerReader(sparse.read, sparse.KEYS)),
    **dict.fromkeys(("minimax_m3", "minimax_m3_vl_text"), LayerReader(sparse.read_minimax, sparse.KEYS_OF_MINIMAX)),
    "jamba": LayerReader(mamba_hybrids.read_jamba, mamba_hybrids.JAMBA_KEYS),
    "granitemoehybrid": LayerReader(mamba_hybrids.read_granite, mamba_hybrids.GRANITE_KEYS),
    "bamba": LayerReader(mamba_hybrids.read_bamba, mamba_hybrids.BAMBA_KEYS),
    "falcon_h1": LayerReader(mamba_hybrids.read_falcon_h1, mamba_hybrids.FALCON_KEYS),
    "minimax": LayerReader(mamba_hybrids.read_minimax, mamba_hybrids.MINIMAX_KEYS),
    "mimo_v2_flash": LayerReader(uneven.read_mimo, uneven.MIMO_KEYS),
    "nemotron-nas": LayerReader(uneven.read_nas, uneven.NAS_KEYS),
    "kimi_linear": LayerReader(kimi_linear.read, kimi_linear.KEYS),
    "gemma4_text": LayerReader(gemma4.read, gemma4.KEYS),
}
