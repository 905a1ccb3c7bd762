"""What serving engines write into the names of their steps: how many requests decode in one, how long prompts are.

SGLang: step[DECODE bs=32], step[EXTEND bs=15 toks=15360].
vLLM: execute_8192_context_9(sq8155sk8430...)_generation_37(sq37sk34489...), where the first number may be missing;
the n prompts of a pass bring sq new tokens to sk in all. An older form, context_1(888_788544), writes the sum and the
sum of squares of the new tokens.
Names are foreign text; only these forms are read, and only their counts.
"""

import re
from collections.abc import Iterable

SGLANG_DECODE = re.compile(r"step\[DECODE bs=(\d{1,6})\b")
SGLANG_EXTEND = re.compile(r"step\[EXTEND bs=(\d{1,6}) toks=(\d{1,9})\b")
VLLM_STEP = re.compile(r"execute_(?:\d{1,7}_)?context_(\d{1,6})(?:\([^)]*\))?_generation_(\d{1,6})\b")
VLLM_PROMPTS = re.compile(r"execute_(?:\d{1,7}_)?context_(\d{1,6})\((?:sq\d{1,9}sk(\d{1,9})|(\d{1,9})_\d{1,18}\))")


def decoding_requests(names: Iterable[str]) -> int | None:
    """Most requests that decode in one of the steps; None where no name says so or none decodes."""
    return max((count for count, _ in map(_counts, names) if count), default=None)


def decode_only(names: Iterable[str]) -> bool:
    """Whether every step is named as one that only decodes."""
    counts = [_counts(name) for name in names]
    return bool(counts) and all(decoding and not prefilling for decoding, prefilling in counts)


def prefill_only(names: Iterable[str]) -> bool:
    """Whether steps are named as ones that prefill prompts, and none decodes."""
    names = tuple(names)
    return any(_prompts(name) for name in names) and decoding_requests(names) is None


def prompt_tokens(names: Iterable[str]) -> int | None:
    """Mean tokens of the prompts that the steps prefill, up to where these leave them; None without such steps."""
    found = [prompts for prompts in map(_prompts, names) if prompts is not None]
    requests = sum(count for count, _ in found)
    return round(sum(tokens for _, tokens in found) / requests) if requests else None


def _prompts(name: str) -> tuple[int, int] | None:
    """(prompts in the step, tokens they have reached in all)."""
    if match := SGLANG_EXTEND.match(name):
        count, tokens = int(match[1]), int(match[2])
    elif match := VLLM_PROMPTS.match(name):
        count, tokens = int(match[1]), int(match[2] or match[3])
    else:
        return None
    return (count, tokens) if count and tokens >= count else None


def _counts(name: str) -> tuple[int, bool]:
    """(requests that decode, whether prompts are prefilled beside them); (0, True) where the name does not say."""
    if match := SGLANG_DECODE.match(name):
        return int(match[1]), False
    if match := VLLM_STEP.match(name):
        return int(match[2]), int(match[1]) > 0
    return 0, True
