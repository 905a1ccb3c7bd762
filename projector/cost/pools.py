"""Two pools of engines, one for prompts and one for tokens: the plans of each, and how requests spread over them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from projector.cost.closed_loop import first_round, return_variability, waiting
from projector.graph.columns import Column
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import Column as AnyColumn
from projector.specs.plan_batch import PlanBatch

POOL_FIELDS = (
    "prefill_replicas", "prefill_tp", "prefill_pp", "prefill_attention_dp", "prefill_ep", "prefill_etp", "kv_transfer",
)  # fmt: skip
# Points at which the decode step is looked at over the requests that decode, and halvings of the search between them.
POINTS, HALVINGS = 5, 60


def decode_pool(batch: PlanBatch) -> PlanBatch:
    """The decode engines of every plan, as plans of engines that know of no other pool."""
    return PlanBatch({**batch.columns, **_alone(batch)})


def prefill_pool(batch: PlanBatch) -> PlanBatch:
    """The prefill engines of every plan as plans of their own; one without engines has one, of which nobody asks."""
    return PlanBatch(
        {
            **batch.columns,
            **_alone(batch),
            "dp": np.maximum(batch.prefill_replicas, 1) * batch.prefill_attention_dp,
            "attention_dp": batch.prefill_attention_dp,
            "tp": batch.prefill_tp,
            "pp": batch.prefill_pp,
            "ep": batch.prefill_ep,
            "etp": batch.prefill_etp,
            # prompts come in all lengths: nothing is captured, and nothing drafted
            "cuda_graphs": np.zeros(len(batch), dtype=np.bool_),
            "speculation": np.full(len(batch), "none"),
            "speculative_tokens": np.zeros(len(batch), dtype=np.int64),
            "redundant_experts": np.where(batch.prefill_ep > 1, batch.redundant_experts, 0),
        }
    )


def pool_fields_set(batch: PlanBatch) -> NDArray[np.int64]:
    """How many fields of a prefill pool, its engines aside, are not at their defaults, shape [n]."""
    defaults = _alone(batch)
    changed: NDArray[np.int64] = np.sum([batch.columns[field] != defaults[field] for field in POOL_FIELDS[1:]], axis=0)
    return changed


def _alone(batch: PlanBatch) -> dict[str, AnyColumn]:
    defaults = {field: ParallelismPlan.model_fields[field].default for field in POOL_FIELDS}
    return {field: np.full_like(batch.columns[field], default) for field, default in defaults.items()}


@dataclass(frozen=True)
class PromptServers:
    """Ranks that prefill whole prompts, several in one step where several wait (columns).

    ranks        how many there are
    one_s, full_s   seconds a step chain takes with one prompt and with `most`, as many as a step has room for
    behind_s     seconds a prompt still passes pipeline stages after the first has let it go
    comm_s       of one_s, communication that nothing hides
    """

    ranks: Column
    one_s: Column
    full_s: Column
    most: Column
    behind_s: Column
    comm_s: Column

    @property
    def prompts_per_s(self) -> Column:
        """Prompts a second all ranks can do."""
        rate: Column = self.ranks * self.most / self.full_s
        return rate

    def together(self, per_s: Column) -> Column:
        """Prompts that share a step when `per_s` arrive a second: as many as arrive in one, at least one.

        k = x t(k) for the x a rank gets, with t(k) = one + d (k - 1).
        """
        each = per_s / self.ranks
        more_s = (self.full_s - self.one_s) / np.maximum(self.most - 1, 1.0)
        room = 1 - each * more_s
        wanted = np.where(room > 0, each * (self.one_s - more_s) / np.where(room > 0, room, 1.0), self.most)
        return np.clip(wanted, 1.0, self.most)

    def step_s(self, together: Column) -> Column:
        """Seconds of a step chain with so many prompts."""
        more_s = (self.full_s - self.one_s) / np.maximum(self.most - 1, 1.0)
        return self.one_s + more_s * (together - 1)

    def residence_s(self, per_s: Column, away_s: Column, returns: "Returns") -> Column:
        """Seconds a prompt is here, waiting included, when `per_s` pass a second and are away for `away_s`.

        The rest of the running step where prompts return at random, its own step with k prompts together, and the wait
        of `projector.cost.closed_loop.waiting` for m servers of service S = full / most as for one of S / m.
        """
        requests, service_s = returns.requests, self.full_s / self.most / self.ranks
        within_s = np.minimum(returns.window_s(self, away_s), requests / np.maximum(per_s, 1e-12))
        own_s = self.step_s(self.together(requests / within_s))
        round_s = np.maximum(np.minimum(within_s, own_s + away_s), own_s)
        spread_s = returns.spread_frac * away_s
        random = return_variability(requests, service_s, round_s, spread_s)
        others = np.maximum(requests - 1, 0.0) / np.maximum(requests, 1.0)
        rest_s = random * others * np.minimum(per_s * self.one_s / self.ranks, 1.0) * own_s / 2
        waits_s = waiting(np.maximum(requests, 1.0), service_s, own_s, round_s - own_s, spread_s)
        residence: Column = waits_s + rest_s + own_s + self.behind_s
        return residence

    def met_s(self, per_s: Column, *, random: bool) -> Column:
        """Seconds a prompt is here when `per_s` arrive a second whether or not others are done; inf past the rate.

        Its own step with those that came in one, and where arrivals are random the longer of the rest of the step under
        way, where several share one, and the wait for m servers with Poisson arrivals and service S of one length, half
        of Sakasegawa's M/M/m (Ann. Inst. Statist. Math. 29 (1977)):

            W = rho^(sqrt(2 (m + 1)) - 1) / (1 - rho) S / (2 m),  rho = x S / m
        """
        m, service_s = self.ranks, self.full_s / self.most
        own_s = self.step_s(self.together(per_s))
        load = per_s * service_s / m
        left = np.where(load < 1, 1 - load, np.nan)
        wait_s = load ** (np.sqrt(2 * (m + 1)) - 1) / left * service_s / (2 * m)
        rest_s = np.where(self.most > 1, np.minimum(per_s * self.one_s / m, 1.0) * own_s / 2, 0.0)
        here: Column = own_s + self.behind_s + (np.maximum(wait_s, rest_s) if random else 0.0)
        return np.where(load < 1, here, np.inf)

    def first_s(self, requests: Column) -> Column:
        """Mean seconds here of so many prompts that arrive at once."""
        a_rank = np.maximum(requests / self.ranks, 1.0)
        return first_round(a_rank, self.most, self.full_s, np.ones_like(a_rank)) + self.behind_s


@dataclass(frozen=True)
class Returns:
    """How requests of a closed loop come back to the prefill pool.

    requests      those in flight; spread_frac: their times away are uniform within this share around the mean
    rounds        mean number of rounds since all of them started at once; None: they are spread over the whole round
    """

    requests: Column
    spread_frac: float
    rounds: float | None

    def window_s(self, prompts: PromptServers, away_s: Column) -> Column:
        """Seconds within which one round of all requests returns; inf in a steady state that forgot its start.

        They started together, and the first prefill of all of them put its own length between the first and the last:
        that stays, as of equal length they decode in step. Times away that differ add their variance in every round:

            w = sqrt((N S / m)^2 + 4 rounds spread^2)   (a uniform distribution is sqrt(12) standard deviations wide)
        """
        if self.rounds is None:
            return np.full_like(away_s, np.inf)
        together_s = self.requests * prompts.full_s / prompts.most / prompts.ranks
        window_s: Column = np.sqrt(together_s**2 + 4 * self.rounds * (self.spread_frac * away_s) ** 2)
        return window_s


@dataclass(frozen=True)
class DecodeSteps:
    """The decode step at a few numbers of requests decoding over the pool; [POINTS, n], rising along the first axis."""

    decoding: Column
    step_s: Column

    def at(self, decoding: Column) -> Column:
        """Seconds of a step, in a straight line between the points."""
        found: Column = self.step_s[0]
        for low, high, low_s, high_s in zip(
            self.decoding, self.decoding[1:], self.step_s, self.step_s[1:], strict=False
        ):
            share = np.clip((decoding - low) / np.maximum(high - low, 1e-12), 0.0, 1.0)
            found = np.where(decoding > low, low_s + share * (high_s - low_s), found)
        return found


@dataclass(frozen=True)
class Admission:
    """How long a busy decode engine takes to look at a request whose cache has come: mean steps, of so many engines."""

    steps: float
    engines: Column

    def wait_s(self, decoding: Column, step_s: Column) -> Column:
        """Seconds until a step may carry the request: none where the engine has nothing else to do."""
        busy = np.minimum(np.maximum(decoding - 1, 0.0) / self.engines, 1.0)
        return self.steps * busy * step_s


@dataclass(frozen=True)
class Shares:
    """The steady state of both pools (columns): requests a second, and how many of them decode."""

    per_s: Column
    decoding: Column


def shares(
    prompts: PromptServers,
    steps: DecodeSteps,
    admission: Admission,
    between_s: Column,
    decode_steps: Column,
    returns: Returns,
    most_per_s: Column,
) -> Shares:
    """How N requests that go round and round split over prefill, all between (`between_s`, admission) and decoding.

    Customers of a closed network add up (Little's law at each station); with n that decode, for `decode_steps` t(n):

        N = x (R_prefill(x) + between + decode_steps t(n)),   n = x decode_steps t(n)

    solved for n by halving, as x rises with it. The pool with the lowest rate holds x down: prefill ranks by their
    residence, `most_per_s` (links) and the largest n the decode pool has seats for as bounds; requests beyond wait.
    """
    low, high = np.zeros_like(between_s), steps.decoding[-1]
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        step_s = steps.at(middle)
        per_s, away_s = middle / (decode_steps * step_s), between_s + admission.wait_s(middle, step_s)
        here_s = prompts.residence_s(per_s, away_s + decode_steps * step_s, returns)
        too_many = (per_s > np.minimum(most_per_s, prompts.prompts_per_s)) | (
            middle + per_s * (here_s + away_s) > returns.requests
        )
        low, high = np.where(too_many, low, middle), np.where(too_many, middle, high)
    return Shares(per_s=low / (decode_steps * steps.at(low)), decoding=low)


def arriving(steps: DecodeSteps, decode_steps: Column, per_s: float) -> Shares:
    """How many decode where `per_s` arrive a second: n = x decode_steps t(n), at most the seats there are."""
    low, high = np.zeros_like(decode_steps), steps.decoding[-1]
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        too_few = middle < per_s * decode_steps * steps.at(middle)
        low, high = np.where(too_few, middle, low), np.where(too_few, high, middle)
    return Shares(per_s=np.full_like(decode_steps, per_s), decoding=high)
