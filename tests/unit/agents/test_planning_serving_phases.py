"""What the phases of a serving engine say of the workload; other names say nothing."""

import pytest

from agents.planning.serving_phases import (
    decode_only,
    decoded_tokens,
    decoding_requests,
    prefill_only,
    prompt_tokens,
)
from traces.measures.serving import phases_of
from traces.steps import StepWindow


def phases(names):
    return phases_of(StepWindow(name, 10 * place, 10 * place + 5) for place, name in enumerate(names))


@pytest.mark.parametrize(
    ("names", "requests", "only", "tokens"),
    [
        (["step[DECODE bs=32]"], 32, True, 32),
        (["step[DECODE bs=32]", "step[DECODE bs=30]"], 32, True, 32),
        (["step[DECODE bs=32]", "step[IDLE bs=0]"], 32, True, 32),
        (["step[EXTEND bs=15 toks=15360]"], None, False, None),
        (["step[DECODE bs=32]", "step[EXTEND bs=1 toks=900]"], 32, False, None),
        (["execute_context_0(0_0)_generation_8(8_8192)"], 8, True, 8),
        (["execute_context_0(0)_generation_32(128)"], 32, True, 128),
        (["execute_8192_context_9(sq8155sk8430)_generation_37(sq37sk34489)"], 37, False, None),
        (["execute_context_1(888_788544)_generation_0(0_0)"], None, False, None),
        (["execute_new_0_cached_4"], None, False, None),
        (["ProfilerStep#4"], None, False, None),
        ([], None, False, None),
        (["step[DECODE bs=999999999999999999]"], None, False, None),
    ],
)
def test_requests_and_tokens_of_a_pass(names, requests, only, tokens):
    found = phases(names)
    assert (decoding_requests(found), decode_only(found), decoded_tokens(found)) == (requests, only, tokens)


@pytest.mark.parametrize(
    ("names", "tokens", "only"),
    [
        (["execute_context_1(888_788544)_generation_0(0)"], 888, True),
        (["execute_15360_context_15(sq15360sk15360sqsq15728640sqsk15728640)_generation_0(sq0sk0)"], 1024, True),
        (["execute_8192_context_9(sq8155sk8430)_generation_37(sq37sk34489)"], 937, False),
        (["step[EXTEND bs=15 toks=15360]"], 1024, True),
        (["step[EXTEND bs=1 toks=900]", "step[EXTEND bs=1 toks=1100]"], 1000, True),
        (["step[EXTEND bs=1 toks=900]", "step[DECODE bs=32]"], 900, False),
        (["step[DECODE bs=32]"], None, False),
        (["step[EXTEND bs=0 toks=0]"], None, False),
        (["execute_new_1_cached_3"], None, False),
        (["ProfilerStep#4"], None, False),
    ],
)
def test_prompts(names, tokens, only):
    assert (prompt_tokens(phases(names)), prefill_only(phases(names))) == (tokens, only)
