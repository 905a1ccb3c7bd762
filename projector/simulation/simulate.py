"""simulate(): one plan under one traffic, request by request. Percentiles that the analytic model does not have."""

import math
from dataclasses import dataclass

import numpy as np

from projector.cost.device import Device
from projector.cost.speculation import acceptance_frac, check_drafters, speculation_assumptions
from projector.cost.token_budget import most_decoding
from projector.errors import InvalidDescription
from projector.project_input import check, math_dtypes
from projector.serving import Load
from projector.simulation.arrivals import Drafts, Requests, drawn, recorded
from projector.simulation.fleet import Outcome, Routing, run
from projector.simulation.pool import Pool, PrefixCache
from projector.simulation.replica import Counts, Replica
from projector.simulation.request_log import RequestLog
from projector.simulation.scheduler import Limits, Rank
from projector.simulation.statistics import KEEPS_UP_FRAC, SimulationResult, met, misses, quantiles
from projector.simulation.step_times import Ranges, StepTimes
from projector.simulation.tabulate import Deployment, pool, step_times
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.serving_stack import ANY_ENGINE, ServingStack
from projector.specs.slo import Slo
from projector.specs.workload import WorkloadSpec

DEFAULT_REQUESTS = 2000
# beyond it a log or a simulation is no longer a matter of seconds
MOST_REQUESTS = 200_000
# What of its answer a request needs room for to be admitted, by `ServingStack.admission`.
CLAIM_FRAC = {"greedy": 0.0, "mean": 0.5, "reserve": 1.0}
NO_SLO = Slo()


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


def simulate(
    plan: ParallelismPlan,
    workload: WorkloadSpec,
    architecture: ModelArchitecture,
    cluster: ClusterSpec,
    hardware: HardwareProfile,
    *,
    stack: ServingStack = ANY_ENGINE,
    requests: int | None = None,
    warmup_requests: int | None = None,
    seed: int = 0,
    routing: Routing = "least_loaded",
    slo: Slo = NO_SLO,
    log: RequestLog | None = None,
) -> SimulationResult:
    """The plan's fleet of engines under the workload's traffic, or under a recorded log, from a seed.

    requests (None: DEFAULT_REQUESTS) are measured, after warmup_requests (None: in a closed loop twice its clients or a
    tenth of the requests, in an open one a quarter of them). Requests are taken in the order they finish; new ones keep
    coming until the last of them is done. Clients of a closed loop start evenly over the time of a request. Where the
    workload states requests_per_slot, a benchmark is replayed instead: so many requests for each client, all clients at
    once, from the first request to the last. A log is replayed once: its number of requests counts, its lengths and
    times, and of the workload only what it does not say.

    The same arguments give the same result to the last bit, on any machine with the same NumPy.
    InvalidDescription as `project_many`, where no request fits a KV pool, and where counts pass their limits.
    """
    batch = PlanBatch.from_plans([plan])
    check(batch, workload, cluster, hardware)
    if workload.phase != "serving":
        raise InvalidDescription("training has no requests to simulate", hint="describe a serving workload")
    _check_plan(plan)
    _check_counts(requests, warmup_requests)
    check_drafters(batch, architecture)
    accepted = float(acceptance_frac(batch, architecture, workload.draft_acceptance_frac)[0])
    drafts = Drafts(plan.speculative_tokens, accepted)
    traffic = _traffic(workload, requests, warmup_requests, drafts, seed, log)
    deployment = Deployment(plan, architecture, cluster, hardware, stack, workload.expert_imbalance)
    room, times = _tables(deployment, workload, traffic)
    counts = Counts()
    replicas = [_replica(deployment, room, times, counts, traffic.requests.log) for _ in range(plan.replicas)]
    outcome = run(
        traffic.requests,
        replicas,
        counts,
        routing=routing,
        clients=traffic.clients,
        warmup=traffic.warmup,
        measured=traffic.measured,
        request_s=stack.request_s,
        ramp_s=_ramp_s(plan, traffic, times) if workload.requests_per_slot is None else 0.0,
        admission_steps=stack.admission_steps,
    )
    if len(outcome.finished) <= traffic.warmup:
        raise InvalidDescription(
            f"no request fits the KV pool of an engine: {outcome.refused} were refused",
            hint="shard the weights over more devices, or store them or the cache in fewer bytes",
        )
    found = _result(plan, traffic, outcome, replicas, counts, cluster, routing, seed, slo, stack)
    return found.model_copy(update={"assumptions": _assumptions(deployment, batch, workload)})


def _check_plan(plan: ParallelismPlan) -> None:
    if plan.prefill_replicas:
        raise InvalidDescription(
            "a prefill pool of its own is not simulated", hint="leave prefill_replicas out, or use the projection"
        )


def _check_counts(requests: int | None, warmup_requests: int | None) -> None:
    if (
        not 1 <= (1 if requests is None else requests) <= MOST_REQUESTS
        or not 0 <= (warmup_requests or 0) <= MOST_REQUESTS
    ):
        raise InvalidDescription(
            f"a simulation of {requests} requests after {warmup_requests or 0}",
            hint=f"1 to {MOST_REQUESTS} requests, after at most as many of warm-up",
        )


def _traffic(
    workload: WorkloadSpec,
    requests: int | None,
    warmup_requests: int | None,
    drafts: Drafts,
    seed: int,
    log: RequestLog | None,
) -> Traffic:
    if log is not None:
        if len(log) > MOST_REQUESTS:
            raise InvalidDescription(f"a log of {len(log)} requests passes the limit of {MOST_REQUESTS}")
        warmup = warmup_requests or 0
        if warmup >= len(log):
            raise InvalidDescription(f"warm-up of {warmup} leaves nothing of a log of {len(log)} requests")
        found = recorded(log, workload.prefix_hit_frac or 0.0, drafts, seed)
        return Traffic(found, warmup, len(log) - warmup, len(log))
    load = _load(workload)
    clients = int(load.concurrency)
    if load.arrivals == "closed" and load.requests_per_slot is not None:
        if requests is not None or warmup_requests is not None:
            raise InvalidDescription(
                "requests_per_slot of the workload says how many requests are simulated, and without warm-up",
                hint="leave out requests_per_slot, or requests and warmup_requests",
            )
        requests = total = round(load.requests_per_slot * clients)
        warmup = 0
    elif load.arrivals == "closed":
        requests = requests or DEFAULT_REQUESTS
        warmup = max(2 * clients, requests // 10) if warmup_requests is None else warmup_requests
        total = warmup + requests + clients
    else:
        requests = requests or DEFAULT_REQUESTS
        warmup = requests // 4 if warmup_requests is None else warmup_requests
        total = 2 * (warmup + requests)
    if total > 4 * MOST_REQUESTS:
        raise InvalidDescription(
            f"{clients} requests in flight need {total} simulated requests", hint=f"at most {4 * MOST_REQUESTS}"
        )
    return Traffic(drawn(load, total, drafts, seed), warmup, requests, clients, load.request_rate_per_s)


def _load(workload: WorkloadSpec) -> Load:
    """The traffic. InvalidDescription where rate and kind of arrivals do not agree, or a size is missing."""
    opened = workload.arrivals in ("poisson", "deterministic")
    if opened and workload.request_rate_per_s is None:
        raise InvalidDescription(f"{workload.arrivals} arrivals without a rate", hint="state request_rate_per_s")
    if not opened and workload.request_rate_per_s is not None:
        raise InvalidDescription(
            "request_rate_per_s without the kind of arrivals", hint="state arrivals: poisson or deterministic"
        )
    # what is in flight in an open loop comes of the rate
    return Load.of(workload.model_copy(update={"concurrency": 1}) if opened else workload)


def _assumptions(of: Deployment, batch: PlanBatch, workload: WorkloadSpec) -> tuple[str, ...]:
    """What a simulation takes for granted beyond its description."""
    _, replaced = math_dtypes(batch, Device.of(of.hardware))
    drafting = speculation_assumptions(batch, of.model, workload.draft_acceptance_frac)
    found = [one.text for one in (*replaced, *drafting) if one.plans is None or one.plans[0]]
    found.append("step times are read off tables of the cost model, within 1 % of it")
    found.append("a prompt reserves its KV blocks whole when it is admitted; a preempted request is computed anew")
    sorts = of.model.by_sort() if of.model.sorts else (of.model,)
    if of.windows or any(sort.recurrence is not None for sort in sorts):
        found.append("KV bytes of a request are a straight line through those of the shortest and the longest one")
    if workload.prefix_hit_frac:
        found.append("the cached part of every prompt is one prefix that all requests of an attention rank share")
    return tuple(found)


def _tables(of: Deployment, workload: WorkloadSpec, traffic: Traffic) -> tuple[Pool, StepTimes]:
    requests, plan = traffic.requests, of.plan
    shortest = float(requests.input_tokens.min())
    longest = float((requests.input_tokens + requests.output_tokens).max())
    by_blocks = requests.log is not None and bool(requests.log.blocks)
    load = Load(
        min(plan.max_num_seqs * plan.replicas, traffic.clients),
        float(requests.input_tokens.max()),
        float(requests.output_tokens.max()),
        prefix_hit_frac=0.0 if by_blocks else workload.prefix_hit_frac or 0.0,
    )
    chunk = min(plan.chunked_prefill_tokens or longest, plan.max_batched_tokens or math.inf)
    ranges = Ranges(
        most_decoding=min(_seats(plan), len(requests)),
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


def _ramp_s(plan: ParallelismPlan, traffic: Traffic, times: StepTimes) -> float:
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
    limits = Limits(
        _seats(plan), plan.chunked_prefill_tokens, plan.max_batched_tokens, rows, plan.pp, CLAIM_FRAC[stack.admission]
    )
    by_blocks = log is not None and bool(log.blocks)
    ranks = [
        Rank(room, limits, PrefixCache(log.block_tokens) if by_blocks and log is not None else None)
        for _ in range(plan.attention_dp)
    ]
    return Replica(ranks, times, counts)


def _result(
    plan: ParallelismPlan,
    traffic: Traffic,
    outcome: Outcome,
    replicas: list[Replica],
    counts: Counts,
    cluster: ClusterSpec,
    routing: Routing,
    seed: int,
    slo: Slo,
    stack: ServingStack,
) -> SimulationResult:
    done = outcome.finished[traffic.warmup : traffic.warmup + traffic.measured]
    ranks = [rank for replica in replicas for rank in replica.ranks]
    outputs = traffic.requests.output_tokens[[request.index for request in done]]
    arrival, first, finish, started = (
        np.array([getattr(request, name) for request in done])
        for name in ("arrival_s", "first_s", "finish_s", "started_s")
    )
    several = outputs > 1
    tpot_s = (finish - first) / np.maximum(outputs - 1, 1)
    span_s = outcome.end_s - outcome.warm_s
    rate = len(done) / span_s
    share = met(slo, first - arrival, np.where(several, tpot_s, 0.0), finish - arrival)
    arrived = outcome.arrived - outcome.arrived_warm
    # of twice as many as are wanted
    all_sent = outcome.arrived == len(traffic.requests)
    ttft, latency = quantiles(first - arrival), quantiles(finish - arrival)
    tpot, itl = quantiles(tpot_s[several]), quantiles(np.array(counts.gaps_s), np.array(counts.gap_counts))
    queue = quantiles(np.maximum(started - arrival - stack.request_s, 0.0))
    assert ttft, "some requests are done"
    assert latency, "some requests are done"
    assert queue, "some requests are done"
    return SimulationResult(
        requests=len(done),
        warmup_requests=traffic.warmup,
        refused_requests=outcome.refused,
        seed=seed,
        routing=routing,
        simulated_s=span_s,
        ttft=ttft,
        tpot=tpot,
        itl=itl,
        request_latency=latency,
        queue=queue,
        offered_requests_per_s=arrived / span_s if traffic.offered_per_s is None else traffic.offered_per_s,
        requests_per_s=rate,
        output_tokens_per_s=float(outputs.sum()) / span_s,
        output_tokens_per_s_per_chip=float(outputs.sum()) / span_s / cluster.chips,
        saturated=traffic.offered_per_s is not None and (all_sent or rate < KEEPS_UP_FRAC * arrived / span_s),
        slo_met_frac=share,
        goodput_requests_per_s=None if share is None else share * rate,
        slo_misses=misses(slo, ttft, tpot, itl, latency),
        kv_peak_frac=max(rank.peak_bytes for rank in ranks) / ranks[0].pool.bytes_,
        preemptions=sum(rank.preemptions for rank in ranks),
        batch_size_mean=counts.decoding_sum / max(counts.steps, 1) / plan.attention_dp,
        mixed_step_frac=counts.mixed_steps / max(counts.steps, 1),
        prefix_hit_frac=sum(rank.hit_tokens for rank in ranks) / max(sum(rank.prompt_tokens for rank in ranks), 1),
    )
