"""Open loop: requests arrive at a rate, whether or not others are done."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from projector.cost.closed_loop import Loop
from projector.graph.columns import Column, Switch

# The fixed point is found to this share of the step, in at most so many rounds.
CLOSE_FRAC = 1e-4
MOST_ROUNDS = 60


@dataclass(frozen=True)
class Stream:
    """What arrives at one rank (columns): requests a second, random or evenly spaced, and how many it may run; the
    rest as in `closed_loop`."""

    rate_per_s: Column
    seats: Column
    chunks: Column
    fit_in_chunk: Column
    output_len: Column | float
    random: bool

    def loop(self, step_s: Column) -> Loop:
        """The content of steps that last `step_s` in the mean, by Little's law.

            x = rate step_s prompts a step,  n = (output_len - 1) x requests decoding

        At random (Poisson) a request sees the mean of the others, as far as there are seats beside its own; evenly
        spaced (deterministic) alone where it is done before the next arrives (`_evenly`).
        """
        z = np.zeros_like(step_s) + np.maximum(self.output_len - 1.0, 0.0)
        fit = np.maximum(self.fit_in_chunk, 1.0)
        a_step = self.rate_per_s * step_s
        together = np.clip(a_step / -np.expm1(-np.maximum(a_step, 1e-9)) if self.random else a_step, 1.0, fit)
        itself = 1 / (z + self.chunks)
        beside = np.minimum(a_step, (self.seats - 1) * itself)
        others = beside if self.random else _evenly(a_step, itself)
        return Loop(
            prompts=together,
            prefill_steps=self.chunks,
            decode_steps=z,
            decoding=1 + z * others,
            beside_prefill=z * others,
            mixed_frac=np.minimum(others * self.chunks / together, 1.0),
        )

    def first_token_s(self, loop: Loop, steps: "StepTimes", admission_steps: float) -> Column:
        """Mean seconds from arrival to the end of the step with the last chunk of the prompt.

        Evenly spaced prompts do not queue (D/D/1): their own steps, behind the rest of a decode step where somebody
        decodes. At random, where one prompt fills a step, its prefill s is a server that takes a vacation, a decode
        step, whenever no prompt is there (Fuhrmann and Cooper, Operations Research 33 (1985)); rho = rate s:

            R = rho s / (2 (1 - rho)) + t(0) / 2 + s

        Where prompts share steps of t(k) = t(0) + d + e k, those that came in a step are the next one's. A step that is
        met has the mean length T* = E[T^2] / E[T], with k Poisson of mean rate T:

            R = T* / 2 + t(0) + d + e (1 + rate T*)

        An engine that looks for requests every few steps lets the half step be admission_steps of them.
        """
        someone = -np.expm1(-loop.beside_prefill) if self.random else np.minimum(loop.beside_prefill, 1.0)
        later_s = someone * (max(admission_steps, 0.5) - 0.5) * steps.pure_s
        alone_s = self.chunks * steps.of(loop.prompts)
        vacation_s = someone * steps.pure_s
        if not self.random:
            return later_s + vacation_s / 2 + alone_s
        load = self.rate_per_s * alone_s
        with np.errstate(divide="ignore", invalid="ignore"):
            queue_s = np.where(load < 1, load * alone_s / (2 * (1 - load)), np.inf)
        met_s = steps.met_s(self.rate_per_s, vacation_s)
        shared_s = met_s / 2 + steps.of(1 + self.rate_per_s * met_s)
        return later_s + np.where(self.fit_in_chunk >= 2, shared_s, queue_s + vacation_s / 2 + alone_s)

    def crowd(self, prefill_frac: Column) -> Column:
        """Variance over mean of the requests decoding, in decode steps: those that arrive while prompts are prefilled
        join together. Such clusters have Borel's distribution, E[B^2] / E[B] = 1 / (1 - rho)^2 for a share rho of time
        in prefill. 1 where requests come evenly, as if none was there beside the mean."""
        return 1 / (1 - np.minimum(prefill_frac, 0.9)) ** 2 if self.random else np.ones_like(prefill_frac)


@dataclass(frozen=True)
class StepTimes:
    """Seconds of a step with k prompts, pure_s + (extra_s + each_s k where k > 0) (columns)."""

    pure_s: Column
    extra_s: Column
    each_s: Column

    @classmethod
    def through(cls, pure_s: Column, one: tuple[Column, Column], other: tuple[Column, Column]) -> "StepTimes":
        """The line through two points (prompts, seconds) of mixed steps; through the pure step where they are one."""
        apart = other[0] - one[0]
        steep = np.where(apart > 1e-6, (other[1] - one[1]) / np.maximum(apart, 1e-6), (one[1] - pure_s) / one[0])
        each_s = np.clip(steep, 0.0, np.maximum(one[1] - pure_s, 0.0) / one[0])
        return cls(pure_s, np.maximum(one[1] - pure_s - each_s * one[0], 0.0), each_s)

    def of(self, prompts: Column) -> Column:
        """Seconds of a step with prompts."""
        found: Column = self.pure_s + self.extra_s + self.each_s * prompts
        return found

    def met_s(self, rate_per_s: Column, vacation_s: Column) -> Column:
        """E[T^2] / E[T] of steps whose prompts are those that came in the step before; inf where they pile up."""
        load = rate_per_s * self.each_s
        away_s = np.maximum(vacation_s, 1e-9 * (self.pure_s + self.each_s))
        mean_s, some = away_s, np.zeros_like(away_s)
        with np.errstate(divide="ignore", invalid="ignore"):
            for _ in range(MOST_ROUNDS):
                mean_s = (away_s + self.extra_s * some) / (1 - load)
                some = -np.expm1(-rate_per_s * mean_s)
            square = away_s**2 + (self.extra_s**2 + 2 * away_s * self.extra_s) * some
            square = square + (2 * (away_s + self.extra_s) * self.each_s + self.each_s**2) * rate_per_s * mean_s
            return np.where(load < 1, square / (1 - load**2) / mean_s, np.inf)


def _evenly(a_step: Column, itself: Column) -> Column:
    """Prompts a step of others, where they come evenly: c = a_step / itself arrive while a request is there.

    Of floor(c) that come during its stay the mean over c is c - 1 / 2, and none up to c = 1; joined by a line.
    """
    c = a_step / itself
    found: Column = itself * np.maximum(np.minimum(2 * (c - 1), c - 0.5), 0.0)
    return found


def seat_wait_s(seats: Column, load: Column, service_s: Column, variability: float) -> Column:
    """Mean seconds until one of `seats` seats is free, each taken for service_s, `load` of them in the mean (a share).

        W = v service rho^(sqrt(2 (m + 1)) - 1) / (m (1 - rho))

    v: half the sum of the squared coefficients of variation of arrivals and service.
    Source: Sakasegawa, Ann. Inst. Stat. Math. 29 (1977), as scaled by Allen and Cunneen. inf from a load of 1 on.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        found = variability * service_s * load ** (np.sqrt(2 * (seats + 1)) - 1) / (seats * (1 - load))
    return np.where(load < 1, found, np.inf)


def mean_step_s(step_of: Callable[[Column], Column], longest_s: Column) -> tuple[Column, Switch]:
    """(the mean step t = step_of(t) below longest_s, whether it was found), for every column entry.

    step_of grows with t, as longer steps hold more requests; false position with the Illinois rule on step_of(t) - t
    between 0 and longest_s. Not found: step_of(longest_s) is longer still, or MOST_ROUNDS did not do.
    """
    low, high = np.zeros_like(longest_s), longest_s.copy()
    at_low, at_high = step_of(low), step_of(high) - high
    possible = at_high <= 0
    found, settled = np.where(possible, low + at_low, high), ~possible
    side = np.zeros_like(low)
    for _ in range(MOST_ROUNDS):
        with np.errstate(divide="ignore", invalid="ignore"):
            tried = high - at_high * (high - low) / (at_high - at_low)
        # who is done stays as it is, so that a plan is the same alone and among others
        found = np.where(settled, found, tried)
        gap = step_of(found) - found
        settled = settled | (np.abs(gap) <= CLOSE_FRAC * found)
        if settled.all():
            break
        above = gap > 0
        at_high = np.where(above & (side > 0), at_high / 2, np.where(above, at_high, gap))
        at_low = np.where(~above & (side < 0), at_low / 2, np.where(above, gap, at_low))
        low, high = np.where(above, found, low), np.where(above, high, found)
        side = np.where(above, 1.0, -1.0)
    return found, possible & settled
