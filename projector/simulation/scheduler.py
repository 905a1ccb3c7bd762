"""Rank: the scheduler of one attention rank of an engine, as vLLM V1 and SGLang have it.

Continuous batching: a step carries one token (with drafts: one draft's rows) of every decoding request and fills the
rest of its token budget with chunks of prompts, first come first served. A waiting request is admitted in order, when a
seat is free and the pool has room for its prompt beside the next tokens of all others; some engines also want room for
half of every answer, or all of it. Where the pool runs over, the
newest request gives its blocks back, waits in front of all others and computes its tokens anew (preemption by
recompute). vLLM gives a prompt its blocks chunk by chunk; reserving them whole turns some preemptions into waiting.
"""

from collections import deque
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from projector.simulation.pool import Pool, PrefixCache
from projector.simulation.request import Limits, Request


class Rank:
    """Requests of one rank: waiting, prefilling (in order), decoding. Advanced by `Replica`."""

    def __init__(self, pool: Pool, limits: Limits, cache: PrefixCache | None) -> None:
        self.pool, self.limits, self.cache = pool, limits, cache
        self.waiting: deque[Request] = deque()
        self.prefilling: list[Request] = []
        self.admitted: list[tuple[Request, int]] = []  # in order of admission; entries of ended turns are void
        self.finishes: list[tuple[int, int, int, Request]] = []
        self.decoding = 0
        self.context_sum = 0.0
        self.growth_sum = 0.0
        self.shared_tokens = 0  # tokens of decoding requests in blocks that are held in common
        self.interruptions_s: list[float] = []  # gaps between tokens of requests that were preempted
        self.reserved_bytes = 0.0
        self.claimed_bytes = 0.0
        self.begun: list[Request] = []  # came prefilled, and make their first token in the step under way
        self.chunks: list[tuple[Request, int]] = []
        self.preemptions = 0
        self.place = 0  # its place among all ranks of the fleet
        self.prompt_tokens = 0
        self.hit_tokens = 0
        self.peak_bytes = 0.0

    @property
    def running(self) -> int:
        """Requests that hold a seat."""
        return len(self.prefilling) + self.decoding

    @property
    def load(self) -> int:
        """Requests that are here."""
        return len(self.waiting) + self.running

    def may_admit(self) -> bool:
        """Whether a request that came now would be looked at before the next finish."""
        return self.running < self.limits.seats and len(self.waiting) <= 1

    # -- room

    def fits(self, step: int, more: int, extra_bytes: float = 0.0) -> bool:
        """Whether all fits after `more` steps, with so much beside."""
        room = self.pool.bytes_ - extra_bytes - self.reserved_bytes - self._held_bytes()
        if self.pool.at_most(self.decoding, self._own_tokens() + more * self.growth_sum) <= room:
            return True
        return self.pool.of_all(self._contexts(step + more)) <= room

    def steps_that_fit(self, step: int, most: int) -> int:
        """The largest number of steps up to `most` after which all still fits; 0: not even one."""
        if self.fits(step, most):
            return most
        low, high = 0, most
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.fits(step, middle) else (low, middle)
        return low

    def _own_tokens(self) -> float:
        return self.context_sum - self.shared_tokens

    def _contexts(self, step: int) -> NDArray[np.float64]:
        live = (request for _, _, epoch, request in self.finishes if request.epoch == epoch)
        return np.array([request.context(step) - self._shared_tokens(request) for request in live], dtype=np.float64)

    def _shared_tokens(self, request: Request) -> int:
        return len(request.shared) * self.cache.block_tokens if self.cache else request.cached_tokens

    def _held_bytes(self) -> float:
        return len(self.cache.held) * self.cache.block_tokens * self.pool.token_bytes if self.cache else 0.0

    def _used_bytes(self) -> float:
        """What running requests hold, without the rounding to blocks of those that decode."""
        decoding = self.decoding * self.pool.request_bytes + self._own_tokens() * self.pool.token_bytes
        return decoding + self.reserved_bytes + self._held_bytes()

    # -- before a step

    def make_room(self, step: int, now_s: float) -> bool:
        """Preempt the newest until a step fits; whether any was. The oldest always runs on."""
        before = self.preemptions
        while self.decoding and self.running > 1 and not self.fits(step, 1):
            self._preempt(step, now_s)
        return self.preemptions > before

    def _preempt(self, step: int, now_s: float) -> None:
        while True:
            request, epoch = self.admitted.pop()
            if request.epoch == epoch:
                break
        if request in self.prefilling:
            self.prefilling.remove(request)
            self.reserved_bytes -= self._reserved(request)
        else:
            context = request.context(step)
            self._leave(request, context)
            # the last token is not among those held; the end of the new prefill makes the one after it
            request.target = round(context) + 1
            request.steps_left -= step - request.base_step + 1
            request.last_s = now_s
        self._let_go(request)
        self.waiting.appendleft(request)
        self.preemptions += 1

    def admit(self, step: int, *, idle: bool) -> None:
        """Give seats to those that wait, in order, as long as there is room; idle: the engine looks at them at once."""
        while self.waiting and self.running < self.limits.seats:
            request = self.waiting[0]
            if request.ready_step > step and not idle:
                return
            self._trim()
            whole = self._whole_blocks(request, request.target - 1)
            hit = () if self.cache is None else whole[: self.cache.hits(whole)]
            shared_tokens = request.cached_tokens if self.cache is None else len(hit) * self.cache.block_tokens
            extra = self.pool.of(request.target - shared_tokens)
            if self.cache is not None:
                extra += self.cache.newly_held(hit) * self.cache.block_tokens * self.pool.token_bytes
            whole_bytes = self.pool.of(request.input_tokens + request.output_tokens - 1 - shared_tokens)
            if self.running and not (self.fits(step, 1, extra) and self._lasts(request, step, whole_bytes)):
                return
            request.claim_bytes = whole_bytes
            self.claimed_bytes += whole_bytes
            self.waiting.popleft()
            if self.cache is not None:
                self.cache.hold(hit)
            self.admitted.append((request, request.epoch))
            if request.prefilled:
                request.prefilled = False
                self._decodes(request, step)
                self.begun.append(request)
                continue
            request.shared = hit
            request.done = shared_tokens
            if request.first_s < 0:
                self.prompt_tokens += request.target
                self.hit_tokens += request.done
            self.reserved_bytes += self._reserved(request)
            self.prefilling.append(request)

    def _whole_blocks(self, request: Request, tokens: int) -> tuple[int, ...]:
        """Blocks of its prompt that its first tokens fill."""
        if self.cache is None:
            return ()
        return request.blocks[: min(tokens, request.input_tokens) // self.cache.block_tokens]

    def _lasts(self, new: Request, step: int, whole_bytes: float) -> bool:
        """Whether there is room for what the rank's requests and a new one are still to hold, by its admission."""
        if self.limits.admission == "greedy" or self.claimed_bytes + whole_bytes <= self.pool.bytes_:
            return True
        if self.limits.admission == "reserve":
            return False
        live = [one for _, _, epoch, one in self.finishes if one.epoch == epoch]
        early = [*self.prefilling, new]
        held = [one.context(step) - self._shared_tokens(one) for one in live]
        held += [float(one.target - max(self._shared_tokens(one), one.cached_tokens)) for one in early]
        growth = np.array([one.growth for one in (*live, *early)])
        left = np.array([one.steps_left + one.base_step - step for one in live] + [one.steps_left for one in early])
        # all that have not ended hold most just before each end
        order = np.argsort(left, kind="stable")
        held_then = np.cumsum(np.array(held)[order][::-1])[::-1] + left[order] * np.cumsum(growth[order][::-1])[::-1]
        running = np.arange(len(left), 0, -1)
        taken = running * (self.pool.request_bytes + self.pool.token_bytes * self.pool.block_tokens / 2)
        return bool(np.all(taken + self.pool.token_bytes * held_then <= self.pool.bytes_ - self._held_bytes()))

    def _reserved(self, request: Request) -> float:
        return self.pool.of(request.target - self._shared_tokens(request))

    def _trim(self) -> None:
        if self.cache is not None and self.pool.token_bytes:
            room = self.pool.bytes_ - self._used_bytes()
            self.cache.trim(int(room / (self.pool.token_bytes * self.cache.block_tokens)))

    # -- a step

    def next_finish(self) -> int:
        """The step by whose end the first of the decoding requests is done."""
        while self.finishes[0][3].epoch != self.finishes[0][2]:
            heappop(self.finishes)
        return self.finishes[0][0]

    def fill(self, now_s: float) -> tuple[float, float]:
        """Cut the chunks of the step that starts now: (prefill tokens, twice the mean tokens they attend to)."""
        first = self.prefilling[0]
        left = self.limits.prefill_tokens(self.decoding, first.target - first.done)
        tokens, pairs = 0, 0.0
        self.chunks = []
        for request in self.prefilling:
            chunk = min(left, request.target - request.done)
            if chunk <= 0:
                break
            if request.started_s < 0:
                request.started_s = now_s
            self.chunks.append((request, chunk))
            tokens += chunk
            pairs += chunk * (request.done + chunk / 2)
            left -= chunk
        return float(tokens), 2 * pairs / tokens if tokens else 0.0

    def advance(self, step: int, steps: int, now_s: float) -> list[Request]:
        """`steps` steps from `step` on are over: those that finish."""
        self.context_sum += self.growth_sum * steps
        self.peak_bytes = max(self.peak_bytes, self._used_bytes())
        finished = []
        for request in self.begun:
            request.first_s = now_s
        self.begun = []
        while self.finishes and self.finishes[0][0] <= step + steps:
            _, _, epoch, request = heappop(self.finishes)
            if request.epoch == epoch:
                self._leave(request, request.context(step + steps))
                finished.append(request)
        for request, chunk in self.chunks:
            request.done += chunk
            if request.done == request.target and self._starts(request, step + steps, now_s):
                finished.append(request)
        self.chunks = []
        for request in finished:
            request.finish_s = request.last_s = now_s
            self._let_go(request)
        if len(self.admitted) > 4 * self.limits.seats + 64:
            self.admitted = [(request, epoch) for request, epoch in self.admitted if request.epoch == epoch]
        return finished

    def _starts(self, request: Request, step: int, now_s: float) -> bool:
        """The prompt is through and its token is there: it decodes from now on. Whether it is done already."""
        self.prefilling.remove(request)
        self.reserved_bytes = self.reserved_bytes - self._reserved(request) if self.prefilling else 0.0
        if self.cache is not None:
            whole = self._whole_blocks(request, request.target)
            new = tuple(block for block in whole[len(request.shared) :] if block not in self.cache.held)
            if len(new) == len(whole) - len(request.shared):
                self.cache.hold(new)
                request.shared = whole
        if request.first_s < 0:
            request.first_s = now_s
        else:
            self.interruptions_s.append(now_s - request.last_s)
        request.last_s = now_s
        if request.steps_left <= 0:
            return True
        self._decodes(request, step)
        return False

    def _decodes(self, request: Request, step: int) -> None:
        """It decodes from this step on, with all of its tokens held."""
        request.base_context, request.base_step = float(request.target), step
        self.decoding += 1
        self.context_sum += request.base_context
        self.shared_tokens += self._shared_tokens(request)
        self.growth_sum += request.growth
        heappush(self.finishes, (step + request.steps_left, request.index, request.epoch, request))

    def _leave(self, request: Request, context: float) -> None:
        self.decoding -= 1
        self.context_sum -= context
        self.shared_tokens -= self._shared_tokens(request)
        self.growth_sum -= request.growth
        if self.decoding == 0:
            self.context_sum = self.growth_sum = 0.0

    def _let_go(self, request: Request) -> None:
        request.epoch += 1
        self.claimed_bytes = self.claimed_bytes - request.claim_bytes if self.running else 0.0
        if self.cache is not None:
            self.cache.release(request.shared)
        request.shared = ()
