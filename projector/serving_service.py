"""What a fleet of serving engines does with its traffic: the steady state of a closed loop, or at a rate."""

from dataclasses import dataclass, replace

import numpy as np

from projector.arrival_limit import ArrivalLimit
from projector.breakdown_columns import BreakdownColumns
from projector.cost.closed_loop import Loop, closed_loop
from projector.cost.engine import Engine, Slot
from projector.cost.open_loop import StepTimes, Stream, mean_step_s, seat_wait_s
from projector.cost.speculation import drafting_host_s, tokens_a_step
from projector.cost.token_budget import Prompts
from projector.graph.columns import Column
from projector.serving_load import Fleet, Load
from projector.serving_steps import Latencies, first_round_s, latencies, mean_step, slots, work
from projector.specs.serving_stack import ServingStack


@dataclass(frozen=True)
class Service:
    """The steady state of every plan (columns).

    loop           content of the steps; pure, mixed: a passage of each; breakdown: the mean step
    gained         tokens a request gets a step; host_s: what each step takes of the host
    requests_per_s done over the fleet
    arrivals       where requests arrive at a rate: whether the plans keep up
    """

    fleet: Fleet
    prompts: Prompts
    loop: Loop
    pure: Slot
    mixed: Slot
    breakdown: BreakdownColumns
    latencies: Latencies
    gained: Column
    host_s: Column
    requests_per_s: Column
    arrivals: ArrivalLimit | None = None


def service(engine: Engine, load: Load, fleet: Fleet, again: Column, stack: ServingStack) -> Service:
    """Of a closed loop, or of an open one where the load states a rate; again: prompts a request of a full engine has
    computed beyond its own."""
    if load.request_rate_per_s is None:
        return closed_service(engine, load, fleet, again, stack)
    return open_service(engine, load, load.request_rate_per_s, fleet, again, stack)


def closed_service(engine: Engine, load: Load, fleet: Fleet, again: Column, stack: ServingStack) -> Service:
    """So many requests in flight; by Little's law every one of them takes its latency."""
    gained, steps = _decode_steps(engine, load)
    prompts = _prompts(engine, load, fleet.a_rank - 1)
    chunks = prompts.chunks * (1.0 + again)
    loop = closed_loop(fleet.a_rank, chunks, prompts.fit_in_budget, steps, load.length_spread_frac)
    pure, mixed = slots(engine, load, loop, prompts)
    host_s = _host_s(engine, load, fleet.a_rank, stack)
    breakdown = mean_step(engine, loop, pure, mixed, host_s)
    found = latencies(engine, fleet, loop, pure, mixed, breakdown.total_s, gained, stack)
    if load.requests_per_slot is not None:
        found = found.with_start(first_round_s(engine, load, fleet, prompts, stack), load.requests_per_slot)
    rate = fleet.busy * fleet.offered / found.request_s
    return Service(fleet, prompts, loop, pure, mixed, breakdown, found, gained, host_s, rate)


def open_service(
    engine: Engine, load: Load, rate_per_s: float, fleet: Fleet, again: Column, stack: ServingStack
) -> Service:
    """Requests that arrive at a rate, in equal shares at every rank of every engine.

        t = step(t): the mean step, of which rate x t prompts and rate x t x Z decoding requests make the content
        TTFT = overhead + wait for a seat + wait for a step + chunks x t_mixed;  latency = TTFT + Z t

    Capacity is the throughput of the closed loop that takes every seat, `fleet.running` of each engine, none of which
    is taken by what a request spends outside the engine. Above it requests pile up without end: no latency is a
    number, the step is that of a full engine.
    Left out: preemption below the capacity.
    """
    batch, random = engine.batch, load.arrivals == "poisson"
    inside = stack.model_copy(update={"request_s": 0.0})
    full = closed_service(engine, replace(load, requests_per_slot=None), fleet.all_taken(), again, inside)
    gained, steps = _decode_steps(engine, load)
    each = rate_per_s / batch.dp

    def host_of(loop: Loop) -> Column:
        return _host_s(engine, load, 1 + loop.beside_prefill, stack)

    def content(step_s: Column) -> tuple[Prompts, Stream, Loop, Slot, Slot, BreakdownColumns]:
        prompts = _prompts(engine, load, each * step_s * (steps - 1))
        stream = Stream(each, fleet.a_rank, prompts.chunks, prompts.fit_in_budget, steps, random)
        loop = stream.loop(step_s)
        pure, mixed = slots(engine, load, loop, prompts)
        return prompts, stream, loop, pure, mixed, mean_step(engine, loop, pure, mixed, host_of(loop))

    longest_s = fleet.a_rank / each / (steps - 1 + full.prompts.chunks)
    step_s, settled = mean_step_s(lambda t: content(t)[-1].total_s, longest_s)
    prompts, stream, loop, pure, mixed, breakdown = content(step_s)
    step_s = breakdown.total_s
    times = _step_times(engine, load, loop, prompts, pure, mixed, stack)
    token_step_s = _token_step_s(engine, load, fleet, stream, loop, prompts, times, step_s)
    prefill_s = loop.prefill_steps * times.of(loop.prompts)
    resident_s = prefill_s + loop.decode_steps * token_step_s
    variability = (float(random) + load.length_spread_frac**2 / 3) / 2
    queue_s = seat_wait_s(fleet.running, rate_per_s / full.requests_per_s, resident_s, variability)
    first_s = stack.request_s + queue_s + stream.first_token_s(loop, times, stack.admission_steps)
    # where a rate just below the capacity has no steady state, the capacity is the rate
    capacity_per_s = np.minimum(full.requests_per_s, np.where(settled & np.isfinite(first_s), np.inf, rate_per_s))
    limit = ArrivalLimit(rate_per_s, capacity_per_s)
    known = np.where(limit.kept_up, 1.0, np.nan)
    in_seats = np.minimum(rate_per_s / fleet.replicas * resident_s, fleet.running)
    found = Latencies(
        queue_s=known * queue_s,
        prefill_s=prefill_s,
        ttft_s=known * first_s,
        tpot_s=known * token_step_s / gained,
        request_s=known * (first_s + loop.decode_steps * token_step_s),
    )
    held = fleet.holding(np.where(limit.kept_up, in_seats, fleet.running), batch.attention_dp)
    return Service(held, prompts, loop, pure, mixed, breakdown, found, gained, host_of(loop), known * rate_per_s, limit)


def _step_times(
    engine: Engine, load: Load, loop: Loop, prompts: Prompts, pure: Slot, mixed: Slot, stack: ServingStack
) -> StepTimes:
    """Steps by their prompts, in a line through the mean mixed step and one with all it has room for."""
    pp, room = engine.degrees.pp, np.maximum(prompts.fit_in_budget, 1.0)
    pure_s, mixed_s = (pp * slot.length_s + stack.step_s for slot in (pure, mixed))
    most = engine.slot(work(load, prompts, loop.beside_prefill / pp, room), np.ones(len(pp), dtype=np.bool_))
    most_s = pp * most.length_s + stack.step_s
    return StepTimes.through(pure_s, (loop.prompts, np.maximum(mixed_s, pure_s)), (room, most_s))


def _token_step_s(
    engine: Engine,
    load: Load,
    fleet: Fleet,
    stream: Stream,
    loop: Loop,
    prompts: Prompts,
    times: StepTimes,
    step_s: Column,
) -> Column:
    """The mean step as a request counts it, longer than the mean of all steps: it is met where many are.

        t + ((t_pure(n + v - 1) - t_pure(n)) + what came during its own prefill / Z) / (1 - share of time in prefill)

    with v requests decoding beside the mean (`Stream.crowd`), more where longer steps in turn keep more of them (a
    linear feedback). None of this where requests come evenly.
    """
    if not stream.random:
        return step_s
    pp, n = engine.degrees.pp, loop.decoding
    prefill_frac = np.clip(loop.mixed_frac * (times.of(loop.prompts) - times.pure_s) / step_s, 0.0, 0.9)
    crowd = stream.crowd(prefill_frac)
    more = np.maximum(np.minimum(crowd - 1, fleet.a_rank - n), 0.0)
    crowded = engine.slot(
        work(load, prompts, np.maximum((n + more) / pp, 1.0), 0 * n), ~engine.batch.cuda_graphs.astype(bool)
    )
    alone = engine.slot(work(load, prompts, np.maximum(n / pp, 1.0), 0 * n), ~engine.batch.cuda_graphs.astype(bool))
    longer_s = pp * np.maximum(crowded.length_s - alone.length_s, 0.0)
    slope = longer_s / np.maximum(more, 1e-9)
    gain = np.clip(slope * loop.beside_prefill / times.pure_s, 0.0, 0.8)
    more = np.minimum(crowd / (1 - gain) - 1, np.maximum(fleet.a_rank - n, 0.0))
    own_s = stream.rate_per_s * times.of(loop.prompts) * times.each_s / np.maximum(loop.decode_steps, 1.0)
    return step_s + np.where(more > 0, slope * more + own_s, 0.0) / (1 - prefill_frac)


def _decode_steps(engine: Engine, load: Load) -> tuple[Column, Column]:
    """(tokens a request gains in a step, steps that show it a token)."""
    gained = tokens_a_step(engine.batch, engine.model, load.draft_acceptance_frac)
    return gained, 1.0 + (load.output_len - 1.0) / gained


def _prompts(engine: Engine, load: Load, beside: Column) -> Prompts:
    return Prompts.of(engine.batch, load.input_len, load.prefix_hit_frac, beside / engine.degrees.pp)


def _host_s(engine: Engine, load: Load, a_rank: Column, stack: ServingStack) -> Column:
    return np.zeros_like(a_rank) + stack.step_s + drafting_host_s(engine.batch, a_rank, load.context)
