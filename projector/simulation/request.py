"""One request on its way through an engine, and what a rank may do at once."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from projector.simulation.scheduler import Rank


class Request:
    """What happens to one request. Times in seconds, -1 where it has not happened yet."""

    __slots__ = (
        "arrival_s",
        "base_context",
        "base_step",
        "blocks",
        "cached_tokens",
        "claim_bytes",
        "done",
        "epoch",
        "finish_s",
        "first_s",
        "growth",
        "index",
        "input_tokens",
        "last_s",
        "output_tokens",
        "prefilled",
        "rank",
        "ready_step",
        "shared",
        "started_s",
        "steps_left",
        "target",
    )

    def __init__(
        self,
        index: int,
        arrival_s: float,
        input_tokens: int,
        output_tokens: int,
        decode_steps: int,
        cached_tokens: int,
        blocks: tuple[int, ...],
        rank: "Rank",
    ) -> None:
        self.rank = rank
        self.index = index
        self.arrival_s = arrival_s
        self.target = input_tokens  # tokens to prefill before the next token comes
        self.done = 0  # tokens of them that are prefilled
        self.steps_left = decode_steps
        self.growth = (output_tokens - 1) / decode_steps if decode_steps else 0.0
        self.cached_tokens = cached_tokens
        self.blocks = blocks
        self.shared: tuple[int, ...] = ()  # blocks held in common with others
        self.base_context = 0.0  # tokens held at the step `base_step`, from which on it decodes
        self.base_step = 0
        self.prefilled = False  # elsewhere: its keys and values come with it
        self.claim_bytes = 0.0  # of the pool while it runs, at the length it is admitted with
        self.input_tokens, self.output_tokens = input_tokens, output_tokens
        self.ready_step = 0  # from this step of a busy engine on it may be admitted
        self.epoch = 0  # counts its turns of decoding: older entries of the heap are void
        self.started_s = self.first_s = self.last_s = self.finish_s = -1.0

    def context(self, step: int) -> float:
        """Tokens held at a step, while decoding."""
        return self.base_context + self.growth * (step - self.base_step)


@dataclass(frozen=True)
class Limits:
    """What a rank may do at once: requests it runs, prefill tokens and tokens a step.

    chunk_tokens 0: one whole prompt a step; step_tokens 0: any number. rows: tokens a decoding request brings to a step
    (1, and its drafts); slots: pipeline stages, over which decoding requests are spread, each with its own budget.
    admission: what has to fit before a request starts (`ServingStack.admission`): its prompt (greedy), its whole answer
    beside those of all others (reserve), or all of them as they grow and end (mean: an engine that estimates how much
    is still to come, here without error).
    """

    seats: int
    chunk_tokens: int
    step_tokens: int
    rows: int = 1
    slots: int = 1
    admission: Literal["mean", "reserve", "greedy"] = "greedy"

    def prefill_tokens(self, decoding: int, prompt: int) -> int:
        """Prefill tokens a step takes beside so many decoding requests; prompt: what is left of the first one."""
        chunk = self.chunk_tokens or prompt
        if not self.step_tokens:
            return chunk
        return min(chunk, self.step_tokens - decoding * self.rows // self.slots)
