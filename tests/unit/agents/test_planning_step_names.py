"""Counts that serving engines write into step names; other names say nothing."""

import pytest

from agents.planning.step_names import decode_only, decoding_requests


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
