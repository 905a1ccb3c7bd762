"""What serving engines write into the names of their iterations: which requests ran, and on how many tokens.

vLLM      execute_context_2(6144)_generation_3(3): 2 requests in prefill with 6144 new tokens, 3 in decode with 3.
          execute_6147_context_2(sq6144sk7144sqsq..sqsk..)_generation_3(sq3sk6144..): the same with the sums of query
          (sq) and key (sk) lengths: the prompts have reached 7144 tokens. In context_1(888_788544) the second number is
          a sum of squares. execute_new_1_cached_4 (2025): 1 request begins, 4 go on, in prefill or decode.
SGLang    step[EXTEND bs=2 toks=14721], step[DECODE bs=64], step[MIXED bs=5 c=2 g=3 c_sq=6144 c_sk=7144 g_sq=3 ..]
ATOM      prefill[bs=2 tok=14721 ..], decode[bs=117/128 tok=117 p=2 d=115 ..]: 117 requests in a graph for 128
TensorRT  [Executor] _forward_step 7: 2 ctx reqs, 512 ctx tokens, 30 gen reqs

Sources: vllm/v1/worker/gpu_worker.py (annotate_profile), sglang/srt/model_executor (step span names and ForwardMode),
TensorRT-LLM _torch/pyexecutor/py_executor.py (_forward_step); ATOM's from the tests of TraceLens, which reads them.
Names are foreign text: only these forms are read, and of them only counts.
"""

import re
from dataclasses import dataclass
from typing import Final

from traces.kernel_names import LONGEST_NAME
from traces.measure_types import ServingPhaseName
from traces.remembered import remembered

_CACHED_NAMES: Final = 16_384

_VLLM: Final = re.compile(
    r"execute_(?:\d{1,9}_)?context_(\d{1,6})(?:\(([^()]{0,120})\))?_generation_(\d{1,6})(?!\d)(?:\(([^()]{0,120})\))?"
)
_VLLM_NEW: Final = re.compile(r"execute_new_(\d{1,6})_cached_(\d{1,6})(?!\d)")
_SGLANG: Final = re.compile(r"step\[([A-Z][A-Z0-9_]{1,23}) bs=(\d{1,6})(?!\d)([^\[\]]{0,400})\]")
_ATOM: Final = re.compile(r"(prefill|decode)\[bs=(\d{1,6})(?:/\d{1,6})? tok=(\d{1,9})(?!\d)")
_TENSORRT: Final = re.compile(
    r"\[Executor\] _forward_step \d{1,12}: (\d{1,6}) ctx reqs, (?:(\d{1,9}) ctx tokens, )?(\d{1,6}) gen reqs"
)
_LENGTHS: Final = re.compile(r"sq(\d{1,12})sk(\d{1,12})|(\d{1,12})(?:_\d{1,24})?$")
_FIELD: Final = re.compile(r"(?<!\w)(toks|c|g|c_sq|c_sk|g_sq|p|d|sk)=(\d{1,12})(?!\d)")

FAMILIES: Final = (_VLLM, _VLLM_NEW, _SGLANG, _ATOM, _TENSORRT)
"""Forms by how much they tell: where an engine marks one iteration in two of them, the first counts."""

_PREFILL_MODES: Final = frozenset({"EXTEND", "SPLIT_PREFILL", "PREFILL"})
_SPECULATIVE_MODES: Final = frozenset({"TARGET_VERIFY", "DRAFT_EXTEND", "DRAFT_EXTEND_V2"})


@dataclass(frozen=True, slots=True)
class ServingStep:
    """One iteration as its name tells it. None: the name does not say.

    requests        all of them
    prompts         those in prefill, a chunk of a prompt counting as one
    prompt_tokens   new tokens of these prompts
    reached_tokens  length these prompts have after the iteration, cached and earlier tokens included
    decoding        requests in decode
    decode_tokens   tokens these requests ask for; more than one each where several are guessed at once
    """

    phase: ServingPhaseName
    requests: int | None
    prompts: int | None = None
    prompt_tokens: int | None = None
    reached_tokens: int | None = None
    decoding: int | None = None
    decode_tokens: int | None = None


def family_of(name: str) -> int | None:
    """Index in `FAMILIES` of the form a name has, or None."""
    return next((at for at, form in enumerate(FAMILIES) if form.match(name, 0, LONGEST_NAME)), None)


@remembered(_CACHED_NAMES)
def serving_step(name: str) -> ServingStep | None:
    """What the name of an iteration tells, None where it is none of an engine that is known here."""
    if match := _VLLM.match(name, 0, LONGEST_NAME):
        prompts, decoding = int(match[1]), int(match[3])
        new, reached = _lengths(match[2])
        return _step(prompts, decoding, new, reached, _lengths(match[4])[0])
    if match := _VLLM_NEW.match(name, 0, LONGEST_NAME):
        return _begun_and_going_on(int(match[1]), int(match[2]))
    if match := _SGLANG.match(name, 0, LONGEST_NAME):
        return _sglang(match[1], int(match[2]), _fields(match[3]))
    if match := _ATOM.match(name, 0, LONGEST_NAME):
        return _atom(match[1], int(match[2]), int(match[3]), _fields(name[match.end() : LONGEST_NAME]))
    if match := _TENSORRT.match(name, 0, LONGEST_NAME):
        return _step(int(match[1]), int(match[3]), int(match[2]) if match[2] else None, None, None)
    return None


def _step(
    prompts: int, decoding: int, prompt_tokens: int | None, reached: int | None, decode_tokens: int | None
) -> ServingStep:
    """A step of known composition; token counts that cannot be (fewer than one a request) are taken as not stated."""
    new = _believed(prompts, prompt_tokens)
    return ServingStep(
        phase=_phase(prompts, decoding),
        requests=prompts + decoding,
        prompts=prompts,
        prompt_tokens=new,
        reached_tokens=_believed(new or prompts, reached),
        decoding=decoding,
        decode_tokens=_believed(decoding, decode_tokens),
    )


def _phase(prompts: int, decoding: int) -> ServingPhaseName:
    if prompts:
        return "mixed" if decoding else "prefill"
    return "decode" if decoding else "idle"


def _believed(least: int, tokens: int | None) -> int | None:
    if least == 0:
        return 0
    return tokens if tokens is not None and tokens >= least else None


def _begun_and_going_on(begun: int, going_on: int) -> ServingStep:
    """Requests that go on may still be in prefill, a chunk each: only steps without one have a phase."""
    if not going_on:
        return _step(begun, 0, None, None, None)
    return ServingStep(phase="unknown", requests=begun + going_on)


def _sglang(mode: str, batch: int, fields: dict[str, int]) -> ServingStep:
    if not batch or mode == "IDLE":
        return _step(0, 0, None, None, None)
    if mode in _PREFILL_MODES:
        return _step(batch, 0, fields.get("toks"), fields.get("c_sk"), None)
    if mode == "DECODE":
        return _step(0, batch, None, None, fields.get("g_sq", batch))
    if mode in _SPECULATIVE_MODES:
        # the draft's guesses, or the check of them: how many tokens come of it is not stated
        return _step(0, batch, None, None, None)
    if mode == "MIXED" and "c" in fields and "g" in fields:
        return _step(fields["c"], fields["g"], fields.get("c_sq"), fields.get("c_sk"), fields.get("g_sq"))
    return ServingStep(phase="mixed" if mode == "MIXED" else "unknown", requests=batch)


def _atom(phase: str, batch: int, tokens: int, fields: dict[str, int]) -> ServingStep:
    if not batch:
        return _step(0, 0, None, None, None)
    if phase == "prefill":
        return _step(batch, 0, tokens, fields.get("sk"), None)
    prompts = fields.get("p", 0)
    if not prompts:
        return _step(0, batch, None, None, tokens)
    return _step(prompts, fields.get("d", max(batch - prompts, 0)), None, None, None)


def _lengths(text: str | None) -> tuple[int | None, int | None]:
    """(new tokens, tokens reached) of one group of requests."""
    match = _LENGTHS.match(text or "")
    if match is None:
        return None, None
    return (int(match[1]), int(match[2])) if match[1] else (int(match[3]), None)


def _fields(text: str) -> dict[str, int]:
    return {key: int(value) for key, value in _FIELD.findall(text)}
