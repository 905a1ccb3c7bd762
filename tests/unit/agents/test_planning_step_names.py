"""Counts that serving engines write into step names; other names say nothing."""

import pytest

from agents.planning.step_names import decode_only, decoding_requests, prefill_only, prompt_tokens


@pytest.mark.parametrize(
    ("names", "requests", "only"),
    [
        (["step[DECODE bs=32]"], 32, True),
        (["step[DECODE bs=32]", "step[DECODE bs=30]"], 32, True),
        (["step[EXTEND bs=15 toks=15360]"], None, False),
        (["step[DECODE bs=32]", "step[EXTEND bs=1 toks=900]"], 32, False),
        (["execute_context_0(0_0)_generation_8(8_8192)"], 8, True),
        (["execute_8192_context_9(sq8155sk8430)_generation_37(sq37sk34489)"], 37, False),
        (["execute_context_1(888_788544)_generation_0(0_0)"], None, False),
        (["ProfilerStep#4"], None, False),
        ([], None, False),
        (["step[DECODE bs=999999999999999999]"], None, False),
    ],
)
def test_counts(names, requests, only):
    assert (decoding_requests(names), decode_only(names)) == (requests, only)


@pytest.mark.parametrize(
    ("names", "tokens", "only"),
    [
        (["execute_context_1(888_788544)_generation_0(0)"], 888, True),
        (["execute_15360_context_15(sq15360sk15360sqsq15728640sqsk15728640)_generation_0(sq0sk0)"], 1024, True),
        (["execute_8192_context_9(sq8155sk8430)_generation_37(sq37sk34489)"], 937, False),
        (["step[EXTEND bs=15 toks=15360]"], 1024, True),
        (["step[EXTEND bs=1 toks=900]", "step[EXTEND bs=1 toks=1100]"], 1000, True),
        (["step[DECODE bs=32]"], None, False),
        (["step[EXTEND bs=0 toks=0]"], None, False),
        (["ProfilerStep#4"], None, False),
    ],
)
def test_prompts(names, tokens, only):
    assert (prompt_tokens(names), prefill_only(names)) == (tokens, only)
