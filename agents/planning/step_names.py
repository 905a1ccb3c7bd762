"""What serving engines write into the names of their steps: how many requests decode in one.

SGLang: step[DECODE bs=32]. vLLM: execute_8192_context_9(...)_generation_37(...), where the first number may be missing.
Names are foreign text; only these two forms are read, and only their counts.
"""

import re
from collections.abc import Iterable

SGLANG_DECODE = re.compile(r"step\[DECODE bs=(\d{1,6})\b")
VLLM_STEP = re.compile(r"execute_(?:\d{1,7}_)?context_(\d{1,6})(?:\([^)]*\))?_generation_(\d{1,6})\b")


def decoding_requests(names: Iterable[str]) -> int | None:
    """Most requests that decode in one of the steps; None where no name says so or none decodes."""
    return max((count for count, _ in map(_counts, names) if count), default=None)


def decode_only(names: Iterable[str]) -> bool:
    """Whether every step is named as one that only decodes."""
    counts = [_counts(name) for name in names]
    return bool(counts) and all(decoding and not prefilling for decoding, prefilling in counts)


def _counts(name: str) -> tuple[int, bool]:
    """(requests that decode, whether prompts are prefilled beside them); (0, True) where the name does not say."""
    if match := SGLANG_DECODE.match(name):
        return int(match[1]), False
    if match := VLLM_STEP.match(name):
        return int(match[2]), int(match[1]) > 0
    return 0, True
