"""simulate(): one plan under one traffic, request by request. Percentiles that the analytic model does not have."""

import numpy as np

from projector.cost.device import Device
from projector.cost.speculation import acceptance_frac, check_drafters, speculation_assumptions
from projector.errors import InvalidDescription
from projector.project_input import check, math_dtypes
from projector.serving import Load
from projector.serving_stacks import NamedStack, serving_stack
from projector.simulation.arrivals import Drafts, drawn, recorded
from projector.simulation.engines import Traffic, engines_of, ramp_s
from projector.simulation.fleet import Outcome, Routing, run
from projector.simulation.replica import Counts, Replica
from projector.simulation.request_log import RequestLog
from projector.simulation.statistics import KEEPS_UP_FRAC, SimulationResult, met, misses, quantiles
from projector.simulation.tabulate import Deployment
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.serving_stack import ServingStack
from projector.specs.slo import Slo
from projector.specs.workload import WorkloadSpec

DEFAULT_REQUESTS = 2000
# beyond it a log or a simulation is no longer a matter of seconds
MOST_REQUESTS = 200_000
NO_SLO = Slo()


def simulate(
    plan: ParallelismPlan,
    workload: WorkloadSpec,
    architecture: ModelArchitecture,
    cluster: ClusterSpec,
    hardware: HardwareProfile,
    *,
    stack: ServingStack | None = None,
    requests: int | None = None,
    warmup_requests: int | None = None,
    seed: int = 0,
    routing: Routing = "least_loaded",
    slo: Slo = NO_SLO,
    log: RequestLog | None = None,
) -> SimulationResult:
    """The plan's fleet of engines under the workload's traffic, or under a recorded log, from a seed.

    stack: engine software; None: that which workload.engine names.
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
    _check_counts(requests, warmup_requests)
    check_drafters(batch, architecture)
    named = NamedStack(stack) if stack is not None else serving_stack(workload.engine)
    stack = named.stack
    accepted = float(acceptance_frac(batch, architecture, workload.draft_acceptance_frac)[0])
    drafts = Drafts(plan.speculative_tokens, accepted, make_first=plan.prefill_replicas > 0)
    traffic = _traffic(workload, requests, warmup_requests, drafts, seed, log)
    deployment = Deployment(plan, architecture, cluster, hardware, stack, workload.expert_imbalance)
    counts = Counts()
    pools = engines_of(deployment, batch, workload, traffic, counts)
    outcome = run(
        traffic.requests,
        pools.engines,
        counts,
        routing=routing,
        clients=traffic.clients,
        warmup=traffic.warmup,
        measured=traffic.measured,
        request_s=stack.request_s,
        ramp_s=ramp_s(plan, traffic, pools.engines[0].times) if workload.requests_per_slot is None else 0.0,
        admission_steps=stack.admission_steps,
        front=pools.front,
        handover_s=pools.handover_s,
    )
    replicas = [*pools.front, *pools.engines]
    if len(outcome.finished) <= traffic.warmup:
        raise InvalidDescription(
            f"no request fits the KV pool of an engine: {outcome.refused} were refused",
            hint="shard the weights over more devices, or store them or the cache in fewer bytes",
        )
    found = _result(plan, traffic, outcome, replicas, counts, cluster, routing, seed, slo, stack)
    remarks = (*([named.remark] if named.remark else []), *_unused(workload, requests, log))
    return found.model_copy(update={"assumptions": (*remarks, *_assumptions(deployment, batch, workload))})


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
    """The traffic. InvalidDescription where a size is missing."""
    opened = workload.request_rate_per_s is not None
    # what is in flight in an open loop comes of the rate
    return Load.of(workload.model_copy(update={"concurrency": 1}) if opened else workload)


def _unused(workload: WorkloadSpec, requests: int | None, log: RequestLog | None) -> tuple[str, ...]:
    """What was stated and is not looked at, in words."""
    if log is not None:
        names = ("input_len", "output_len", "concurrency", "request_rate_per_s", "arrivals", "length_spread_frac")
        stated = [name for name in (*names, "requests_per_slot") if getattr(workload, name) is not None]
        stated += ["requests"] if requests is not None else []
        return (f"the log says what comes when: {', '.join(stated)} of the request not used",) if stated else ()
    if workload.request_rate_per_s is not None and workload.concurrency is not None:
        return ("with a rate, concurrency bounds nothing here: max_num_seqs does",)
    return ()


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
    if of.plan.attention_dp > 1:
        found.append(
            "attention ranks of an engine step together, as long as the slowest of them would if all held as much: "
            "an upper bound where one of them prefills"
        )
    if of.plan.prefill_replicas:
        found.append("transfers do not share the link, and a prefill rank has let go of keys and values that cross it")
    if workload.prefix_hit_frac:
        found.append("the cached part of every prompt is one prefix that all requests of an attention rank share")
    return tuple(found)


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
        kv_peak_frac=max(rank.peak_bytes / rank.pool.bytes_ for rank in ranks if rank.pool.bytes_),
        preemptions=sum(rank.preemptions for rank in ranks),
        batch_size_mean=counts.decoding_sum / max(counts.steps, 1) / plan.attention_dp,
        mixed_step_frac=counts.mixed_steps / max(counts.steps, 1),
        prefix_hit_frac=sum(rank.hit_tokens for rank in ranks) / max(sum(rank.prompt_tokens for rank in ranks), 1),
    )
