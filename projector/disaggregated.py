"""The serving model of two pools: engines that only prefill prompts, and engines that only decode."""

from dataclasses import dataclass

import numpy as np

from projector.arrival_limit import ArrivalLimit
from projector.batch_projection import Assumption, Metrics, ProjectionBatch, price_usd_per_chip_hour
from projector.breakdown_columns import BreakdownColumns
from projector.cost.energy import ChipPower
from projector.cost.kv_transfer import transfer
from projector.cost.links import Links
from projector.cost.pools import Admission, PromptServers, Returns, arriving, shares
from projector.cost.speculation import check_drafters, speculation_assumptions, tokens_a_step
from projector.graph.columns import Column
from projector.pool_engines import Pools, decode_step, decode_steps, pool_memory, pools_of, prompt_servers
from projector.serving import Load
from projector.serving_figures import Request, Steps, with_figures
from projector.serving_intervals import serving_interval
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan_batch import Column as AnyColumn
from projector.specs.plan_batch import PlanBatch
from projector.specs.serving_stack import ANY_ENGINE, ServingStack


def project_disaggregated(
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
    """Plans with a prefill pool in steady state; columns of shape [len(batch)].

        throughput = N / (TTFT + (output_len - 1) TPOT), at most what each pool and the links between them can do, of N
                     requests in flight; or the rate at which requests arrive, where the pools keep up with it
        TTFT = overhead + hand-over + prefill with its queue + transfer + wait for a seat and for admission + first step

    Prefill engines run steps of prompt chunks alone, decode engines pure decode steps: one of these over the tokens a
    request gains in it is TPOT, and the breakdown is that of a device of the slowest decode stage. Memory is that of
    the fuller device of the two pools, each with what it holds.
    The first token shows after one step of the decode engine. vLLM's decode engines compute it (the prefill engine's is
    thrown away); SGLang's and TensorRT-LLM's are handed it and show it when the request joins a step, at most one step
    earlier. A server that holds tokens back to send several at once (a stream interval) shows the same later: that is
    no latency of the engine.
    """
    check_drafters(batch, model)
    pools = pools_of(batch, model, load, math_dtype, cluster, hardware, stack)
    prompts = prompt_servers(pools)
    moved = transfer(batch, model, load.input_len, pools.prompts.chunks, cluster, hardware)
    links_per_s = np.minimum(prompts.ranks, pools.decode.batch.dp) / moved.wire_s
    between_s = stack.request_s + stack.handoff_s + moved.exposed_s(prompts.one_s)
    gained = tokens_a_step(batch, model, load.draft_acceptance_frac)
    # one step of the decode engine shows the first token, the others as many as a request gains in one
    steps = 1.0 + (load.output_len - 1.0) / gained
    admission = Admission(stack.admission_steps, batch.dp / batch.attention_dp)
    round_trip = _open if load.request_rate_per_s is not None else _closed
    found = round_trip(pools, prompts, admission, between_s, steps, links_per_s)
    step, per_s, tpot_s = found.step, found.per_s, found.step.total_s / gained
    holds = (pools.prefill_needs.requests >= 1) & (pools.decode_needs.requests >= 1)
    serves = np.where(holds, 1.0, np.nan)
    if found.arrivals is not None:
        serves = np.where(found.arrivals.kept_up, serves, np.nan)
    memory, notes = pool_memory(pools, per_s, prompts, between_s, found.decoding)
    said = (*notes, *_bound_by(pools, prompts, links_per_s, per_s, found.decoding), *_taken_for_granted(stack))
    return ProjectionBatch(
        batch=batch,
        chip=hardware.id,
        chips=cluster.chips,
        devices_per_chip=hardware.devices_per_chip,
        price_usd_per_chip_hour=price_usd_per_chip_hour(hardware),
        step_time_s=step.total_s,
        breakdown=step,
        memory=memory,
        metrics=with_figures(
            Metrics(
                ttft_s=serves * (found.request_s - (steps - 1.0) * step.total_s),
                tpot_s=serves * tpot_s,
                request_latency_s=serves * found.request_s,
                decode_tokens_per_s_per_chip=serves * per_s * load.output_len / cluster.chips,
                total_tokens_per_s_per_chip=serves * per_s * (load.input_len + load.output_len) / cluster.chips,
                max_concurrency=np.where(holds, pools.decode_needs.requests * batch.dp, 0.0),
            ),
            _steps(pools, prompts, found, hardware),
            Request(load.input_len, load.output_len, load.prefix_hit_frac),
            batch,
            model,
            math_dtype,
            memory,
            cluster.chips,
            hardware,
        ),
        interval=serving_interval(model, stack),
        power=ChipPower.of(hardware),
        links=Links(pools.decode.routes, hardware),
        hardware=hardware,
        arrivals=found.arrivals,
        assumptions=(*assumptions, *said, *speculation_assumptions(batch, model, load.draft_acceptance_frac)),
    )


@dataclass(frozen=True)
class _Found:
    """The steady state of both pools (columns): requests a second, seconds of each, how many decode, their step."""

    per_s: Column
    request_s: Column
    decoding: Column
    step: BreakdownColumns
    arrivals: ArrivalLimit | None = None


def _closed(
    pools: Pools,
    prompts: PromptServers,
    admission: Admission,
    between_s: Column,
    steps: Column,
    links_per_s: Column,
) -> _Found:
    """Requests in flight that are followed by another one when they are done."""
    load, rounds = pools.load, pools.load.requests_per_slot
    requests = np.zeros_like(between_s) + load.concurrency
    returns = Returns(requests, load.length_spread_frac, None if rounds is None else rounds / 2)
    found = shares(prompts, decode_steps(pools), admission, between_s, steps, returns, links_per_s)
    step = decode_step(pools, found.decoding)
    between_s = between_s + admission.wait_s(found.decoding, step.total_s)
    decode_s = steps * step.total_s
    here_s = prompts.residence_s(found.per_s, between_s + decode_s, returns)
    if rounds is not None:
        # one of so many rounds starts with all prompts at once
        here_s = here_s + np.maximum(prompts.first_s(requests) - here_s, 0.0) / rounds
    most_per_s = np.minimum(np.minimum(prompts.prompts_per_s, links_per_s), pools.seats / decode_s)
    request_s = np.maximum(between_s + here_s + decode_s, requests / most_per_s)
    return _Found(requests / request_s, request_s, found.decoding, step)


def _open(
    pools: Pools,
    prompts: PromptServers,
    admission: Admission,
    between_s: Column,
    steps: Column,
    links_per_s: Column,
) -> _Found:
    """Requests that arrive at a rate. What the pools can do at most is said beside it: prompts, transfers, and what
    decodes in all seats; waits for a seat are left out below that."""
    rate_per_s = pools.load.request_rate_per_s
    assert rate_per_s is not None
    table = decode_steps(pools)
    seats_per_s = table.decoding[-1] / (steps * table.step_s[-1])
    limit = ArrivalLimit(rate_per_s, np.minimum(np.minimum(prompts.prompts_per_s, links_per_s), seats_per_s))
    found = arriving(table, steps, rate_per_s)
    step = decode_step(pools, found.decoding)
    here_s = prompts.met_s(found.per_s, random=pools.load.arrivals == "poisson")
    request_s = between_s + admission.wait_s(found.decoding, step.total_s) + here_s + steps * step.total_s
    return _Found(found.per_s, request_s, found.decoding, step, limit)


def _steps(pools: Pools, prompts: PromptServers, found: _Found, hardware: HardwareProfile) -> Steps:
    """What the figures follow from beside the metrics: no step is mixed, prompts have engines of their own."""
    batch, step, none = pools.decode.batch, found.step, np.zeros(len(pools.decode.batch))
    busy_frac = np.minimum(found.per_s / prompts.prompts_per_s, 1.0)
    decoding_frac = np.minimum(found.decoding / batch.dp * batch.attention_dp, 1.0)
    power, watts = ChipPower.of(hardware), None
    if power is not None:
        beside_s = np.maximum(prompts.one_s - prompts.comm_s, 0.0)
        prefill_w = power.mean_serving_w(beside_s, none, prompts.comm_s, none, busy_frac)
        waits_s = step.idle_s + step.exposed_copy_s
        decode_w = power.mean_serving_w(none, step.compute_s, step.exposed_communication_s, waits_s, decoding_frac)
        ranks = prompts.ranks * pools.prefill.degrees.tp * pools.prefill.degrees.pp
        decoding = batch.dp * batch.tp * batch.pp
        watts = (ranks * prefill_w + decoding * decode_w) / (ranks + decoding)
    return Steps(
        step_s=step.total_s,
        pure_step_s=step.total_s,
        mixed_step_s=none + np.nan,
        mixed_frac=none,
        prefill_comm_s=prompts.comm_s,
        decode_comm_s=step.exposed_communication_s,
        prompt_tokens_per_s=prompts.prompts_per_s * pools.prompts.computed,
        seats=pools.seats,
        watts=watts,
    )


def _bound_by(
    pools: Pools, prompts: PromptServers, links_per_s: Column, per_s: Column, decoding: Column
) -> tuple[Assumption, ...]:
    """Which pool holds the throughput down, where one does: that works at more than nine tenths of what it can."""
    nearly = 0.9
    seats = (decoding > nearly * pools.seats) & (pools.load.concurrency > pools.seats)
    return (
        Assumption("the prefill pool holds the throughput down", per_s > nearly * prompts.prompts_per_s),
        Assumption("the link between the pools holds the throughput down", per_s > nearly * links_per_s),
        Assumption("the decode pool has no seats for more requests, which wait for one", seats),
    )


def _taken_for_granted(stack: ServingStack) -> tuple[Assumption, ...]:
    """What the model of two pools substitutes for a stack that says otherwise."""
    if stack.admission != "greedy":
        return ()
    return (
        Assumption("decode engines of a pool do not preempt: a request waits until they hold it at its mean length"),
    )
