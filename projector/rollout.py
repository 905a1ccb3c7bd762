"""Rollout: engines generate all responses of a step, from the first prompt to the last token of the longest one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from projector.breakdown_columns import BreakdownColumns
from projector.cost.engine import Engine, Slot
from projector.cost.memory import MemoryColumns
from projector.cost.overlap import AxisTimes
from projector.cost.speculation import check_drafters, tokens_a_step
from projector.cost.token_budget import most_decoding
from projector.errors import InvalidDescription
from projector.graph.columns import Column, Switch
from projector.graph.serving_graph import StepWork
from projector.serving import Load, engine_needs
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan_batch import Column as AnyColumn
from projector.specs.plan_batch import PlanBatch
from projector.specs.rl import RlStep
from projector.specs.serving_stack import ANY_ENGINE

# Points in time at which the draining batch is looked at.
POINTS = 24
# Host time of a decode step beside what a serving engine adds: requests handed over one by one, log-probabilities of
# every token, workers driven through a cluster's scheduler. One figure for all, chosen on the published NeMo RL steps
# whose pools work apart (7 rows of three models on two chips; 0 to 30 ms in steps of 5 were compared). No group of one
# model and chip left out moves the choice, nor do the 10 steps of colocated pools, which it was not chosen on.
DRIVEN_STEP_S = 15e-3


@dataclass(frozen=True)
class Rollout:
    """Seconds and memory of a rollout (columns): prefill, decoding with all seats taken, decoding while they empty.

    breakdown is that of a device of an engine; serves: whether an engine holds a request at all.
    """

    prefill_s: Column
    full_s: Column
    drain_s: Column
    breakdown: BreakdownColumns
    memory: MemoryColumns
    serves: Switch


@dataclass(frozen=True)
class _Steps:
    """So many steps (columns) of one content, each `parts` slots of the pipeline of which `used` do work."""

    count: Column
    slot: Slot
    parts: Column
    used: Column


def rollout(
    batch: PlanBatch,
    model: ModelArchitecture,
    step: RlStep,
    math_dtype: AnyColumn,
    cluster: ClusterSpec,
    hardware: HardwareProfile,
    steps_off_policy: int = 0,
) -> Rollout:
    """Time to generate every response of a step, all of them waiting at the start; columns of shape [len(batch)].

    Responses are spread evenly over attention ranks, c on each, of which r run at once (seats of the KV pool, at most
    max_num_seqs). With S(t) the share of responses longer than t tokens (`survival`) and s(n, context) a decode step:

        prefill   distinct prompts a rank, in steps of chunked_prefill_tokens (samples of a prompt share it)
        full      (c - r) mean_response / r steps with r requests, where more wait than run
        drain     integral over t of s(r S(t), prompt + t): nobody takes the place of who is done, and the longest
                  response ends the rollout
    Engines that may be two or more steps ahead (steps_off_policy) never empty: the same tokens at the rate of a batch
    that stays full. Every decode step pays DRIVEN_STEP_S of the host.
    Where tokens are drafted, a step counts for as many as it gains (`projector.cost.speculation`), without the search
    of the host for n-grams.
    Left out: prefill beside decoding, ranks that draw longer responses than others, preemption, tools and environments
    that answer between two turns. InvalidDescription for a plan with a prefill pool.
    """
    if (batch.prefill_replicas > 0).any():
        raise InvalidDescription(
            "a rollout beside a prefill pool is not modelled: its prompts are a step's first and all there at once",
            hint="let the engines of the rollout prefill: prefill_replicas 0",
        )
    check_drafters(batch, model)
    engine = Engine.of(batch, model, math_dtype, cluster, ANY_ENGINE.on(hardware))
    zero = np.zeros(len(batch))
    ranks = batch.dp.astype(np.float64)
    waiting = np.maximum(step.responses / ranks, 1.0)
    load = Load(step.responses / float(np.min(batch.dp / batch.attention_dp)), step.prompt_tokens, step.response_tokens)
    needs = engine_needs(engine, load, hardware, resident_tokens(step))
    seats = np.minimum(np.maximum(needs.requests, 1.0), batch.max_num_seqs / batch.attention_dp)
    never_empty = steps_off_policy > 1
    seats = np.minimum(seats, most_decoding(batch) * batch.pp)
    running = np.minimum(waiting * max(steps_off_policy, 1), np.maximum(seats, 1.0))
    prefill = _prefill(engine, step, np.maximum(step.prompts / ranks, waiting / step.samples))
    one = _decode(engine, running, zero + step.prompt_tokens + step.response_tokens / 2)
    seated = waiting if never_empty else waiting - running
    gained = tokens_a_step(batch, model, None)
    full = replace(one, count=seated * step.response_tokens / running / gained)
    drain = () if never_empty else tuple(_drain(engine, step, running, gained))
    engine_s = ANY_ENGINE.step_s
    return Rollout(
        prefill_s=_seconds([prefill], engine_s),
        full_s=_seconds([full], engine_s + DRIVEN_STEP_S),
        drain_s=_seconds(drain, engine_s + DRIVEN_STEP_S) if drain else zero,
        breakdown=_breakdown((prefill, full, *drain), engine_s, full.count + sum(one.count for one in drain)),
        memory=needs.with_requests(running),
        serves=needs.requests >= 1,
    )


def survival(step: RlStep, tokens: float) -> float:
    """Share of responses longer than `tokens`: 1 - (t / M)^k up to the cut-off M, with k = m / (M - m) for the mean m.

    The one-parameter family in which a mean close to the cut-off means that most responses run into it; mean m because
    the integral of it is M k / (k + 1). All alike where there is no cut-off beyond the mean.
    """
    longest = step.longest_response or step.response_tokens
    if tokens >= longest:
        return 0.0
    if longest == step.response_tokens:
        return 1.0
    exponent = step.response_tokens / (longest - step.response_tokens)
    return float(1.0 - (tokens / longest) ** exponent)


def resident_tokens(step: RlStep) -> float:
    """Tokens whose keys and values are held when they are most, a response that started: max of S(t) (prompt + t)."""
    longest = step.longest_response or step.response_tokens
    times = np.linspace(0.0, longest, 10 * POINTS, endpoint=False)
    return max(survival(step, float(t)) * (step.prompt_tokens + float(t)) for t in times)


def _prefill(engine: Engine, step: RlStep, prompts: Column) -> _Steps:
    """Chunks of prompts, one step behind the other through the stages."""
    batch, zero = engine.batch, np.zeros(len(engine.batch))
    length = zero + step.prompt_tokens
    budget = np.where(batch.chunked_prefill_tokens == 0, length, batch.chunked_prefill_tokens)
    budget = np.where(batch.max_batched_tokens == 0, budget, np.minimum(budget, batch.max_batched_tokens))
    together = np.maximum(np.floor(budget / length), 1.0)
    chunks = np.ceil(length / budget)
    work = StepWork(zero, length, np.minimum(together, prompts), length / chunks, length, chunks)
    count = prompts * chunks / np.minimum(together, prompts)
    one = np.ones_like(zero)
    return _Steps(count, engine.slot(work, np.ones(len(batch), dtype=np.bool_)), one, one)


def _decode(engine: Engine, decoding: Column, context: Column) -> _Steps:
    """One decode step of so many requests a rank, a pp-th of them in each slot."""
    pp, zero = engine.degrees.pp, np.zeros(len(engine.batch))
    rows_each = 1.0 + engine.batch.speculative_tokens
    work = StepWork(np.maximum(decoding / pp, 1.0), context, zero, zero + 1.0, context, zero + 1.0, rows_each=rows_each)
    slot = engine.slot(work, ~engine.batch.cuda_graphs.astype(bool))
    return _Steps(np.ones_like(zero), slot, pp, np.minimum(decoding, pp))


def _drain(engine: Engine, step: RlStep, running: Column, gained: Column) -> Iterator[_Steps]:
    """The emptying batch at the middle of each of POINTS stretches of equal length."""
    longest = step.longest_response or step.response_tokens
    stretch = longest / POINTS
    for point in range(POINTS):
        time = (point + 0.5) * stretch
        decoding = np.maximum(running * survival(step, time), 1.0)
        found = _decode(engine, decoding, np.zeros_like(running) + step.prompt_tokens + time)
        yield replace(found, count=found.count * stretch / gained)


def _seconds(steps: Sequence[_Steps], engine_s: float) -> Column:
    zero = np.zeros_like(steps[0].count)
    return sum((one.count * (one.parts * one.slot.length_s + engine_s) for one in steps), start=zero)


def _breakdown(steps: tuple[_Steps, ...], engine_s: float, driven: Column) -> BreakdownColumns:
    """Work and waiting of a device of the slowest stage; slots without a request are bubble. driven: decode steps."""
    zero = np.zeros_like(steps[0].count)
    kinds = {kind: None for one in steps for kind in one.slot.compute_s}
    axes = {axis: None for one in steps for axis in one.slot.communication}
    nothing = AxisTimes(zero, zero)
    by_kind = {
        kind: sum((one.count * one.used * one.slot.compute_s.get(kind, zero) for one in steps), start=zero)
        for kind in kinds
    }
    by_axis = {
        axis: AxisTimes(
            sum((o.count * o.used * o.slot.communication.get(axis, nothing).total_s for o in steps), start=zero),
            sum((o.count * o.used * o.slot.communication.get(axis, nothing).exposed_s for o in steps), start=zero),
        )
        for axis in axes
    }
    bubble_s = sum((one.count * (one.parts - one.used) * one.slot.length_s for one in steps), start=zero)
    host_s = sum(
        (one.count * (one.used * one.slot.launch_idle_s + engine_s) for one in steps), start=driven * DRIVEN_STEP_S
    )
    return BreakdownColumns.of(by_kind, by_axis, idle_s=bubble_s + host_s, bubble_s=bubble_s)
