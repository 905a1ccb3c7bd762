"""The serving model of two pools: engines that only prefill prompts, and engines that only decode."""

from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from projector.batch_projection import Assumption, BreakdownColumns, Metrics, ProjectionBatch, price_usd_per_chip_hour
from projector.breakdown import ConcurrencyLimit
from projector.cost.energy import ChipPower
from projector.cost.engine import Engine, Slot
from projector.cost.kv_transfer import transfer
from projector.cost.links import Links
from projector.cost.memory import MemoryColumns
from projector.cost.overlap import AxisTimes
from projector.cost.pools import POINTS, DecodeSteps, PromptServers, decode_pool, prefill_pool, shares
from projector.cost.serving_memory import Held, ServingNeeds, serving_needs
from projector.cost.speculation import check_drafters, drafting_host_s, speculation_assumptions, tokens_a_step
from projector.cost.token_budget import Prompts, most_decoding
from projector.errors import InvalidDescription
from projector.graph.columns import Column
from projector.graph.serving_graph import StepWork, serving_graph, serving_scope
from projector.serving import INTERVALS, Load
from projector.serving_figures import Request, Steps, with_figures
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan_batch import Column as AnyColumn
from projector.specs.plan_batch import PlanBatch
from projector.specs.serving_stack import ANY_ENGINE, ServingStack


@dataclass(frozen=True)
class Pools:
    """Both pools of every plan, each as engines of its own, how prompts are cut, and the memory a device needs.

    gained: tokens a request gains in a decode step, 1 without speculation.
    """

    prefill: Engine
    decode: Engine
    prompts: Prompts
    prefill_needs: ServingNeeds
    decode_needs: ServingNeeds
    load: Load
    stack: ServingStack
    gained: Column

    @property
    def seats(self) -> Column:
        """Requests all decode engines can run at once, at least one a rank."""
        seats: Column = self.decode.batch.dp * np.maximum(np.minimum.reduce(self._seats_a_rank()), 1.0)
        return seats

    def limit(self, decoding: Column) -> NDArray[np.str_]:
        """What keeps the decode engines from running more than `decoding` requests."""
        limits = np.broadcast_arrays(decoding / self.decode.batch.dp, *self._seats_a_rank())
        found: NDArray[np.str_] = np.array(get_args(ConcurrencyLimit))[np.argmin(limits, axis=0)]
        return found

    def _seats_a_rank(self) -> tuple[Column, ...]:
        """By max_num_seqs, by the KV pool and by the tokens a step may have, in the order of `ConcurrencyLimit`."""
        batch = self.decode.batch
        share: Column = batch.max_num_seqs / batch.attention_dp
        return np.broadcast_arrays(share, self.decode_needs.requests, most_decoding(batch) * batch.pp)


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
        TTFT = overhead + prefill with its queue + transfer + wait for a seat + first decode step

    Prefill engines run steps of prompt chunks alone, decode engines pure decode steps: TPOT is one of these, the
    request's own token among those of all that decode, and the breakdown is that of a device of the slowest decode
    stage. Memory is that of the fuller device of the two pools, each with what it holds.
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
    pools = _pools(batch, model, load, math_dtype, cluster, hardware, stack)
    prompts = _prompt_servers(pools)
    moved = transfer(batch, model, load.input_len, pools.prompts.chunks, cluster, hardware)
    between_s = stack.request_s + moved.exposed_s(prompts.one_s)
    requests = np.zeros(len(batch)) + load.concurrency
    links_per_s = np.minimum(prompts.ranks, pools.decode.batch.dp) / moved.wire_s
    # one step of the decode engine shows the first token, each other one takes another
    steps = load.output_len / pools.gained
    found = shares(prompts, _decode_steps(pools), between_s, steps, requests, links_per_s)
    step = _decode_step(pools, found.decoding)
    tpot_s = step.total_s / pools.gained
    request_s = np.maximum(
        between_s + prompts.residence_s(found.per_s, requests) + load.output_len * tpot_s,
        requests / np.minimum(np.minimum(prompts.prompts_per_s, links_per_s), pools.seats / load.output_len / tpot_s),
    )
    per_s = requests / request_s
    serves = np.where((pools.prefill_needs.requests >= 1) & (pools.decode_needs.requests >= 1), 1.0, np.nan)
    memory, notes = _memory(pools, found.per_s, prompts, between_s, found.decoding)
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
                ttft_s=serves * (request_s - (load.output_len - 1) * tpot_s),
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
        interval=INTERVALS[model.is_moe],
        power=ChipPower.of(hardware),
        links=Links(pools.decode.routes, hardware),
        hardware=hardware,
        assumptions=(
            *assumptions,
            *notes,
            *_bound_by(pools, prompts, links_per_s, found.per_s, found.decoding),
            *speculation_assumptions(batch, model, load.draft_acceptance_frac),
        ),
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


def _pools(
    batch: PlanBatch,
    model: ModelArchitecture,
    load: Load,
    math_dtype: AnyColumn,
    cluster: ClusterSpec,
    hardware: HardwareProfile,
    stack: ServingStack,
) -> Pools:
    prefill, decode = (
        Engine.of(pool, model, math_dtype, cluster, hardware) for pool in (prefill_pool(batch), decode_pool(batch))
    )
    prompts = Prompts.of(prefill.batch, load.input_len, load.prefix_hit_frac, np.zeros(len(batch)))
    seqs = np.minimum(decode.batch.max_num_seqs, load.concurrency) / decode.batch.attention_dp
    most = np.minimum(seqs, most_decoding(decode.batch) * decode.batch.pp)
    cached = load.prefix_hit_frac * load.input_len
    together = np.maximum(prompts.fit_in_budget, 1.0)
    held = Held(load.input_len - cached, cached)
    # engines grow a request's cache as it decodes: on average half of its output is there
    kept = Held(load.input_len + load.output_len / 2)
    return Pools(
        prefill=prefill,
        decode=decode,
        prompts=prompts,
        prefill_needs=_needs(prefill, _prefill_work(prompts, together), held, hardware),
        decode_needs=_needs(decode, _decode_work(decode, load, most), kept, hardware),
        load=load,
        stack=stack,
        gained=tokens_a_step(decode.batch, model, load.draft_acceptance_frac),
    )


def _needs(engine: Engine, work: StepWork, held: Held, hardware: HardwareProfile) -> ServingNeeds:
    """Memory of the device that holds fewest requests, with `work` as the largest step it runs."""
    batch = engine.batch
    scope = serving_scope(batch, engine.degrees, engine.model, engine.math_dtype, work)
    operators = serving_graph(batch, engine.model, engine.math_dtype, work)
    on_first, on_middle, on_last = (
        serving_needs(batch, scope, operators, stage, hardware, held)
        for stage in (engine.stages.first, engine.stages.middle, engine.stages.last)
    )
    return on_first.fuller(on_middle).fuller(on_last)


def _prefill_work(prompts: Prompts, together: Column) -> StepWork:
    """A step with the mean chunk of so many prompts, and nobody decoding."""
    return StepWork(
        np.zeros_like(together),
        prompts.length,
        together,
        prompts.chunk,
        prompts.length,
        prompts.chunks,
        cached=prompts.cached,
    )


def _decode_work(engine: Engine, load: Load, a_rank: Column) -> StepWork:
    """A pure decode step; a pp-th of the rank's requests in each slot of the pipeline."""
    zero = np.zeros(len(engine.batch))
    context = zero + load.input_len + load.output_len / 2
    rows_each = 1.0 + engine.batch.speculative_tokens
    decoding = np.maximum(a_rank / engine.degrees.pp, 1.0)
    return StepWork(decoding, context, zero, zero + 1.0, context, zero + 1.0, rows_each=rows_each)


def _prompt_servers(pools: Pools) -> PromptServers:
    """Prefill ranks by the time of their steps, with one prompt and with as many as there is room for."""
    engine, prompts = pools.prefill, pools.prompts
    ranks = engine.batch.dp.astype(np.float64)
    # a step has room for so many, and there are never more
    room = np.clip(prompts.fit_in_budget, 1.0, np.maximum(np.ceil(pools.load.concurrency / ranks), 1.0))
    launches = np.ones(len(engine.batch), dtype=np.bool_)
    alone, filled = (engine.slot(_prefill_work(prompts, together), launches) for together in (np.ones_like(room), room))
    one, full = alone.length_s, filled.length_s
    return PromptServers(
        ranks=ranks,
        one_s=prompts.chunks * (one + pools.stack.step_s),
        full_s=prompts.chunks * (np.maximum(full, one) + pools.stack.step_s),
        most=room,
        behind_s=(engine.degrees.pp - 1) * one,
        comm_s=prompts.chunks * alone.exposed_communication_s,
    )


def _decode_slot(pools: Pools, decoding: Column) -> tuple[Slot, Column]:
    """A slot of the slowest decode stage with so many requests over the pool, and the slots in which there is work."""
    engine = pools.decode
    a_rank = np.maximum(decoding / engine.batch.dp, 1.0)
    eager = ~engine.batch.cuda_graphs.astype(bool)
    return engine.slot(_decode_work(engine, pools.load, a_rank), eager), np.minimum(a_rank, engine.degrees.pp)


def _decode_steps(pools: Pools) -> DecodeSteps:
    """The decode step from one request a rank to as many as there are and the pool has seats for, evenly in ratio."""
    most = np.minimum(pools.seats, pools.load.concurrency)
    least = np.minimum(pools.decode.batch.dp, most)
    points = [least * (most / least) ** (point / (POINTS - 1)) for point in range(POINTS)]
    lengths = [pools.decode.degrees.pp * _decode_slot(pools, point)[0].length_s for point in points]
    host_s = [_drafting_s(pools, point) for point in points]
    return DecodeSteps(np.array(points), np.array(lengths) + pools.stack.step_s + np.array(host_s))


def _drafting_s(pools: Pools, decoding: Column) -> Column:
    """Host time of n-grams with so many requests over the pool."""
    load, batch = pools.load, pools.decode.batch
    return drafting_host_s(batch, np.maximum(decoding / batch.dp, 1.0), load.input_len + load.output_len / 2)


def _decode_step(pools: Pools, decoding: Column) -> BreakdownColumns:
    """The step a decoding request sees: pp slots and the engine's own time. Slots without a request are bubble."""
    slot, used = _decode_slot(pools, decoding)
    bubble_s = (pools.decode.degrees.pp - used) * slot.length_s
    return BreakdownColumns.of(
        by_kind={kind: used * time_s for kind, time_s in slot.compute_s.items()},
        by_axis={
            axis: AxisTimes(used * times.total_s, used * times.exposed_s) for axis, times in slot.communication.items()
        },
        idle_s=bubble_s + used * slot.launch_idle_s + pools.stack.step_s + _drafting_s(pools, decoding),
        bubble_s=bubble_s,
    )


def _memory(
    pools: Pools, per_s: Column, prompts: PromptServers, between_s: Column, decoding: Column
) -> tuple[MemoryColumns, tuple[Assumption, ...]]:
    """The fuller device of both pools, and which it is.

    A prefill rank holds the prompts of its step and those on their way, a decode rank the requests that decode.
    """
    step_s = prompts.step_s(prompts.together(per_s))
    held = np.maximum(per_s / prompts.ranks * (step_s + prompts.behind_s + between_s), prompts.together(per_s))
    prefill = pools.prefill_needs.with_requests(held)
    decode = pools.decode_needs.with_requests(decoding / pools.decode.batch.dp)
    fuller = prefill.total_bytes > decode.total_bytes
    items = {name: np.where(fuller, prefill.items()[name], column) for name, column in decode.items().items()}
    pool_bytes = np.where(fuller, pools.prefill_needs.pool_bytes, pools.decode_needs.pool_bytes)
    memory = MemoryColumns(
        **items,
        capacity_bytes=decode.capacity_bytes,
        kv_pool_bytes=pool_bytes,
        concurrency_limit=pools.limit(decoding),
    )
    return memory, (
        Assumption("memory is that of a device of the prefill pool, the fuller of the two", fuller),
        Assumption("memory is that of a device of the decode pool, the fuller of the two", ~fuller),
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
