"""The engines of a simulated plan: their ranks with rooms and step times, and the way between two pools."""

import math
from dataclasses import dataclass, replace

import numpy as np

from projector.cost.kv_transfer import transfer
from projector.cost.pools import decode_pool, prefill_pool
from projector.cost.token_budget import most_decoding
from projector.serving import Load
from projector.simulation.arrivals import Requests
from projector.simulation.pool import Pool, PrefixCache
from projector.simulation.replica import Counts, Replica
from projector.simulation.request import Limits
from projector.simulation.request_log import RequestLog
from projector.simulation.scheduler import Rank
from projector.simulation.step_times import Ranges, StepTimes
from projector.simulation.tabulate import Deployment, pool, step_times
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import WorkloadSpec

# Lengths of prompts whose transfer is priced.
LENGTHS = 16


@dataclass(frozen=True)
class Traffic:
    """What arrives: the requests, those that are warm-up, clients of a closed loop (of an open one: all that come).

    offered_per_s: requests an open loop sends a second; None: a closed loop, or a log.
    """

    requests: Requests
    warmup: int
    measured: int
    clients: int
    offered_per_s: float | None = None


@dataclass(frozen=True)
class Pools:
    """The engines that answer, and those of a prefill pool before them ([]: none) with the way between, by request."""

    engines: list[Replica]
    front: list[Replica]
    handover_s: list[float]


def engines_of(of: Deployment, batch: PlanBatch, workload: WorkloadSpec, traffic: Traffic, counts: Counts) -> Pools:
    """All engines of the plan, idle; what those that answer do is summed in `counts`."""
    plan, log = of.plan, traffic.requests.log
    if not plan.prefill_replicas:
        room, times = _tables(of, workload, traffic)
        return Pools([_replica(of, room, times, counts, log) for _ in range(plan.replicas)], [], [])
    decode = replace(of, plan=decode_pool(batch)[0])
    prefill = replace(of, plan=prefill_pool(batch)[0], follows=True)
    # whole prompts come to the decode engines, whatever a prefill engine had cached
    room, times = _tables(decode, workload.model_copy(update={"prefix_hit_frac": None}), traffic)
    engines = [_replica(decode, room, times, counts, None) for _ in range(plan.replicas)]
    room, times = _tables(prefill, workload, traffic, answers=False)
    front = [_replica(prefill, room, times, Counts(), log) for _ in range(plan.prefill_replicas)]
    return Pools(engines, front, _handover_s(of, batch, times, traffic.requests))


def _handover_s(of: Deployment, batch: PlanBatch, times: StepTimes, requests: Requests) -> list[float]:
    """Seconds from the end of each prompt's prefill until a decode engine has its keys and values: the stages it still
    passes, what of the transfer its prefill does not hide, and the hand-over; on a straight line between a few lengths.
    """
    plan, shown_s = of.plan, []
    lengths = np.unique(np.linspace(requests.input_tokens.min(), requests.input_tokens.max(), LENGTHS))
    for length in lengths.tolist():
        budget = min(plan.chunked_prefill_tokens or length, plan.max_batched_tokens or length)
        chunks = math.ceil(length / budget)
        chunk_s = times.mixed(0, 0.0, length / chunks, length)
        moved = transfer(batch, of.model, length, np.array([float(chunks)]), of.cluster, of.hardware)
        exposed_s = float(moved.exposed_s(np.array([chunks * chunk_s]))[0])
        shown_s.append(of.stack.handoff_s + exposed_s + (plan.prefill_pp - 1) * chunk_s)
    found: list[float] = np.interp(requests.input_tokens, lengths, shown_s).tolist()
    return found


def _tables(
    of: Deployment, workload: WorkloadSpec, traffic: Traffic, *, answers: bool = True
) -> tuple[Pool, StepTimes]:
    """Room and step times of one pool's engines; answers: they make them, else prompts alone."""
    requests, plan = traffic.requests, of.plan
    shortest = float(requests.input_tokens.min())
    outputs = requests.output_tokens if answers else 1
    longest = float((requests.input_tokens + outputs).max())
    by_blocks = requests.log is not None and bool(requests.log.blocks)
    load = Load(
        min(plan.max_num_seqs * plan.replicas, traffic.clients),
        float(requests.input_tokens.max()),
        longest - shortest,
        prefix_hit_frac=0.0 if by_blocks else workload.prefix_hit_frac or 0.0,
    )
    chunk = min(plan.chunked_prefill_tokens or longest, plan.max_batched_tokens or math.inf)
    ranges = Ranges(
        most_decoding=min(_seats(plan), len(requests)) if answers else 1,
        least_context=shortest,
        most_context=longest,
        most_tokens=max(chunk, 2.0),
        least_prompt=shortest,
        windows=of.windows,
    )
    return pool(of, load, shortest, longest), step_times(of, ranges)


def _seats(plan: ParallelismPlan) -> int:
    """Requests a rank runs at once: those its engine may, and those that leave one token of a step's budget."""
    budget = float(most_decoding(PlanBatch.from_plans([plan]))[0]) * plan.pp
    return max(int(min(plan.max_num_seqs // plan.attention_dp, budget)), 1)


def ramp_s(plan: ParallelismPlan, traffic: Traffic, times: StepTimes) -> float:
    """About what a request takes with all clients there: a closed loop whose clients start one after the other over
    that time is in its steady state from the first round on; who starts at once may keep step for good.
    """
    of, ranks = traffic.requests, plan.replicas * plan.attention_dp
    seats = min(max(traffic.clients // ranks, 1), _seats(plan))
    prompt = float(of.input_tokens.mean() - of.cached_tokens.mean())
    context = float(of.input_tokens.mean() + of.output_tokens.mean() / 2)
    chunk = min(plan.chunked_prefill_tokens or prompt, prompt)
    decode_s = times.decode(seats, context)
    prefill_s = prompt / chunk * (times.mixed(seats - 1, context, chunk, prompt) - decode_s)
    return float(of.decode_steps.mean()) * decode_s + seats * max(prefill_s, 0.0)


def _replica(of: Deployment, room: Pool, times: StepTimes, counts: Counts, log: RequestLog | None) -> Replica:
    plan, stack = of.plan, of.stack
    rows = 1 + plan.speculative_tokens
    limits = Limits(_seats(plan), plan.chunked_prefill_tokens, plan.max_batched_tokens, rows, plan.pp, stack.admission)
    by_blocks = log is not None and bool(log.blocks)
    ranks = [
        Rank(room, limits, PrefixCache(log.block_tokens) if by_blocks and log is not None else None)
        for _ in range(plan.attention_dp)
    ]
    return Replica(ranks, times, counts)
