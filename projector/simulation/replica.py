"""Replica: one engine, whose attention ranks step together; advanced in jumps.

Between an arrival, a finish, the end of a chunk and a full pool nothing changes but the context of the decoding
requests, and the steps until then are summed in closed form (`StepTimes.decode_many`): a simulation costs by events,
not by tokens.
"""

from array import array
from dataclasses import dataclass, field
from itertools import pairwise

from projector.simulation.request import Request
from projector.simulation.scheduler import Rank
from projector.simulation.step_times import StepTimes

# Steps of a jump get longer as the context grows; gaps are kept apart where they differ by more than this share.
SAME_GAP_FRAC = 0.01


@dataclass
class Counts:
    """Sums over steps since recording began: steps, those with prefill, decoding requests, gaps between tokens."""

    recording: bool = False
    steps: int = 0
    mixed_steps: int = 0
    decoding_sum: float = 0.0
    prefill_tokens: int = 0
    gaps_s: "array[float]" = field(default_factory=lambda: array("d"))
    gap_counts: "array[float]" = field(default_factory=lambda: array("d"))

    def gap(self, seconds: float, count: float) -> None:
        """So many gaps between two tokens of one request."""
        if count and self.recording:
            self.gaps_s.append(seconds)
            self.gap_counts.append(count)


class Replica:
    """An engine: `clock_s` is the end of its last step, `end_s` that of the steps under way (None: it idles)."""

    def __init__(self, ranks: list[Rank], times: StepTimes, counts: Counts) -> None:
        self.ranks, self.times, self.counts = ranks, times, counts
        self.clock_s = 0.0
        self.end_s: float | None = None
        self.step = 0
        self.steps = 0
        self.mixed = False
        self.slowest = ranks[0]
        self.turn = 0

    def start(self) -> None:
        """Decide on the next steps, from `clock_s` on."""
        self.turn += 1
        room_made = False
        for rank in self.ranks:
            if rank.decoding:
                room_made |= rank.make_room(self.step, self.clock_s)
        if not room_made:
            idle = not any(rank.running for rank in self.ranks)
            for rank in self.ranks:
                if rank.waiting:
                    rank.admit(self.step, idle=idle)
        self.mixed = any(rank.prefilling for rank in self.ranks)
        if self.mixed:
            self.steps = 1
            self.end_s = self.clock_s + max(self._step_s(rank) for rank in self.ranks)
        elif any(rank.decoding for rank in self.ranks):
            self._jump()
        else:
            self.steps, self.end_s = 0, None

    def _step_s(self, rank: Rank) -> float:
        context = rank.context_sum / rank.decoding if rank.decoding else 0.0
        if rank.prefilling:
            tokens, prompt = rank.fill(self.clock_s)
            if tokens:
                return self.times.mixed(rank.decoding, context, tokens, prompt)
        return self.times.decode(rank.decoding, context) if rank.decoding else 0.0

    def _jump(self) -> None:
        busy = [rank for rank in self.ranks if rank.decoding]
        steps = min(rank.next_finish() for rank in busy) - self.step
        for rank in self.ranks:
            if rank.waiting and rank.running < rank.limits.seats and rank.waiting[0].ready_step > self.step:
                steps = min(steps, rank.waiting[0].ready_step - self.step)
        if any(rank.begun for rank in busy):
            steps = 1
        for rank in busy:
            steps = max(rank.steps_that_fit(self.step, steps), 1)
        self.slowest = max(busy, key=lambda rank: self._seconds(rank, steps)) if len(busy) > 1 else busy[0]
        self.steps = steps
        self.end_s = self.clock_s + self._seconds(self.slowest, steps)

    def _seconds(self, rank: Rank, steps: int) -> float:
        n = rank.decoding
        return self.times.decode_many(n, rank.context_sum / n, rank.growth_sum / n, steps)

    def wake(self, now_s: float) -> None:
        """An idle engine has work from now on: `finish` and `start` follow at that time."""
        self.turn += 1
        self.clock_s = self.end_s = now_s
        self.steps, self.mixed = 0, False

    def cut(self, now_s: float) -> None:
        """A request came: end the jump with the step under way."""
        if self.mixed or self.steps <= 1:
            return
        low, high = 0, self.steps
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.clock_s + self._seconds(self.slowest, middle) < now_s else (low, middle)
        if high < self.steps:
            self.turn += 1
            self.steps = high
            self.end_s = self.clock_s + self._seconds(self.slowest, high)

    def finish(self) -> list[Request]:
        """The steps under way are over: who is done. Call `start` next."""
        assert self.end_s is not None, "an idle engine has no steps to end"
        decoding = sum(rank.decoding for rank in self.ranks)
        self._count(decoding)
        self.clock_s, self.end_s = self.end_s, None
        finished: list[Request] = []
        for rank in self.ranks:
            finished += rank.advance(self.step, self.steps, self.clock_s)
            if rank.interruptions_s:
                for gap_s in rank.interruptions_s:
                    self.counts.gap(gap_s, 1)
                rank.interruptions_s = []
        self.step += self.steps
        return finished

    def _count(self, decoding: int) -> None:
        counts = self.counts
        assert self.end_s is not None
        if not counts.recording:
            return
        counts.steps += self.steps
        counts.mixed_steps += self.mixed
        counts.decoding_sum += self.steps * decoding
        if not decoding or not self.steps:
            return
        if self.steps == 1:
            counts.gap(self.end_s - self.clock_s, decoding - sum(len(rank.begun) for rank in self.ranks))
            return
        first_s, last_s = self._seconds(self.slowest, 1), self._seconds(self.slowest, self.steps)
        last_s -= self._seconds(self.slowest, self.steps - 1)
        parts = min(max(int(abs(last_s / first_s - 1) / SAME_GAP_FRAC) + 1, 1), self.steps)
        ends = [self.steps * part // parts for part in range(parts + 1)]
        before_s = 0.0
        for low, high in pairwise(ends):
            until_s = self._seconds(self.slowest, high)
            counts.gap((until_s - before_s) / (high - low), (high - low) * decoding)
            before_s = until_s
