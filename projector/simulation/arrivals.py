"""Requests of a simulation: when they arrive, how long they are, what of them is cached; drawn from a seed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from projector.serving import Load
from projector.simulation.request_log import RequestLog

# Streams of random numbers, in the order they are spawned from the seed: what one draws never moves another.
STREAMS = ("arrivals", "input", "output", "speculation")


@dataclass(frozen=True)
class Requests:
    """Columns, one entry a request, in order of arrival.

    arrival_s       None: a closed loop, a request follows a finished one
    cached_tokens   prompt tokens whose keys and values are at hand when the request comes, by the traffic's statement
    decode_steps    steps that make the tokens after the first
    log             the recorded log they are of, with the blocks of each prompt; None: drawn
    """

    arrival_s: NDArray[np.float64] | None
    input_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    cached_tokens: NDArray[np.int64]
    decode_steps: NDArray[np.int64]
    log: RequestLog | None = None

    def __len__(self) -> int:
        return len(self.input_tokens)


@dataclass(frozen=True)
class Drafts:
    """Speculation: tokens drafted a step, and the chance that one is accepted given those before it (0 tokens: none).

    make_first: a decode step makes the first token too, as it does behind a prefill pool.

    A step makes 1 + (drafts accepted before the first refusal) tokens: (1 - a^(k+1)) / (1 - a) in the mean.
    """

    tokens: int = 0
    acceptance_frac: float = 0.0
    make_first: bool = False

    def steps(self, outputs: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
        """Decode steps of answers of so many tokens, drawn."""
        return self.make_first + self._making(outputs - 1, random)

    def _making(self, tokens: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
        """Steps that make so many tokens each after the first."""
        if self.tokens == 0 or self.acceptance_frac == 0:
            return tokens
        return np.array([self._steps(int(one), random) for one in tokens], dtype=np.int64)

    def _steps(self, tokens: int, random: np.random.Generator) -> int:
        """Steps until their sum reaches `tokens`: as many draws as tokens are always enough."""
        if tokens == 0:
            return 0
        made = np.minimum(random.geometric(1 - self.acceptance_frac, tokens), self.tokens + 1)
        return int(np.searchsorted(np.cumsum(made), tokens)) + 1


def drawn(load: Load, count: int, drafts: Drafts, seed: int) -> Requests:
    """So many requests of the traffic.

    Lengths are uniform over the whole numbers within length_spread_frac of their means; Poisson arrivals have
    exponential gaps, deterministic ones equal gaps.
    """
    random = dict(
        zip(STREAMS, map(np.random.default_rng, np.random.SeedSequence(seed).spawn(len(STREAMS))), strict=True)
    )
    inputs = _lengths(load.input_len, load.length_spread_frac, count, random["input"])
    outputs = _lengths(load.output_len, load.length_spread_frac, count, random["output"])
    return Requests(
        arrival_s=_arrivals(load, count, random["arrivals"]),
        input_tokens=inputs,
        output_tokens=outputs,
        cached_tokens=_cached(inputs, load.prefix_hit_frac),
        decode_steps=drafts.steps(outputs, random["speculation"]),
    )


def recorded(log: RequestLog, hit_frac: float, drafts: Drafts, seed: int) -> Requests:
    """The requests of a log. A log that names blocks says itself what is cached; else a share is, as stated."""
    random = np.random.default_rng(np.random.SeedSequence(seed).spawn(len(STREAMS))[STREAMS.index("speculation")])
    return Requests(
        arrival_s=log.arrival_s - log.arrival_s[0],
        input_tokens=log.input_tokens,
        output_tokens=log.output_tokens,
        cached_tokens=_cached(log.input_tokens, 0.0 if log.blocks else hit_frac),
        decode_steps=drafts.steps(log.output_tokens, random),
        log=log,
    )


def _arrivals(load: Load, count: int, random: np.random.Generator) -> NDArray[np.float64] | None:
    if load.arrivals == "closed":
        return None
    assert load.request_rate_per_s is not None, "an open loop has a rate"
    mean_s = 1 / load.request_rate_per_s
    if load.arrivals == "deterministic":
        return np.arange(count, dtype=np.float64) * mean_s
    return np.cumsum(random.exponential(mean_s, count))


def _lengths(mean: float, spread_frac: float, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    low, high = max(round(mean * (1 - spread_frac)), 1), round(mean * (1 + spread_frac))
    return random.integers(low, high, count, endpoint=True)


def _cached(inputs: NDArray[np.int64], hit_frac: float) -> NDArray[np.int64]:
    """At least one token of a prompt is computed: the first answer comes of it."""
    found: NDArray[np.int64] = np.minimum(np.floor(hit_frac * inputs), inputs - 1).astype(np.int64)
    return found
