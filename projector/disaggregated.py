"""The serving model of two pools: engines that only prefill prompts, and engines that only decode."""

import numpy as np

from projector.batch_projection import Assumption, BreakdownColumns, Metrics, ProjectionBatch, price_usd_per_chip_hour
from projector.cost.energy import ChipPower
from projector.cost.kv_transfer import transfer
from projector.cost.links import Links
from projector.cost.pools import Admission, PromptServers, Returns, shares
from projector.cost.speculation import check_drafters, speculation_assumptions, tokens_a_step
from projector.errors import InvalidDescription
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

        throughput = N / (TTFT + (output_len - 1) TPOT), at most what each pool and the links between them can do
        TTFT = overhead + hand-over + prefill with its queue + transfer + wait for a seat and for admission + first step

    Prefill engines run steps of prompt chunks alone, decode engines pure decode steps: one of these over the tokens a
    request gains in it is TPOT, and the breakdown is that of a device of the slowest decode stage. Memory is that of
    the fuller device of the two pools, each with what it holds.
    The first token shows after one step of the decode engine. vLLM's decode engines compute it (the prefill engine's is
    thrown away); SGLang's and TensorRT-LLM's are handed it and show it when the request joins a step, at most one step
    earlier. A server that holds tokens back to send several at once (a stream interval) shows the same later: that is
    no latency of the engine.
    """
    if load.arrivals != "closed":
        raise InvalidDescription(
            f"{load.arrivals} arrivals at a prefill pool are not modelled",
            hint="state a closed loop of requests (concurrency), or plans without a prefill pool",
        )
    check_drafters(batch, model)
    pools = pools_of(batch, model, load, math_dtype, cluster, hardware, stack)
    prompts = prompt_servers(pools)
    moved = transfer(batch, model, load.input_len, pools.prompts.chunks, cluster, hardware)
    links_per_s = np.minimum(prompts.ranks, pools.decode.batch.dp) / moved.wire_s
    between_s = stack.request_s + stack.handoff_s + moved.exposed_s(prompts.one_s)
    gained = tokens_a_step(batch, model, load.draft_acceptance_frac)
    # one step of the decode engine shows the first token, the others as many as a request gains in one
    steps = 1.0 + (load.output_len - 1.0) / gained
    rounds = load.requests_per_slot
    requests = np.zeros(len(batch)) + load.concurrency
    returns = Returns(requests, load.length_spread_frac, None if rounds is None else rounds / 2)
    admission = Admission(stack.admission_steps, batch.dp / batch.attention_dp)
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
    per_s, tpot_s = requests / request_s, step.total_s / gained
    serves = np.where((pools.prefill_needs.requests >= 1) & (pools.decode_needs.requests >= 1), 1.0, np.nan)
    memory, notes = pool_memory(pools, found.per_s, prompts, between_s, found.decoding)
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
                ttft_s=serves * (request_s - (steps - 1.0) * step.total_s),
                tpot_s=serves * tpot_s,
                request_latency_s=serves * request_s,
                decode_tokens_per_s_per_chip=serves * per_s * load.output_len / cluster.chips,
                total_tokens_per_s_per_chip=serves * per_s * (load.input_len + load.output_len) / cluster.chips,
                max_concurrency=np.where(
                    pools.prefill_needs.requests >= 1, pools.decode_needs.requests * batch.dp, 0.0
                ),
            ),
            _steps(pools, prompts, step, per_s, hardware),
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
        assumptions=(*assumptions, *said, *speculation_assumptions(batch, model, load.draft_acceptance_frac)),
    )


def _steps(
    pools: Pools, prompts: PromptServers, step: BreakdownColumns, per_s: Column, hardware: HardwareProfile
) -> Steps:
    """What the figures follow from beside the metrics: no step is mixed, prompts have engines of their own."""
    batch, none = pools.decode.batch, np.zeros(len(pools.decode.batch))
    busy_frac = np.minimum(per_s / prompts.prompts_per_s, 1.0)
    power, watts = ChipPower.of(hardware), None
    if power is not None:
        beside_s = np.maximum(prompts.one_s - prompts.comm_s, 0.0)
        prefill_w = power.mean_serving_w(beside_s, none, prompts.comm_s, none, busy_frac)
        waits_s = step.idle_s + step.exposed_copy_s
        decode_w = power.mean_serving_w(none, step.compute_s, step.exposed_communication_s, waits_s, 1.0)
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
    seats = decoding > nearly * pools.seats
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
