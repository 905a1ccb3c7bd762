"""Attention: 2 B H P (D + V) operations forward; the pairs P a mask leaves are counted one by one."""

import pytest

from tests.unit.work.work_examples import BF16, FP32, known, work
from traces.work.attention import Mask, pairs_of

Q = ([2, 4, 16, 8], BF16)
GROUPED = ([2, 2, 16, 8], BF16)


def visible(queries: int, keys: int, mask: Mask) -> int:
    """The pairs, counted."""
    shift = 0 if mask.corner == "top_left" else keys - queries
    return sum(
        1
        for query in range(queries)
        for key in range(keys)
        if (not mask.causal or key <= query + shift)
        and (mask.right < 0 or key <= query + shift + mask.right)
        and (mask.left < 0 or key >= query + shift - mask.left)
    )


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (5, 5), (3, 7), (7, 3), (1, 9)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("left", "right"), [(-1, -1), (2, -1), (-1, 1), (0, 0), (3, 2)])
@pytest.mark.parametrize("corner", ["top_left", "bottom_right"])
def test_pairs_are_what_counting_gives(queries, keys, causal, left, right, corner):
    mask = Mask(causal, left, 0 if causal else right, corner)
    assert pairs_of(queries, keys, mask) == visible(queries, keys, mask)


def test_full_attention():
    found = known("aten::_scaled_dot_product_flash_attention", Q, Q, Q, "0.", "False", "False")
    assert found.flop == 4 * 2 * 4 * 16 * 16 * 8
    assert found.moved_bytes == 4 * 2 * 4 * 16 * 8 * 2


def test_causal_attention_counts_the_diagonal():
    found = known("aten::_scaled_dot_product_flash_attention", Q, Q, Q, "0.", "True", "False")
    assert found.flop == 4 * 2 * 4 * (16 * 17 // 2) * 8


def test_a_mask_that_is_not_recorded_is_not_guessed():
    assert work("aten::_scaled_dot_product_flash_attention", Q, Q, Q, "0.", None) is None


def test_grouped_queries_read_fewer_keys():
    found = known("aten::scaled_dot_product_attention", Q, GROUPED, GROUPED, None, "0.", "False")
    query, key = 2 * 4 * 16 * 8 * 2, 2 * 2 * 16 * 8 * 2
    assert found.moved_bytes == 2 * query + 2 * key
    assert found.flop == 4 * 2 * 4 * 16 * 16 * 8


def test_backward_is_five_products():
    forward = known("aten::_scaled_dot_product_flash_attention", Q, Q, Q, "0.", "False", "False")
    lse = ([2, 4, 16], FP32)
    found = known(
        "aten::_scaled_dot_product_flash_attention_backward",
        Q, Q, Q, Q, Q, lse, None, None, "16", "16", "0.", "False",
    )  # fmt: skip
    assert forward.flop is not None
    assert found.flop == forward.flop * 5 // 2
    assert found.moved_bytes == 9 * 2 * 4 * 16 * 8 * 2


def test_a_bias_is_read():
    bias = ([2, 1, 16, 16], BF16)
    found = known("aten::_scaled_dot_product_efficient_attention", Q, Q, Q, bias, "True", "0.", "False")
    assert found.moved_bytes == 4 * 2 * 4 * 16 * 8 * 2 + 2 * 16 * 16 * 2


def test_tokens_first_with_a_window():
    q = ([2, 16, 4, 8], BF16)
    literals = ("16", "16", "0.", "True", "False", "0.35", "3", "0")
    found = known("aten::_flash_attention_forward", q, q, q, None, None, *literals)
    assert found.flop == 4 * 4 * 2 * 8 * pairs_of(16, 16, Mask(True, 3, 0, "bottom_right"))


def packed(tokens: int, longest: str, *, causal: str = "True"):
    q, bounds = ([tokens, 4, 8], BF16), ([4], "int")
    return work("aten::_flash_attention_forward", q, q, q, bounds, bounds, longest, longest, "0.", causal, "False")


def test_packed_sequences_of_one_length_are_known():
    found = packed(48, "16")
    assert found is not None
    assert found.flop == 4 * 3 * 4 * 8 * (16 * 17 // 2)


def test_packed_sequences_of_other_lengths_are_unknown():
    assert packed(40, "16") is None


def test_paged_prefill_of_equal_prompts_is_known():
    q, pages, bounds = ([48, 4, 8], BF16), ([9999, 2, 8], BF16), ([4], "int")
    literals = ("16", "16", "0.", "0.35", "0.", "False", "True", "-1", "-1")
    found = known("aiter::mha_batch_prefill", q, pages, pages, bounds, bounds, ([60], "int"), *literals)
    assert found.flop == 4 * 3 * 4 * 8 * (16 * 17 // 2)
    assert found.moved_bytes == (2 * 48 * 4 * 8 + 2 * 48 * 2 * 8) * 2


def test_paged_prefill_with_a_prefix_is_unknown():
    q, pages, bounds = ([48, 4, 8], BF16), ([9999, 2, 8], BF16), ([4], "int")
    literals = ("16", "300", "0.", "0.35", "0.", "False", "True", "-1", "-1")
    assert work("aiter::mha_batch_prefill", q, pages, pages, bounds, bounds, ([60], "int"), *literals) is None


def test_attention_over_a_cache_of_unknown_length_is_unknown():
    q = ([888, 8, 64], BF16)
    assert work("vllm::unified_attention_with_output", q, q, q, q) is None


def test_a_block_table_hides_the_lengths():
    q, cache, bounds = ([48, 4, 8], BF16), ([100, 16, 4, 8], BF16), ([4], "int")
    inputs = (q, cache, cache, bounds, bounds, "16", "16", "0.", "0.35", "True", "-1", "-1")
    assert work("flash_attn::_flash_attn_varlen_forward", *inputs) is None
