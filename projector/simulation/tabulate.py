"""From the cost model to the tables of a simulation: step times of one plan, and its KV pool."""

from dataclasses import dataclass, replace

import numpy as np

from projector.cost.device import Device
from projector.cost.engine import Engine, Slot
from projector.cost.speculation import drafting_host_s
from projector.errors import InvalidDescription
from projector.graph.columns import Column
from projector.project_input import math_dtypes
from projector.serving import Load, engine_needs
from projector.simulation.pool import Pool
from projector.simulation.step_times import Ranges, StepTimes, prefill_work
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.serving_stack import ANY_ENGINE, ServingStack

# Grid points evaluated at once: columns of this length stay in a processor's cache.
POINTS = 16384
# and of all: ten seconds
MOST_POINTS = 3_000_000


@dataclass(frozen=True)
class Deployment:
    """One plan of one model on one cluster; expert_imbalance: of the traffic, as in `WorkloadSpec`.

    follows: one step follows the other through the stages, as prompts of a prefill pool do; else a step is a round.
    """

    plan: ParallelismPlan
    model: ModelArchitecture
    cluster: ClusterSpec
    hardware: HardwareProfile
    stack: ServingStack = ANY_ENGINE
    expert_imbalance: float | None = None
    follows: bool = False

    def engine(self, count: int) -> Engine:
        """The plan's engine so many times, one column a copy."""
        batch = PlanBatch.from_plans([self.plan]).take(np.zeros(count, dtype=np.intp))
        driven = self.stack.on(self.hardware)
        math_dtype, _ = math_dtypes(batch, Device.of(self.hardware))
        return Engine.of(batch, self.model, math_dtype, self.cluster, driven, self.expert_imbalance)

    @property
    def windows(self) -> tuple[int, ...]:
        """Lengths at which attention of some layers stops growing."""
        sorts = self.model.by_sort() if self.model.sorts else (self.model,)
        return tuple(sorted({sort.window for sort in sorts if sort.window is not None}))


@dataclass(frozen=True)
class Swept:
    """Steps of many contents, columns: their seconds, and those without waiting for the host; how long the host takes
    for a step in which nobody decodes, and for others.

    seconds = max(device, host): beyond that the host launches the same kernels whatever a step holds.
    """

    seconds: Column
    device_s: Column
    host_s: tuple[float, float]


def step_times(of: Deployment, ranges: Ranges) -> StepTimes:
    """Both tables: two sweeps of the cost model, one column a grid point."""
    n, context, beside = ranges.decoding(), ranges.context(), ranges.mixed_context()
    tokens, prompt = ranges.tokens(), ranges.prompt()
    size = len(n) * len(beside) * len(tokens) * len(prompt)
    if size > MOST_POINTS:
        raise InvalidDescription(
            f"requests of {ranges.least_context:g} to {ranges.most_context:g} tokens span too much for one table",
            hint="bound chunked_prefill_tokens and max_num_seqs, or simulate short and long requests apart",
        )
    decode = swept(of, *_points(n, context))
    mixed = swept(of, *_points(n, beside, tokens, prompt))
    return StepTimes(
        decoding=n,
        context=context,
        mixed_context=beside,
        tokens=tokens,
        prompt=prompt,
        decode_s=decode.device_s.reshape(len(n), len(context)),
        mixed_s=mixed.device_s.reshape(len(n), len(beside), len(tokens), len(prompt)),
        decode_host_s=decode.host_s[1],
        mixed_host_s=mixed.host_s,
    )


def swept(
    of: Deployment, decoding: Column, context: Column, tokens: Column | None = None, prompt: Column | None = None
) -> Swept:
    """Steps of these contents; without `tokens` (and `prompt`, see `prefill_work`) pure decode steps.

    As in `projector.serving`: a step passes pp stages, one slot each with a pp-th of the decoding requests, and

        step = pp slot + engine
    """
    lengths, idle = [], []
    for low in range(0, len(decoding), POINTS):
        part = slice(low, low + POINTS)
        prefill = (None, None) if tokens is None or prompt is None else (tokens[part], prompt[part])
        one = of.engine(len(decoding[part]))
        slot = _slot(one, of.plan, decoding[part], context[part], *prefill)
        engine_s = of.stack.step_s + drafting_host_s(one.batch, decoding[part], context[part])
        rounds = 1 if of.follows else of.plan.pp
        lengths.append(rounds * slot.length_s + engine_s)
        idle.append(rounds * slot.launch_idle_s)
    length_s, idle_s = np.concatenate(lengths), np.concatenate(idle)
    device_s, host_s = length_s.copy(), [0.0, 0.0]
    # attention to nobody decoding is not launched
    for beside, found in enumerate((decoding == 0, decoding > 0)):
        if not found.any():
            continue
        # what every step waits (gaps between replayed pieces) is no waiting for the host
        gaps_s = idle_s[found].min()
        waits = found & (idle_s > gaps_s + 1e-9 * length_s)
        device_s[found] += gaps_s - idle_s[found]
        host_s[beside] = float(length_s[waits].max()) if waits.any() else 0.0
    return Swept(length_s, device_s, (host_s[0], host_s[1]))


def _slot(
    engine: Engine,
    plan: ParallelismPlan,
    decoding: Column,
    context: Column,
    tokens: Column | None,
    prompt: Column | None,
) -> Slot:
    pp, rows, one = plan.pp, 1 + plan.speculative_tokens, np.ones(len(decoding))
    if tokens is None or prompt is None:
        work = replace(prefill_work(np.maximum(decoding / pp, 1.0), context, one, one, rows), prompts=0 * one)
        return engine.slot(work, ~engine.batch.cuda_graphs.astype(bool))
    return engine.slot(prefill_work(decoding / pp, context, tokens, prompt, rows), one.astype(bool))


def pool(of: Deployment, load: Load, shortest: float, longest: float) -> Pool:
    """What the fullest device of an engine has for keys and values, and what requests of these lengths take of it."""
    engine, block_tokens = of.engine(1), of.plan.kv_block_tokens
    short, long_ = (engine_needs(engine, load, of.hardware, tokens) for tokens in (shortest, longest))
    low, high = float(short.kv_bytes_per_request[0]), float(long_.kv_bytes_per_request[0])
    token_bytes = (high - low) / (longest - shortest)
    # the cost model rounds to blocks in the mean, the pool each request
    own_tokens = longest - load.prefix_hit_frac * load.input_len + (block_tokens - 1) / 2
    return Pool(
        bytes_=max(float(long_.pool_bytes[0] - long_.prefix_bytes[0]), 0.0),
        request_bytes=max(high - token_bytes * own_tokens, 0.0),
        token_bytes=token_bytes,
        block_tokens=block_tokens,
    )


def _points(*axes: Column) -> tuple[Column, ...]:
    return tuple(axis.ravel() for axis in np.meshgrid(*axes, indexing="ij"))
