"""The steps of a serving engine in steady state, and what a request spends in them."""

from dataclasses import dataclass, replace

import numpy as np

from projector.breakdown_columns import BreakdownColumns
from projector.cost.closed_loop import Loop, first_round
from projector.cost.engine import Engine, Slot
from projector.cost.overlap import AxisTimes
from projector.cost.token_budget import Prompts
from projector.graph.columns import Column
from projector.graph.step_work import StepWork
from projector.serving_load import Fleet, Load
from projector.specs.serving_stack import ServingStack


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


def slots(engine: Engine, load: Load, loop: Loop, prompts: Prompts) -> tuple[Slot, Slot]:
    """A pure decode passage and a mixed one through the slowest stage; a pp-th of the decoding requests in each."""
    pp = engine.degrees.pp
    decode = work(load, prompts, np.maximum(loop.decoding / pp, 1.0), 0 * pp)
    mixed = work(load, prompts, loop.beside_prefill / pp, loop.prompts)
    eager = ~engine.batch.cuda_graphs.astype(bool)
    return engine.slot(decode, eager), engine.slot(mixed, np.ones_like(eager))


def work(load: Load, prompts: Prompts, decoding: Column, together: Column) -> StepWork:
    """A step with `together` prompts beside `decoding` requests at their mean context.

    Attention grows with the square of a prompt: its length counts by the root of the mean square.
    """
    return StepWork(
        decoding,
        np.full_like(decoding, load.context),
        together,
        prompts.chunk,
        prompts.length * np.sqrt(1 + load.length_spread_frac**2 / 3),
        prompts.chunks,
        cached=prompts.cached,
        rows_each=prompts.rows_each,
    )


def mean_step(engine: Engine, loop: Loop, pure: Slot, mixed: Slot, engine_s: Column | float) -> BreakdownColumns:
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


def latencies(
    engine: Engine,
    fleet: Fleet,
    loop: Loop,
    pure: Slot,
    mixed: Slot,
    step_s: Column,
    gained: Column,
    stack: ServingStack,
) -> Latencies:
    """Means over requests.

        TTFT = overhead + queue + admission + R t_cycle
        t_cycle = pp t_mixed + engine, admission = (steps the engine takes to look at a new request) x mean step
        TPOT = mean step / tokens gained in it, latency = TTFT + Z mean step

    R is counted in steps (`closed_loop`). Who is alone on an engine is looked at once. The queue holds what the engine
    cannot run at once: with N in flight and c running, each S seconds in its seat, a request takes N / c S by Little's
    law. The overhead takes no seat: it hides behind the queue. A chunk passes every stage before the next one of its
    prompt starts.
    """
    cycle_s = engine.degrees.pp * np.maximum(mixed.length_s, pure.length_s) + stack.step_s
    admission_s = np.minimum(loop.beside_prefill, 1.0) * stack.admission_steps * step_s
    prefill_s = loop.prefill_steps * cycle_s
    first_s = stack.request_s + admission_s + prefill_s
    service_s = first_s + loop.decode_steps * step_s
    seat_s = service_s - stack.request_s
    queue_s = np.maximum(fleet.offered / fleet.running * seat_s - service_s, 0.0)
    return Latencies(
        queue_s=queue_s,
        prefill_s=prefill_s,
        ttft_s=queue_s + first_s,
        tpot_s=step_s / gained,
        request_s=queue_s + service_s,
    )


def first_round_s(engine: Engine, load: Load, fleet: Fleet, prompts: Prompts, stack: ServingStack) -> Column:
    """Mean prefill of requests that take every seat of an engine at once.

    Steps carry as many prompts as they may, beside half of the others decoding; on a pipeline a slot follows the other.
    """
    pp = engine.degrees.pp
    together = np.clip(prompts.fit_in_budget, 1.0, fleet.a_rank)
    half = work(load, prompts, (fleet.a_rank - together) / 2 / pp, together)
    full = engine.slot(half, np.ones(len(pp), dtype=np.bool_))
    step_s = full.length_s + stack.step_s
    return first_round(fleet.a_rank, together, step_s, prompts.chunks) + (pp - 1) * full.length_s
