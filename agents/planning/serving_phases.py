"""What a serving engine's own phases say of the job: how many requests decode in a pass, how long prompts are."""

from collections.abc import Sequence

from traces.measure_types import ServingPhase

_DECODING = frozenset({"decode", "idle"})
_PREFILLING = frozenset({"prefill", "idle"})


def decoding_requests(phases: Sequence[ServingPhase]) -> int | None:
    """Most requests that decode in one step; None where no phase says so or none decodes."""
    return max((phase.decoding_max for phase in phases if phase.decoding_max), default=None)


def decode_only(phases: Sequence[ServingPhase]) -> bool:
    """Whether every step with requests only decodes, and there is one."""
    return decoding_requests(phases) is not None and all(phase.phase in _DECODING for phase in phases)


def prefill_only(phases: Sequence[ServingPhase]) -> bool:
    """Whether steps prefill prompts, and none decodes."""
    return any(phase.prompts for phase in phases) and all(phase.phase in _PREFILLING for phase in phases)


def decoded_tokens(phases: Sequence[ServingPhase]) -> int | None:
    """Tokens of one pass where every step only decodes; None elsewhere.

    One for each request, more where several are guessed at once and the engine says how many.
    """
    if not decode_only(phases):
        return None
    (decode,) = (phase for phase in phases if phase.phase == "decode")
    mean = 0 if decode.decode_tokens is None else round(decode.decode_tokens / decode.steps)
    return max(decode.decoding_max or 0, mean)


def prompt_tokens(phases: Sequence[ServingPhase]) -> int | None:
    """Mean tokens of the prompts that the steps prefill, up to where these leave them; None where it is not said."""
    tokens = prompts = 0
    for phase in phases:
        reached = phase.prefill_tokens if phase.reached_tokens is None else phase.reached_tokens
        if phase.prompts and reached is not None:
            tokens += reached
            prompts += phase.prompts
    return round(tokens / prompts) if prompts else None
