"""Attention operators by name: forward and backward of the framework's backends and of the flash-attn package."""

from typing import Final

from traces.work.attention_calls import Places, attention_call
from traces.work.paged_attention import batch_prefill
from traces.work.rule import Rule, rules

_HEADS_FIRST: Final[tuple[tuple[str, Places], ...]] = (
    (r"aten::scaled_dot_product_attention", Places(causal=5, bias=3)),
    (r"aten::_scaled_dot_product_flash_attention(?:_for_cpu)?", Places(causal=4)),
    (r"aten::_scaled_dot_product_(?:efficient|cudnn)_attention", Places(causal=6, bias=3)),
    (r"aten::_scaled_dot_product_fused_attention_overrideable", Places(causal=5, bias=3)),
    (
        r"aten::_scaled_dot_product_flash_attention_backward",
        Places(1, 2, 3, 4, causal=11, lengths=(6, 7), longest=(8, 9), backward=True),
    ),
    (
        r"aten::_scaled_dot_product_efficient_attention_backward",
        Places(1, 2, 3, 5, causal=11, bias=4, backward=True),
    ),
    (
        r"aten::_scaled_dot_product_cudnn_attention_backward",
        Places(1, 2, 3, 4, causal=14, bias=8, lengths=(9, 10), longest=(11, 12), backward=True),
    ),
)
_TOKENS_FIRST: Final[tuple[tuple[str, Places], ...]] = (
    (
        r"aten::_flash_attention_forward",
        Places(causal=8, corner="bottom_right", window=(11, 12), lengths=(3, 4), longest=(5, 6), hiding=(13, 15)),
    ),
    (
        r"aten::_flash_attention_backward",
        Places(
            1, 2, 3, 4, causal=11, corner="bottom_right", window=(15, 16), lengths=(6, 7), longest=(8, 9), backward=True
        ),
    ),
    (
        r"aten::_efficient_attention_forward",
        Places(causal_kind=9, bias=3, lengths=(4, 5), longest=(6, 7), hiding=(12, 13)),
    ),
    (
        r"aten::_efficient_attention_backward",
        Places(1, 2, 3, 5, causal_kind=14, bias=4, lengths=(6, 7), longest=(8, 9), hiding=(18,), backward=True),
    ),
    (r"flash_attn::_flash_attn_forward", Places(causal=5, corner="bottom_right", window=(6, 7))),
    (
        r"flash_attn::_flash_attn_backward",
        Places(1, 2, 3, 4, causal=11, corner="bottom_right", window=(12, 13), backward=True),
    ),
    (
        r"flash_attn::_flash_attn_varlen_forward",
        Places(causal=9, corner="bottom_right", window=(10, 11), lengths=(3, 4), longest=(5, 6), hiding=(15, 16, 17)),
    ),
    (
        r"flash_attn::_flash_attn_varlen_backward",
        Places(
            1,
            2,
            3,
            4,
            causal=15,
            corner="bottom_right",
            window=(16, 17),
            lengths=(9, 10),
            longest=(11, 12),
            backward=True,
        ),
    ),
)

ATTENTION: Final[tuple[Rule, ...]] = rules(
    *((name, attention_call(places, "heads_first")) for name, places in _HEADS_FIRST),
    *((name, attention_call(places, "tokens_first")) for name, places in _TOKENS_FIRST),
    (r"aiter::mha_batch_prefill", batch_prefill),
)
