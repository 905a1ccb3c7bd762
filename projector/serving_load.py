"""What serving engines have to carry: the traffic, how it spreads over them, and the memory it needs."""

from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from projector.breakdown import ConcurrencyLimit
from projector.cost.engine import Engine
from projector.cost.serving_memory import Held, ServingNeeds, serving_needs
from projector.cost.token_budget import Prompts, most_decoding
from projector.graph.columns import Column
from projector.graph.serving_graph import serving_graph, serving_scope
from projector.graph.step_work import StepWork
from projector.project_input import sizes
from projector.specs.hardware import HardwareProfile
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import Arrivals, WorkloadSpec


@dataclass(frozen=True)
class Load:
    """The traffic: requests in flight over the fleet (one figure, or a column; with a rate the most there may be),
    tokens of each; the rest as in `WorkloadSpec`."""

    concurrency: Column | float
    input_len: float
    output_len: float
    request_rate_per_s: float | None = None
    arrivals: Arrivals = "closed"
    length_spread_frac: float = 0.0
    prefix_hit_frac: float = 0.0
    draft_acceptance_frac: float | None = None
    expert_imbalance: float | None = None
    requests_per_slot: float | None = None

    @property
    def context(self) -> float:
        """Tokens behind a decoding request in the mean; the longer it decodes, the more often it is met.

        input_len + E[o^2] / (2 E[o]),  outputs o uniform within +- s of their mean: E[o^2] = E[o]^2 (1 + s^2 / 3)
        """
        return self.input_len + self.output_len / 2 * (1 + self.length_spread_frac**2 / 3)

    @classmethod
    def of(cls, workload: WorkloadSpec, seats: Column | None = None) -> "Load":
        """The traffic of a serving workload. InvalidDescription naming every size that is missing.

        seats: requests in flight where neither a concurrency nor a rate is stated; None: one has to be.
        """
        concurrency: Column | float
        if workload.request_rate_per_s is not None:
            input_len, output_len = sizes(workload, "input_len", "output_len")
            concurrency = np.inf if workload.concurrency is None else float(workload.concurrency)
        elif seats is not None and workload.concurrency is None:
            concurrency, (input_len, output_len) = seats, sizes(workload, "input_len", "output_len")
        else:
            concurrency, input_len, output_len = sizes(workload, "concurrency", "input_len", "output_len")
        return cls(
            concurrency,
            input_len,
            output_len,
            request_rate_per_s=workload.request_rate_per_s,
            arrivals=workload.arrivals or ("closed" if workload.request_rate_per_s is None else "poisson"),
            length_spread_frac=workload.length_spread_frac or 0.0,
            prefix_hit_frac=workload.prefix_hit_frac or 0.0,
            draft_acceptance_frac=workload.draft_acceptance_frac,
            expert_imbalance=workload.expert_imbalance,
            requests_per_slot=workload.requests_per_slot,
        )


@dataclass(frozen=True)
class Fleet:
    """How the requests spread over the engines of each plan (columns).

    replicas     engines; busy: those with work in the mean, fewer where there are fewer requests than engines
    offered      requests in flight an engine, running: those it holds at once
    a_rank       running requests of one attention rank (an engine has attention_dp of them)
    limit        what keeps them from being more (`MemoryBreakdown.concurrency_limit`)
    """

    replicas: Column
    busy: Column
    offered: Column
    running: Column
    a_rank: Column
    limit: NDArray[np.str_]

    def all_taken(self) -> "Fleet":
        """As many requests in flight as there are seats, nobody waiting for one."""
        return replace(self, offered=self.running, busy=self.replicas)

    def holding(self, running: Column, attention_dp: Column) -> "Fleet":
        """With so many requests running on an engine, and as many in flight, as requests arrive at a rate."""
        limit = np.where(running < self.running, "load", self.limit)
        a_rank = np.maximum(running / attention_dp, 1.0)
        busy = self.replicas * np.minimum(running, 1.0)
        return replace(self, offered=running, busy=busy, running=running, a_rank=a_rank, limit=limit)


def engine_needs(
    engine: Engine, load: Load, hardware: HardwareProfile, request_tokens: float | None = None
) -> ServingNeeds:
    """Memory before requests, with the largest step a rank may run: a full budget beside max_num_seqs requests, or all
    that max_batched_tokens allows.

    request_tokens: tokens whose keys and values a request holds; None: those of the steady state.
    """
    batch = engine.batch
    seqs = np.minimum(batch.max_num_seqs, load.concurrency) / batch.attention_dp
    seqs = np.minimum(seqs, most_decoding(batch))
    prompts = Prompts.of(batch, load.input_len, load.prefix_hit_frac, seqs)
    together = np.maximum(prompts.fit_in_budget, 1.0)
    work = StepWork(
        seqs,
        prompts.length,
        together,
        prompts.chunk,
        prompts.length,
        prompts.chunks,
        cached=prompts.cached,
        rows_each=prompts.rows_each,
    )
    scope = serving_scope(batch, engine.degrees, engine.model, engine.math_dtype, work)
    operators = serving_graph(batch, engine.model, engine.math_dtype, work)
    # engines grow a request's cache as it decodes: on average half of its output is there
    tokens = load.context if request_tokens is None else request_tokens
    cached = load.prefix_hit_frac * load.input_len
    held = Held(tokens - cached, cached)
    on_first, on_middle, on_last = (
        serving_needs(batch, scope, operators, stage, hardware, held)
        for stage in (engine.stages.first, engine.stages.middle, engine.stages.last)
    )
    return on_first.fuller(on_middle).fuller(on_last)


def fleet_of(batch: PlanBatch, load: Load, needs: ServingNeeds) -> Fleet:
    """The closed loop's requests over the engines of every plan; of an open one, those that may run at most."""
    replicas = batch.dp / batch.attention_dp
    offered = np.maximum(load.concurrency / replicas, 1.0)
    held = np.maximum(needs.requests * batch.attention_dp, 1.0)
    budget = most_decoding(batch) * batch.attention_dp * batch.pp
    limits = np.broadcast_arrays(offered, batch.max_num_seqs, held, budget)
    running = np.minimum.reduce(limits)
    return Fleet(
        replicas=replicas,
        busy=np.minimum(replicas, load.concurrency),
        offered=offered,
        running=running,
        a_rank=np.maximum(running / batch.attention_dp, 1.0),
        limit=np.array(get_args(ConcurrencyLimit))[np.argmin(limits, axis=0)],
    )
