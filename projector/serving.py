"""The serving model: a closed loop of requests over engines with continuous batching and chunked prefill."""

from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from projector.batch_projection import (
    Assumption,
    BreakdownColumns,
    IntervalRule,
    Metrics,
    ProjectionBatch,
    price_usd_per_chip_hour,
)
from projector.breakdown import ConcurrencyLimit
from projector.cost.admission import admission_assumptions, held_tokens, recomputed_prompts
from projector.cost.closed_loop import Loop, closed_loop, first_round
from projector.cost.energy import ChipPower
from projector.cost.engine import Engine, Slot
from projector.cost.links import Links
from projector.cost.overlap import AxisTimes
from projector.cost.serving_memory import Held, ServingNeeds, serving_needs
from projector.cost.speculation import check_drafters, drafting_host_s, speculation_assumptions, tokens_a_step
from projector.cost.token_budget import Prompts, most_decoding
from projector.graph.columns import Column
from projector.graph.serving_graph import StepWork, serving_graph, serving_scope
from projector.project_input import sizes
from projector.serving_figures import Request, Steps, with_figures
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan_batch import Column as AnyColumn
from projector.specs.plan_batch import PlanBatch
from projector.specs.serving_stack import ANY_ENGINE, ServingStack
from projector.specs.workload import Arrivals, WorkloadSpec

# 10th and 90th percentile of measured over projected TPOT (`shardwise eval accuracy`), rounded outwards;
# by whether the model is a mixture of experts.
INTERVALS = {
    False: IntervalRule(
        0.85, 1.3, "80 % of 488 measured points of dense models had a TPOT within these factors of the projection"
    ),
    True: IntervalRule(
        0.8, 1.45, "80 % of 1,722 measured MoE points had a TPOT within these factors of the projection"
    ),
}


@dataclass(frozen=True)
class Load:
    """The traffic: requests in flight over the fleet (one figure, or a column), tokens of each; the rest as in
    `WorkloadSpec`."""

    concurrency: Column | float
    input_len: float
    output_len: float
    request_rate_per_s: float | None = None
    arrivals: Arrivals = "closed"
    length_spread_frac: float = 0.0
    prefix_hit_frac: float = 0.0
    draft_acceptance_frac: float | None = None
    expert_imbalance: float | None = None
    requests_per_slot: float | None = None

    @classmethod
    def of(cls, workload: WorkloadSpec, seats: Column | None = None) -> "Load":
        """The traffic of a serving workload. InvalidDescription naming every size that is missing.

        seats: requests in flight where neither a concurrency nor a rate is stated; None: one has to be.
        """
        concurrency: Column | float
        if seats is not None and workload.concurrency is None and workload.request_rate_per_s is None:
            concurrency, (input_len, output_len) = seats, sizes(workload, "input_len", "output_len")
        else:
            concurrency, input_len, output_len = sizes(workload, "concurrency", "input_len", "output_len")
        return cls(
            concurrency,
            input_len,
            output_len,
            request_rate_per_s=workload.request_rate_per_s,
            arrivals=workload.arrivals or "closed",
            length_spread_frac=workload.length_spread_frac or 0.0,
            prefix_hit_frac=workload.prefix_hit_frac or 0.0,
            draft_acceptance_frac=workload.draft_acceptance_frac,
            expert_imbalance=workload.expert_imbalance,
            requests_per_slot=workload.requests_per_slot,
        )


@dataclass(frozen=True)
class Fleet:
    """How the requests spread over the engines of each plan (columns).

    replicas     engines; busy: those with work, fewer where there are fewer requests than engines
    offered      requests in flight an engine, running: those it holds at once
    a_rank       running requests of one attention rank (an engine has attention_dp of them)
    limit        what keeps them from being more (`MemoryBreakdown.concurrency_limit`)
    """

    replicas: Column
    busy: Column
    offered: Column
    running: Column
    a_rank: Column
    limit: NDArray[np.str_]


@dataclass(frozen=True)
class Latencies:
    """Seconds a request spends (columns): queue, prefill, until its first token, on a token after it, in all."""

    queue_s: Column
    prefill_s: Column
    ttft_s: Column
    tpot_s: Column
    request_s: Column

    def with_start(self, first_round_s: Column, requests_per_slot: float) -> "Latencies":
        """Means over a run from its first request on: one of requests_per_slot rounds prefills in first_round_s."""
        later_s = np.maximum(first_round_s - self.prefill_s, 0.0) / requests_per_slot
        return replace(
            self, prefill_s=self.prefill_s + later_s, ttft_s=self.ttft_s + later_s, request_s=self.request_s + later_s
        )


def project_serving(
    batch: PlanBatch,
    model: ModelArchitecture,
    load: Load,
    math_dtype: AnyColumn,
    cluster: ClusterSpec,
    hardware: HardwareProfile,
    assumptions: tuple[Assumption, ...],
    *,
    stack: ServingStack = ANY_ENGINE,
) -> ProjectionBatch:
    """Latencies, throughput and memory of every plan in steady state; columns of shape [len(batch)].

    Every engine runs pure decode steps and, while a prompt is prefilled, mixed steps that carry its chunk beside the
    decoding tokens (`projector.cost.closed_loop`). The mean decode step, its share of mixed steps included, is the step
    of the breakdown, that of a device of the slowest stage; over the tokens a request gains in it, it is TPOT. Where
    not one request fits, latencies and throughputs are NaN.
    """
    check_drafters(batch, model)
    engine = Engine.of(batch, model, math_dtype, cluster, hardware, load.expert_imbalance)
    kept = held_tokens(load.input_len, load.output_len, stack)
    needs = engine_needs(engine, load, hardware, kept)
    fleet = _fleet(batch, load, needs)
    prompts = Prompts.of(batch, load.input_len, load.prefix_hit_frac, (fleet.a_rank - 1) / engine.degrees.pp)
    gained = tokens_a_step(batch, model, load.draft_acceptance_frac)
    steps = 1.0 + (load.output_len - 1.0) / gained
    wanted = np.minimum(fleet.offered, batch.max_num_seqs) / batch.attention_dp
    own_input = (1.0 - load.prefix_hit_frac) * load.input_len
    again = recomputed_prompts(own_input, load.output_len, needs.requests, wanted, stack)
    chunks = prompts.chunks * (1.0 + again)
    loop = closed_loop(fleet.a_rank, chunks, prompts.fit_in_budget, steps, load.length_spread_frac)
    pure, mixed = _slots(engine, load, loop, prompts)
    engine_s = stack.step_s + drafting_host_s(batch, fleet.a_rank, load.input_len + load.output_len / 2)
    breakdown = _mean_step(engine, loop, pure, mixed, engine_s)
    latencies = _latencies(engine, fleet, loop, pure, mixed, breakdown.total_s, stack)
    if load.requests_per_slot is not None:
        start_s = _first_round_s(engine, load, fleet, prompts, stack)
        latencies = latencies.with_start(start_s, load.requests_per_slot)
    # by Little's law every request in flight takes its latency
    requests_per_s = fleet.busy * fleet.offered / latencies.request_s
    # an engine that cannot hold one request serves none: its step is projected, its service is not a number
    serves = np.where(needs.requests >= 1, 1.0, np.nan)
    return ProjectionBatch(
        batch=batch,
        chip=hardware.id,
        chips=cluster.chips,
        devices_per_chip=hardware.devices_per_chip,
        price_usd_per_chip_hour=price_usd_per_chip_hour(hardware),
        step_time_s=breakdown.total_s,
        breakdown=breakdown,
        memory=needs.with_requests(fleet.a_rank, fleet.limit),
        metrics=with_figures(
            Metrics(
                ttft_s=serves * latencies.ttft_s,
                tpot_s=serves * latencies.tpot_s / gained,
                request_latency_s=serves * latencies.request_s,
                decode_tokens_per_s_per_chip=serves * requests_per_s * load.output_len / cluster.chips,
                total_tokens_per_s_per_chip=serves
                * requests_per_s
                * (load.input_len + load.output_len)
                / cluster.chips,
                max_concurrency=needs.requests * batch.dp,
            ),
            _steps(engine, fleet, loop, (pure, mixed), breakdown, needs, prompts, engine_s, hardware),
            Request(load.input_len, load.output_len, load.prefix_hit_frac),
            batch,
            model,
            math_dtype,
            needs.with_requests(fleet.a_rank, fleet.limit),
            cluster.chips,
            hardware,
        ),
        interval=INTERVALS[model.is_moe],
        power=ChipPower.of(hardware),
        links=Links(engine.routes, hardware),
        hardware=hardware,
        assumptions=(
            *assumptions,
            *speculation_assumptions(batch, model, load.draft_acceptance_frac),
            *admission_assumptions(fleet.limit == "kv_pool", again),
        ),
    )


def _steps(
    engine: Engine,
    fleet: Fleet,
    loop: Loop,
    slots: tuple[Slot, Slot],
    mean: BreakdownColumns,
    needs: ServingNeeds,
    prompts: Prompts,
    engine_s: Column | float,
    hardware: HardwareProfile,
) -> Steps:
    """What the figures of serving follow from beside the metrics; slots: a pure decode passage and a mixed one."""
    batch, pp, (pure, mixed) = engine.batch, engine.degrees.pp, slots
    mixed_s = pp * np.maximum(mixed.length_s, pure.length_s) + engine_s
    prefill_s = loop.mixed_frac * sum(mixed.compute_s.values(), start=np.zeros(len(batch)))
    waits_s = mean.idle_s + mean.exposed_copy_s
    decode_s, busy_frac = mean.compute_s - prefill_s, fleet.busy / fleet.replicas
    power = ChipPower.of(hardware)
    return Steps(
        step_s=mean.total_s,
        pure_step_s=pp * pure.length_s + engine_s,
        mixed_step_s=mixed_s,
        mixed_frac=loop.mixed_frac,
        prefill_comm_s=prompts.chunks * pp * mixed.exposed_communication_s,
        decode_comm_s=pp * pure.exposed_communication_s,
        prompt_tokens_per_s=batch.dp * loop.prompts * prompts.chunk / mixed_s,
        seats=np.minimum(needs.requests * batch.dp, fleet.replicas * batch.max_num_seqs),
        watts=None
        if power is None
        else power.mean_serving_w(prefill_s, decode_s, mean.exposed_communication_s, waits_s, busy_frac),
    )


def engine_needs(
    engine: Engine, load: Load, hardware: HardwareProfile, request_tokens: float | None = None
) -> ServingNeeds:
    """Memory before requests, with the largest step a rank may run: a full budget beside max_num_seqs requests, or all
    that max_batched_tokens allows.

    request_tokens: tokens whose keys and values a request holds; None: those of the steady state.
    """
    batch = engine.batch
    seqs = np.minimum(batch.max_num_seqs, load.concurrency) / batch.attention_dp
    seqs = np.minimum(seqs, most_decoding(batch))
    prompts = Prompts.of(batch, load.input_len, load.prefix_hit_frac, seqs)
    together = np.maximum(prompts.fit_in_budget, 1.0)
    work = StepWork(
        seqs,
        prompts.length,
        together,
        prompts.chunk,
        prompts.length,
        prompts.chunks,
        cached=prompts.cached,
        rows_each=prompts.rows_each,
    )
    scope = serving_scope(batch, engine.degrees, engine.model, engine.math_dtype, work)
    operators = serving_graph(batch, engine.model, engine.math_dtype, work)
    # engines grow a request's cache as it decodes: on average half of its output is there
    tokens = load.input_len + load.output_len / 2 if request_tokens is None else request_tokens
    cached = load.prefix_hit_frac * load.input_len
    held = Held(tokens - cached, cached)
    on_first, on_middle, on_last = (
        serving_needs(batch, scope, operators, stage, hardware, held)
        for stage in (engine.stages.first, engine.stages.middle, engine.stages.last)
    )
    return on_first.fuller(on_middle).fuller(on_last)


def _fleet(batch: PlanBatch, load: Load, needs: ServingNeeds) -> Fleet:
    replicas = batch.dp / batch.attention_dp
    offered = np.maximum(load.concurrency / replicas, 1.0)
    held = np.maximum(needs.requests * batch.attention_dp, 1.0)
    budget = most_decoding(batch) * batch.attention_dp * batch.pp
    limits = np.broadcast_arrays(offered, batch.max_num_seqs, held, budget)
    running = np.minimum.reduce(limits)
    return Fleet(
        replicas=replicas,
        busy=np.minimum(replicas, load.concurrency),
        offered=offered,
        running=running,
        a_rank=np.maximum(running / batch.attention_dp, 1.0),
        limit=np.array(get_args(ConcurrencyLimit))[np.argmin(limits, axis=0)],
    )


def _slots(engine: Engine, load: Load, loop: Loop, prompts: Prompts) -> tuple[Slot, Slot]:
    """A pure decode passage and a mixed one through the slowest stage; a pp-th of the decoding requests in each."""
    pp = engine.degrees.pp
    decode = _work(load, prompts, np.maximum(loop.decoding / pp, 1.0), 0 * pp)
    mixed = _work(load, prompts, loop.beside_prefill / pp, loop.prompts)
    eager = ~engine.batch.cuda_graphs.astype(bool)
    return engine.slot(decode, eager), engine.slot(mixed, np.ones_like(eager))


def _work(load: Load, prompts: Prompts, decoding: Column, together: Column) -> StepWork:
    """A step with `together` prompts beside `decoding` requests at their mean context."""
    return StepWork(
        decoding,
        np.full_like(decoding, load.input_len + load.output_len / 2),
        together,
        prompts.chunk,
        prompts.length,
        prompts.chunks,
        cached=prompts.cached,
        rows_each=prompts.rows_each,
    )


def _mean_step(engine: Engine, loop: Loop, pure: Slot, mixed: Slot, engine_s: Column | float) -> BreakdownColumns:
    """The mean step a decoding request sees.

        step = pp ((1 - f) t_pure + f t_mixed) + engine

    A token passes pp stages, one slot each. In a share f of the cycles one slot carries a prefill chunk: it takes
    pp t_mixed to come round, no slot overtakes it, and the stages wait (pp - 1) (t_mixed - t_pure) for it. Slots
    without a request (fewer requests than stages), that wait and the engine's own time are idle.
    """
    pp, f = engine.degrees.pp, loop.mixed_frac
    used = np.maximum(np.minimum(loop.decoding, pp) - f, 0.0)
    empty = pp - f - used
    by_kind = {
        kind: used * pure.compute_s.get(kind, 0.0) + f * mixed.compute_s.get(kind, 0.0)
        for kind in (*pure.compute_s, *(kind for kind in mixed.compute_s if kind not in pure.compute_s))
    }
    by_axis = {
        axis: AxisTimes(
            used * times.total_s + f * mixed.communication[axis].total_s,
            used * times.exposed_s + f * mixed.communication[axis].exposed_s,
        )
        for axis, times in pure.communication.items()
    }
    held_up_s = f * (pp - 1) * np.maximum(mixed.length_s - pure.length_s, 0.0)
    bubble_s = empty * pure.length_s + held_up_s
    launch_idle_s = used * pure.launch_idle_s + f * mixed.launch_idle_s
    return BreakdownColumns.of(by_kind, by_axis, idle_s=bubble_s + launch_idle_s + engine_s, bubble_s=bubble_s)


def _latencies(
    engine: Engine, fleet: Fleet, loop: Loop, pure: Slot, mixed: Slot, step_s: Column, stack: ServingStack
) -> Latencies:
    """Means over requests.

        TTFT = overhead + queue + admission + R t_cycle
        t_cycle = pp t_mixed + engine, admission = (steps the engine takes to look at a new request) x mean step
        latency = TTFT + Z TPOT

    R is counted in steps (`closed_loop`). Who is alone on an engine is looked at once. The queue holds what the engine
    cannot run at once: with N in flight and c running, N / c times the service time by Little's law. A chunk passes
    every stage before the next one of its prompt starts.
    """
    cycle_s = engine.degrees.pp * np.maximum(mixed.length_s, pure.length_s) + stack.step_s
    admission_s = np.minimum(loop.beside_prefill, 1.0) * stack.admission_steps * step_s
    prefill_s = loop.prefill_steps * cycle_s
    first_s = stack.request_s + admission_s + prefill_s
    service_s = first_s + loop.decode_steps * step_s
    queue_s = np.maximum(fleet.offered / fleet.running - 1, 0.0) * service_s
    return Latencies(
        queue_s=queue_s,
        prefill_s=prefill_s,
        ttft_s=queue_s + first_s,
        tpot_s=step_s,
        request_s=queue_s + service_s,
    )


def _first_round_s(engine: Engine, load: Load, fleet: Fleet, prompts: Prompts, stack: ServingStack) -> Column:
    """Mean prefill of requests that take every seat of an engine at once.

    Steps carry as many prompts as they may, beside half of the others decoding; on a pipeline a slot follows the other.
    """
    pp = engine.degrees.pp
    together = np.clip(prompts.fit_in_budget, 1.0, fleet.a_rank)
    work = _work(load, prompts, (fleet.a_rank - together) / 2 / pp, together)
    full = engine.slot(work, np.ones(len(pp), dtype=np.bool_))
    step_s = full.length_s + stack.step_s
    return first_round(fleet.a_rank, together, step_s, prompts.chunks) + (pp - 1) * full.length_s
