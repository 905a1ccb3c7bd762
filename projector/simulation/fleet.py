"""The fleet: requests arrive, a router gives each to a rank of an engine, engines run until enough are done."""

from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import floor, inf
from typing import Literal

from projector.errors import InvalidDescription
from projector.simulation.arrivals import Requests
from projector.simulation.replica import Counts, Replica
from projector.simulation.request import Request
from projector.simulation.scheduler import Rank

Routing = Literal["least_loaded", "round_robin"]

# What is left of the step under way when a request comes, in the mean: part of the steps until it is looked at.
STEP_UNDER_WAY = 0.5
# Jumps of engines after which a simulation is given up: minutes of one core.
MOST_JUMPS = 5_000_000


@dataclass
class Router:
    """Which rank a request goes to: the one with fewest requests (of equals the first), or one after the other."""

    routing: Routing
    ranks: list[tuple[int, Rank]]
    _turn: int = 0
    _heap: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for place, (_, rank) in enumerate(self.ranks):
            rank.place = place
            self.note(rank)

    def pick(self) -> tuple[int, Rank]:
        """(engine, rank) of the next request. Call `note` with the rank's place once its load has changed."""
        if self.routing == "round_robin" or len(self.ranks) == 1:
            self._turn += 1
            return self.ranks[(self._turn - 1) % len(self.ranks)]
        while self._heap[0][0] != self.ranks[self._heap[0][1]][1].load:
            heappop(self._heap)
        return self.ranks[self._heap[0][1]]

    def note(self, rank: Rank) -> None:
        """The load of this rank has changed: entries of other loads are void."""
        if self.routing == "least_loaded":
            heappush(self._heap, (rank.load, rank.place))


@dataclass
class Outcome:
    """What came of it: who is done, in that order; requests sent until the warm-up was over (at warm_s) and until the
    end; those no pool has room for."""

    finished: list[Request]
    warm_s: float
    end_s: float
    arrived_warm: int
    arrived: int
    refused: int


def run(
    requests: Requests,
    replicas: list[Replica],
    counts: Counts,
    *,
    routing: Routing,
    clients: int,
    warmup: int,
    measured: int,
    request_s: float,
    admission_steps: float = 0.0,
    ramp_s: float = 0.0,
    front: list[Replica] | None = None,
    handover_s: list[float] | None = None,
) -> Outcome:
    """Simulate until warmup + measured requests are done, or all are.

    clients: requests in flight of a closed loop; a new one is sent when one is done, the first ones evenly over ramp_s
    (0: all at once). request_s: what a request takes before it reaches an engine; admission_steps: mean steps between
    its arrival at a busy engine and the first that may carry its prompt. front: engines of a prefill pool, from which
    each request goes to `replicas` after its handover_s. InvalidDescription when the engines take more
    than MOST_JUMPS jumps.
    """
    return _Run(
        requests,
        replicas,
        counts,
        routing,
        clients,
        warmup,
        measured,
        request_s,
        admission_steps,
        ramp_s,
        front or [],
        handover_s or [],
    ).to_the_end()


def _router(routing: Routing, replicas: list[Replica], first: int) -> Router:
    """Over all ranks, those of one place in their engines after the other; `first`: the number of the first engine."""
    most = max(len(replica.ranks) for replica in replicas)
    return Router(routing, [(first + i, one.ranks[rank]) for rank in range(most) for i, one in enumerate(replicas)])


class _Run:
    def __init__(
        self,
        requests: Requests,
        replicas: list[Replica],
        counts: Counts,
        routing: Routing,
        clients: int,
        warmup: int,
        measured: int,
        request_s: float,
        admission_steps: float,
        ramp_s: float,
        front: list[Replica],
        handover_s: list[float],
    ) -> None:
        self.requests, self.replicas, self.counts = requests, [*front, *replicas], counts
        self.front, self.handover_s = len(front), handover_s
        self.handovers: list[tuple[float, int, Request]] = []
        self.back = _router(routing, replicas, len(front))
        self.router = _router(routing, front, 0) if front else self.back
        self.warmup, self.wanted, self.request_s = warmup, warmup + measured, request_s
        self.admission_steps = admission_steps
        self.columns = (
            requests.input_tokens.tolist(),
            requests.output_tokens.tolist(),
            requests.decode_steps.tolist(),
            requests.cached_tokens.tolist(),
        )
        self.blocks = requests.log.blocks if requests.log is not None else ()
        self.times: list[float] | None = None if requests.arrival_s is None else requests.arrival_s.tolist()
        self.sent = 0
        self.refused = 0
        self.finished: list[Request] = []
        self.ends: list[tuple[float, int, int]] = []
        self.closed: list[float] = []
        self.warm_s, self.arrived_warm = 0.0, 0
        if self.times is None:
            count = min(clients, len(requests))
            self.closed = [ramp_s * client / count for client in range(count)]
        if warmup == 0:
            counts.recording = True

    def to_the_end(self) -> Outcome:
        """Events in order of time; of equal times arrivals first, then engines by their number."""
        now_s, jumps = 0.0, 0
        while len(self.finished) < self.wanted:
            arrival_s, end_s = self._next_arrival(), self._next_end()
            coming_s = min(inf if arrival_s is None else arrival_s + self.request_s, inf if end_s is None else end_s)
            if self.handovers and self.handovers[0][0] <= coming_s:
                self._hand_over()
                continue
            if arrival_s is not None and (end_s is None or arrival_s + self.request_s <= end_s):
                self._deliver(arrival_s)
                continue
            if end_s is None:
                break
            _, index, _ = heappop(self.ends)
            now_s = end_s
            self._end(self.replicas[index], index)
            jumps += 1
            if jumps > MOST_JUMPS:
                raise InvalidDescription(
                    f"the engines took more than {MOST_JUMPS} jumps for {len(self.finished)} of {self.wanted} requests",
                    hint="simulate fewer requests, shorter prompts or larger prefill chunks",
                )
        return Outcome(self.finished, self.warm_s, now_s, self.arrived_warm, self.sent, self.refused)

    def _next_arrival(self) -> float | None:
        if self.sent == len(self.requests):
            return None
        if self.times is None:
            return self.closed[0] if self.closed else None
        return self.times[self.sent]

    def _next_end(self) -> float | None:
        while self.ends and self.ends[0][2] != self.replicas[self.ends[0][1]].turn:
            heappop(self.ends)
        return self.ends[0][0] if self.ends else None

    def _deliver(self, arrival_s: float) -> None:
        if self.times is None:
            heappop(self.closed)
        index = self.sent
        self.sent += 1
        inputs, outputs, steps, cached = (column[index] for column in self.columns)
        blocks = self.blocks[index] if self.blocks else ()
        engine, rank = self.router.pick()
        held = self.back.ranks[0][1].pool
        whole = inputs + outputs - 1 - (0 if self.front else cached)
        if held.of(whole) > held.bytes_ or rank.pool.of(inputs - cached) > rank.pool.bytes_:
            self.refused += 1
            self._send_another(arrival_s)
            return
        if self.front:
            outputs, steps = 1, 0
        request = Request(index, arrival_s, inputs, outputs, steps, cached, blocks, rank)
        self._place(request, engine, self.router, arrival_s + self.request_s)

    def _hand_over(self) -> None:
        """A prompt is through the prefill pool, and its keys and values are across."""
        now_s, index, before = heappop(self.handovers)
        inputs, outputs, steps, _ = (column[index] for column in self.columns)
        engine, rank = self.back.pick()
        # a step makes the first token too: one more than follow it
        request = Request(index, before.arrival_s, inputs, outputs + 1, steps, 0, (), rank)
        request.started_s, request.prefilled = before.started_s, True
        self._place(request, engine, self.back, now_s)

    def _place(self, request: Request, engine: int, router: Router, now_s: float) -> None:
        rank = request.rank
        rank.waiting.append(request)
        router.note(rank)
        replica = self.replicas[engine]
        if replica.end_s is None:
            request.ready_step = replica.step + self._late(request, self.admission_steps)
            # it starts when all that come at this time are there
            replica.wake(now_s)
            self._note_end(replica, engine)
            return
        if rank.may_admit():
            turn = replica.turn
            replica.cut(now_s)
            if replica.turn != turn:
                self._note_end(replica, engine)
        late = self._late(request, max(self.admission_steps - STEP_UNDER_WAY, 0.0))
        request.ready_step = replica.step + max(replica.steps, 1) + late

    def _late(self, request: Request, steps: float) -> int:
        """Whole steps whose mean over requests is `steps`: of 0.7 none, one, one, none, one, ...

        As in the projection a prefill pool looks at a prompt with its next step; its decode engines take their time.
        """
        if self.front and not request.prefilled:
            return 0
        return floor((request.index + 1) * steps) - floor(request.index * steps)

    def _end(self, replica: Replica, index: int) -> None:
        for request in replica.finish():
            if index < self.front:
                heappush(self.handovers, (request.finish_s + self.handover_s[request.index], request.index, request))
                self.router.note(request.rank)
                continue
            self.finished.append(request)
            if len(self.finished) == self.warmup:
                self.warm_s, self.arrived_warm = request.finish_s, self.sent
                self.counts.recording = True
            self._send_another(request.finish_s)
            self.back.note(request.rank)
        while (arrival_s := self._next_arrival()) is not None and arrival_s + self.request_s <= replica.clock_s:
            self._deliver(arrival_s)
        replica.start()
        self._note_end(replica, index)

    def _send_another(self, now_s: float) -> None:
        if self.times is None:
            heappush(self.closed, now_s)

    def _note_end(self, replica: Replica, index: int) -> None:
        if replica.end_s is not None:
            heappush(self.ends, (replica.end_s, index, replica.turn))
