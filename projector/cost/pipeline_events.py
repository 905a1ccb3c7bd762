"""Events of schedules whose length no short formula gives: pass by pass, every duration a column over plans.

A schedule is laid out once for its sizes (which pass follows which on a device, and whose result it waits for), then
its passes are timed in that order, two or three column operations each. DualPipe on p devices has about 4 p^2
passes, interleaved 1F1B with v chunks 8 v p^2: 16 devices two ways 1,010, timed in 1 ms for one plan and 5 us a plan
for many; 8 devices of 4 chunks 2,048, in 4 ms and 9 us.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from projector.graph.columns import Column

# Forward; backward with its weight gradients; backward of inputs alone; weight gradients alone.
Work = Literal["ahead", "back", "input", "weight"]
# A pass of a part of the model: (work, stage in the order of the model, micro-batch).
Part = tuple[Work, int, int]
# Passes a device runs at once: (work, which half of the micro-batches).
Together = Sequence[tuple[Work, int]]


@dataclass(frozen=True, slots=True)
class Event:
    """One stretch of work of a device: the parts done together, and what has to be there before.

    device       who does it; the one before it in the list on this device has to be done
    parts        (work, stage) whose durations add up
    waits_for    numbers of events, each with whether its result comes from another device
    """

    device: int
    parts: tuple[tuple[Work, int], ...]
    waits_for: tuple[tuple[int, bool], ...]


def makespan_s(events: Sequence[Event], duration_s: Callable[[Work, int], Column], hop_s: Column) -> Column:
    """When the last event ends (columns). duration_s: of a work on a stage."""
    ends: list[Column] = []
    begin = np.zeros_like(hop_s)
    free: dict[int, Column] = {}
    durations: dict[tuple[Work, int], Column] = {}
    for event in events:
        start = free.get(event.device, begin)
        for number, travels in event.waits_for:
            start = np.maximum(start, ends[number] + hop_s if travels else ends[number])
        for part in event.parts:
            if part not in durations:
                durations[part] = duration_s(*part)
            start = start + durations[part]
        free[event.device] = start
        ends.append(start)
    found = next(iter(free.values()))
    for end in free.values():
        found = np.maximum(found, end)
    return found


@lru_cache(maxsize=16)
def interleaved(pp: int, vp: int, micro_batches: int) -> tuple[Event, ...]:
    """Interleaved 1F1B as Megatron-LM orders it (Narayanan et al. 2021, arXiv:2104.04473, section 2.2).

    Device r passes groups of pp micro-batches through its chunks one after the other: 2 (pp - r - 1) + (vp - 1) pp
    forward passes first, then one backward pass behind each. Stage c pp + r is its chunk c.
    """
    total = micro_batches * vp

    def passes(rank: int) -> Iterator[tuple[Part, ...]]:
        def part(number: int, *, ahead: bool) -> tuple[Part, ...]:
            group, inside = divmod(number, pp * vp)
            chunk = inside // pp if ahead else vp - 1 - inside // pp
            return (("ahead" if ahead else "back", chunk * pp + rank, group * pp + inside % pp),)

        first = min(2 * (pp - rank - 1) + (vp - 1) * pp, total)
        yield from (part(number, ahead=True) for number in range(first))
        for number in range(first, total):
            yield part(number, ahead=True)
            yield part(number - first, ahead=False)
        yield from (part(number, ahead=False) for number in range(total - first, total))

    return _in_order([list(passes(rank)) for rank in range(pp)], pp * vp)


@lru_cache(maxsize=16)
def dualpipe(pp: int, micro_batches: int) -> tuple[Event, ...]:
    """DualPipe (DeepSeek-V3, arXiv:2412.19437, section 3.2.1, in the order of its published implementation).

    Half of the micro-batches enter at each end; device r holds stage r for the one half and stage pp - 1 - r for the
    other, and runs forward passes of one together with backward passes of the other. pp is even, micro_batches too and
    at least 2 pp.
    """
    half = micro_batches // 2

    def passes(side: int) -> Iterator[Together]:
        """What is done together; half 0 is the one that enters nearer, `side` devices away."""
        inner = pp // 2 - side - 1
        yield from _times(2 * inner, [("ahead", 0)])
        yield from _times(side + 1, [("ahead", 0)], [("ahead", 1)])
        yield from _times(inner, [("input", 1)], [("weight", 1)], [("ahead", 1)])
        beside = half - pp + side + 1
        if inner == 0 and beside > 0:
            # the two in the middle have nothing to run beside their first pass
            yield from _times(1, [("ahead", 0)], [("back", 1)], [("ahead", 1), ("back", 0)])
            beside -= 1
        yield from _times(beside, [("ahead", 0), ("back", 1)], [("ahead", 1), ("back", 0)])
        yield from _times(inner, [("back", 1)], [("ahead", 1), ("back", 0)])
        for number in range(2 * (side + 1)):
            yield from _times(1, [("input" if number > side else "back", 1 - number % 2)])
        yield from _times(inner, [("weight", 0)], [("input", 0)])
        yield from _times(side + 1, [("weight", 0)])

    def parts(rank: int) -> Iterator[tuple[Part, ...]]:
        """The same with stages and micro-batches: even ones run from device 0 to the last, odd ones back."""
        counted: dict[tuple[bool, int], int] = {}
        put_off: list[Part] = []
        for together in passes(min(rank, pp - 1 - rank)):
            done = []
            for work, nearer in together:
                if work == "weight":
                    done.append(put_off.pop(0))
                    continue
                way = nearer ^ (rank >= pp // 2)
                stage, key = (pp - 1 - rank if way else rank), (work == "ahead", way)
                micro = 2 * counted.setdefault(key, 0) + way
                counted[key] += 1
                done.append((work, stage, micro))
                if work == "input":
                    put_off.append(("weight", stage, micro))
            yield tuple(done)

    return _in_order([list(parts(rank)) for rank in range(pp)], pp)


def _times(count: int, *each: Together) -> Iterator[Together]:
    for _ in range(count):
        yield from each


def _in_order(queues: Sequence[Sequence[tuple[Part, ...]]], stages: int) -> tuple[Event, ...]:
    """What the devices do, each in its own order, as one list in which nothing stands before what it waits for."""
    events: list[Event] = []
    done: dict[tuple[bool, int, int], int] = {}  # (whether forward, stage, micro-batch) -> event
    position = [0] * len(queues)

    def needed(part: Part) -> tuple[bool, int, int] | None:
        work, stage, micro = part
        if work == "ahead":
            return (True, stage - 1, micro) if stage > 0 else None
        return (False, stage + 1, micro) if stage < stages - 1 else (True, stage, micro)

    left = sum(map(len, queues))
    while left:
        before = left
        for device, queue in enumerate(queues):
            while position[device] < len(queue):
                together = queue[position[device]]
                wanted = [needed(part) for part in together if part[0] != "weight"]
                if any(key is not None and key not in done for key in wanted):
                    break
                numbers = [done[key] for key in wanted if key is not None]
                waits_for = tuple((number, events[number].device != device) for number in numbers)
                done |= {
                    (work == "ahead", stage, micro): len(events) for work, stage, micro in together if work != "weight"
                }
                events.append(Event(device, tuple((work, stage) for work, stage, _ in together), waits_for))
                position[device] += 1
                left -= 1
        assert left < before, "a schedule whose devices wait for each other"
    return tuple(events)
