"""Engines whose steps take a made-up time, so that a queue's figures are known in closed form."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from projector.simulation.arrivals import Requests
from projector.simulation.fleet import Outcome, Routing, run
from projector.simulation.pool import Pool, PrefixCache
from projector.simulation.replica import Counts, Replica
from projector.simulation.request import Limits
from projector.simulation.request_log import RequestLog
from projector.simulation.scheduler import Rank
from projector.simulation.step_times import StepTimes

ROOMY = Pool(bytes_=1e15, request_bytes=0.0, token_bytes=1.0, block_tokens=16)


def steps(decode_s: float = 1.0, mixed_s: float | None = None, *, by_context: float = 0.0) -> StepTimes:
    """Steps of `decode_s`, with prefill of `mixed_s`; longer by `by_context` a token of mean context beyond a bend."""
    mixed_s = decode_s if mixed_s is None else mixed_s
    n, context = np.array([0.0, 1.0, 4096.0]), np.array([1.0, 100.0, 300.0, 20000.0])
    tokens, prompt = np.array([1.0, 4096.0]), np.array([1.0, 40000.0])
    longer = by_context * np.array([0.0, 0.0, 200.0, 200.0 + 2 * 19700.0])
    decode = np.broadcast_to(decode_s + longer, (3, 4)).copy()
    mixed = np.broadcast_to((mixed_s + longer)[:, None, None], (3, 4, 2, 2)).copy()
    return StepTimes(n, context, context, tokens, prompt, decode, mixed)


def requests(
    arrival_s: "NDArray[np.float64] | None",
    input_tokens: "NDArray[np.int64] | int",
    output_tokens: "NDArray[np.int64] | int",
    *,
    count: int = 0,
    log: RequestLog | None = None,
) -> Requests:
    count = count or (0 if arrival_s is None else len(arrival_s))
    inputs, outputs = (np.broadcast_to(np.asarray(x, dtype=np.int64), (count,)) for x in (input_tokens, output_tokens))
    return Requests(arrival_s, inputs, outputs, np.zeros(count, dtype=np.int64), outputs - 1, log)


@dataclass
class Ran:
    """An outcome with its counts and ranks, and the columns tests ask for, in order of arrival."""

    outcome: Outcome
    counts: Counts
    ranks: list[Rank]

    def column(self, name: str) -> "NDArray[np.float64]":
        in_order = sorted(self.outcome.finished, key=lambda request: request.index)
        return np.array([getattr(request, name) for request in in_order])

    @property
    def queue_s(self) -> "NDArray[np.float64]":
        return self.column("started_s") - self.column("arrival_s")


def ran(
    of: Requests,
    times: StepTimes,
    *,
    limits: Limits | None = None,
    pool: Pool = ROOMY,
    replicas: int = 1,
    ranks: int = 1,
    routing: Routing = "least_loaded",
    clients: int = 1,
    warmup: int = 0,
    measured: int | None = None,
    request_s: float = 0.0,
    engine: type[Replica] = Replica,
) -> Ran:
    limits = limits or Limits(seats=1, chunk_tokens=0, step_tokens=0)
    counts = Counts()
    by_blocks = of.log is not None and of.log.blocks
    caches = [PrefixCache(of.log.block_tokens) if by_blocks and of.log else None for _ in range(ranks * replicas)]
    made = [
        engine([Rank(pool, limits, caches[ranks * i + rank]) for rank in range(ranks)], times, counts)
        for i in range(replicas)
    ]
    outcome = run(
        of,
        made,
        counts,
        routing=routing,
        clients=clients,
        warmup=warmup,
        measured=len(of) if measured is None else measured,
        request_s=request_s,
    )
    return Ran(outcome, counts, [rank for one in made for rank in one.ranks])
