"""The serving model: requests over engines with continuous batching and chunked prefill."""

import numpy as np

from projector.batch_projection import (
    Assumption,
    Metrics,
    ProjectionBatch,
    price_usd_per_chip_hour,
)
from projector.cost.admission import admission_assumptions, held_tokens, recomputed_prompts
from projector.cost.energy import ChipPower
from projector.cost.engine import Engine
from projector.cost.links import Links
from projector.cost.serving_memory import ServingNeeds
from projector.cost.speculation import check_drafters, speculation_assumptions
from projector.serving_figures import Request, Steps, with_figures
from projector.serving_intervals import serving_interval
from projector.serving_load import Load, engine_needs, fleet_of
from projector.serving_service import Service, service
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan_batch import Column as AnyColumn
from projector.specs.plan_batch import PlanBatch
from projector.specs.serving_stack import ANY_ENGINE, ServingStack

__all__ = ["Load", "engine_needs", "project_serving"]


def project_serving(
    batch: PlanBatch,
    model: ModelArchitecture,
    load: Load,
    math_dtype: AnyColumn,
    cluster: ClusterSpec,
    hardware: HardwareProfile,
    assumptions: tuple[Assumption, ...],
    *,
    stack: ServingStack = ANY_ENGINE,
) -> ProjectionBatch:
    """Latencies, throughput and memory of every plan in steady state; columns of shape [len(batch)].

    Requests go round in a closed loop, or arrive at a rate (`projector.serving_service`). Every engine runs pure decode
    steps and, while a prompt is prefilled, mixed steps that carry its chunk beside the decoding tokens. The mean decode
    step, its share of mixed steps included, is the step of the breakdown, that of a device of the slowest stage; over
    the tokens a request gains in it, it is TPOT. Where not one request fits, or more arrive than the plan can serve,
    latencies and throughputs are NaN.
    """
    check_drafters(batch, model)
    engine = Engine.of(batch, model, math_dtype, cluster, stack.on(hardware), load.expert_imbalance)
    tokens = held_tokens(load.input_len, load.output_len, stack, load.length_spread_frac)
    needs = engine_needs(engine, load, hardware, tokens)
    fleet = fleet_of(batch, load, needs)
    wanted = np.minimum(fleet.offered, batch.max_num_seqs) / batch.attention_dp
    own_input = (1.0 - load.prefix_hit_frac) * load.input_len
    again = recomputed_prompts(own_input, load.output_len, needs.requests, wanted, stack)
    found = service(engine, load, fleet, again, stack)
    latencies = found.latencies
    memory = needs.with_requests(found.fleet.a_rank, found.fleet.limit)
    # an engine that cannot hold one request serves none: its step is projected, its service is not a number
    serves = np.where(needs.requests >= 1, 1.0, np.nan)
    per_chip = serves * found.requests_per_s / cluster.chips
    return ProjectionBatch(
        batch=batch,
        chip=hardware.id,
        chips=cluster.chips,
        devices_per_chip=hardware.devices_per_chip,
        price_usd_per_chip_hour=price_usd_per_chip_hour(hardware),
        step_time_s=found.breakdown.total_s,
        breakdown=found.breakdown,
        memory=memory,
        metrics=with_figures(
            Metrics(
                ttft_s=serves * latencies.ttft_s,
                tpot_s=serves * latencies.tpot_s,
                request_latency_s=serves * latencies.request_s,
                decode_tokens_per_s_per_chip=per_chip * load.output_len,
                total_tokens_per_s_per_chip=per_chip * (load.input_len + load.output_len),
                max_concurrency=np.where(needs.requests >= 1, needs.requests * batch.dp, 0.0),
            ),
            _steps(engine, found, needs, hardware),
            Request(load.input_len, load.output_len, load.prefix_hit_frac),
            batch,
            model,
            math_dtype,
            memory,
            cluster.chips,
            hardware,
        ),
        interval=serving_interval(model, stack),
        power=ChipPower.of(hardware),
        links=Links(engine.routes, hardware),
        hardware=hardware,
        arrivals=found.arrivals,
        assumptions=(
            *assumptions,
            *speculation_assumptions(batch, model, load.draft_acceptance_frac),
            *admission_assumptions(found.fleet.limit == "kv_pool", again),
        ),
    )


def _steps(engine: Engine, found: Service, needs: ServingNeeds, hardware: HardwareProfile) -> Steps:
    """What the figures of serving follow from beside the metrics."""
    batch, pp, pure, mixed, mean = engine.batch, engine.degrees.pp, found.pure, found.mixed, found.breakdown
    fleet, loop, prompts, engine_s = found.fleet, found.loop, found.prompts, found.host_s
    mixed_s = pp * np.maximum(mixed.length_s, pure.length_s) + engine_s
    prefill_s = loop.mixed_frac * sum(mixed.compute_s.values(), start=np.zeros(len(batch)))
    waits_s = mean.idle_s + mean.exposed_copy_s
    decode_s, busy_frac = mean.compute_s - prefill_s, fleet.busy / fleet.replicas
    power = ChipPower.of(hardware)
    return Steps(
        step_s=mean.total_s,
        pure_step_s=pp * pure.length_s + engine_s,
        mixed_step_s=mixed_s,
        mixed_frac=loop.mixed_frac,
        prefill_comm_s=prompts.chunks * pp * mixed.exposed_communication_s,
        decode_comm_s=pp * pure.exposed_communication_s,
        prompt_tokens_per_s=batch.dp * loop.prompts * prompts.chunk / mixed_s,
        seats=np.minimum(needs.requests * batch.dp, fleet.replicas * batch.max_num_seqs),
        watts=None
        if power is None
        else power.mean_serving_w(prefill_s, decode_s, mean.exposed_communication_s, waits_s, busy_frac),
    )
