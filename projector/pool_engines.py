"""Engines of a prefill and of a decode pool: the steps of each, and the memory of the fuller device."""

from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from projector.batch_projection import Assumption
from projector.breakdown import ConcurrencyLimit
from projector.breakdown_columns import BreakdownColumns
from projector.cost.admission import held_tokens
from projector.cost.engine import Engine, Slot
from projector.cost.memory import MemoryColumns
from projector.cost.overlap import AxisTimes
from projector.cost.pools import POINTS, DecodeSteps, PromptServers, decode_pool, prefill_pool
from projector.cost.serving_memory import Held, ServingNeeds, serving_needs
from projector.cost.speculation import drafting_host_s
from projector.cost.token_budget import Prompts, most_decoding
from projector.graph.columns import Column
from projector.graph.serving_graph import StepWork, serving_graph, serving_scope
from projector.serving import Load
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan_batch import Column as AnyColumn
from projector.specs.plan_batch import PlanBatch
from projector.specs.serving_stack import ServingStack


@dataclass(frozen=True)
class Pools:
    """Both pools of every plan, each as engines of its own, how prompts are cut, and the memory a device needs."""

    prefill: Engine
    decode: Engine
    prompts: Prompts
    prefill_needs: ServingNeeds
    decode_needs: ServingNeeds
    load: Load
    stack: ServingStack

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


def pools_of(
    batch: PlanBatch,
    model: ModelArchitecture,
    load: Load,
    math_dtype: AnyColumn,
    cluster: ClusterSpec,
    hardware: HardwareProfile,
    stack: ServingStack,
) -> Pools:
    """Both pools of every plan; GEMMs run in `math_dtype`."""
    prefill, decode = (
        Engine.of(pool, model, math_dtype, cluster, stack.on(hardware), load.expert_imbalance)
        for pool in (prefill_pool(batch), decode_pool(batch))
    )
    prompts = Prompts.of(prefill.batch, load.input_len, load.prefix_hit_frac, np.zeros(len(batch)))
    seqs = np.minimum(decode.batch.max_num_seqs, load.concurrency) / decode.batch.attention_dp
    most = np.minimum(seqs, most_decoding(decode.batch) * decode.batch.pp)
    cached = load.prefix_hit_frac * load.input_len
    together = np.maximum(prompts.fit_in_budget, 1.0)
    held = Held(load.input_len - cached, cached)
    # a decode engine has no prefix cache: what arrives is the whole prompt's
    kept = Held(held_tokens(load.input_len, load.output_len, stack, load.length_spread_frac))
    return Pools(
        prefill=prefill,
        decode=decode,
        prompts=prompts,
        prefill_needs=_needs(prefill, _prefill_work(prompts, together), held, hardware),
        decode_needs=_needs(decode, _decode_work(decode, load, most), kept, hardware),
        load=load,
        stack=stack,
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
    """A pure decode step, drafted tokens included; a pp-th of the rank's requests in each slot of the pipeline."""
    zero = np.zeros(len(engine.batch))
    context = zero + load.context
    decoding, rows_each = np.maximum(a_rank / engine.degrees.pp, 1.0), 1.0 + engine.batch.speculative_tokens
    return StepWork(decoding, context, zero, zero + 1.0, context, zero + 1.0, rows_each=rows_each)


def prompt_servers(pools: Pools) -> PromptServers:
    """Prefill ranks by the time of their steps, with one prompt and with as many as there is room for."""
    engine, prompts = pools.prefill, pools.prompts
    ranks = engine.batch.dp.astype(np.float64)
    # a step has room for so many, the rank has memory for so many, and there are never more than are in flight
    fit = np.minimum(prompts.fit_in_budget, np.floor(pools.prefill_needs.requests))
    room = np.clip(fit, 1.0, np.maximum(np.ceil(pools.load.concurrency / ranks), 1.0))
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


def decode_steps(pools: Pools) -> DecodeSteps:
    """The decode step from one request a rank to as many as there are and the pool has seats for, evenly in ratio."""
    most = np.minimum(pools.seats, pools.load.concurrency)
    least = np.minimum(pools.decode.batch.dp, most)
    points = [least * (most / least) ** (point / (POINTS - 1)) for point in range(POINTS)]
    lengths = [
        pools.decode.degrees.pp * _decode_slot(pools, point)[0].length_s + _host_s(pools, point) for point in points
    ]
    return DecodeSteps(np.array(points), np.array(lengths))


def _host_s(pools: Pools, decoding: Column) -> Column:
    """Time of a decode step that the engine adds: its own, and what searching for n-grams takes."""
    batch, load = pools.decode.batch, pools.load
    a_rank = np.maximum(decoding / batch.dp, 1.0)
    return pools.stack.step_s + drafting_host_s(batch, a_rank, load.context)


def decode_step(pools: Pools, decoding: Column) -> BreakdownColumns:
    """The step a decoding request sees: pp slots and the engine's own time. Slots without a request are bubble."""
    slot, used = _decode_slot(pools, decoding)
    bubble_s = (pools.decode.degrees.pp - used) * slot.length_s
    return BreakdownColumns.of(
        by_kind={kind: used * time_s for kind, time_s in slot.compute_s.items()},
        by_axis={
            axis: AxisTimes(used * times.total_s, used * times.exposed_s) for axis, times in slot.communication.items()
        },
        idle_s=bubble_s + used * slot.launch_idle_s + _host_s(pools, decoding),
        bubble_s=bubble_s,
    )


def pool_memory(
    pools: Pools, per_s: Column, prompts: PromptServers, between_s: Column, decoding: Column
) -> tuple[MemoryColumns, tuple[Assumption, ...]]:
    """The fuller device of both pools, and which it is.

    A prefill rank holds the prompts of its step and those on their way, as many as it can, a decode rank the requests
    that decode.
    """
    step_s = prompts.step_s(prompts.together(per_s))
    held = np.maximum(per_s / prompts.ranks * (step_s + prompts.behind_s + between_s), prompts.together(per_s))
    prefill = pools.prefill_needs.with_requests(np.minimum(held, pools.prefill_needs.requests))
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
