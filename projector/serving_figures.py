"""Every figure serving is judged by, from what a serving model found: one column an objective."""

from dataclasses import dataclass, replace

import numpy as np

from projector.batch_projection import Metrics
from projector.cost.device import Device
from projector.cost.memory import MemoryColumns
from projector.graph.columns import Column, lookup
from projector.model_flop import served_flop_per_request
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import HardwareProfile
from projector.specs.plan_batch import Column as AnyColumn
from projector.specs.plan_batch import PlanBatch
from projector.units import MEGA, S_PER_HOUR, TERA, bytes_to_gb, s_to_ms


@dataclass(frozen=True)
class Steps:
    """What a serving model found of the steps of every plan, beside its metrics (columns, shape [n]).

    step_s               mean engine step; pure_step_s, mixed_step_s: without and with a prefill chunk (NaN: no step is)
    mixed_frac           share of a request's decode steps that carry somebody's chunk
    prefill_comm_s       communication nothing hides in the prefill of one prompt, decode_comm_s: in a pure step
    prompt_tokens_per_s  prompt tokens the fleet computes while it prefills
    seats                requests that may run at once over the fleet
    watts                mean power of a chip; None where its board power is unknown
    """

    step_s: Column
    pure_step_s: Column
    mixed_step_s: Column
    mixed_frac: Column
    prefill_comm_s: Column
    decode_comm_s: Column
    prompt_tokens_per_s: Column
    seats: Column
    watts: Column | None


@dataclass(frozen=True)
class Request:
    """A mean request: prompt and output tokens, and the share of the prompt that a cache holds."""

    input_len: float
    output_len: float
    prefix_hit_frac: float = 0.0


def with_figures(
    metrics: Metrics,
    found: Steps,
    request: Request,
    batch: PlanBatch,
    model: ModelArchitecture,
    math_dtype: AnyColumn,
    memory: MemoryColumns,
    chips: int,
    hardware: HardwareProfile,
) -> Metrics:
    """The metrics with a figure for every objective of serving, in its unit.

    Formulas and meanings: `projector.specs.serving_objectives`. Those that need a price or a power are left out where
    the chip's file states none.
    """
    m = metrics
    assert m.ttft_s is not None
    assert m.tpot_s is not None
    assert m.request_latency_s is not None
    assert m.decode_tokens_per_s_per_chip is not None
    assert m.total_tokens_per_s_per_chip is not None
    assert m.max_concurrency is not None
    output, total = chips * m.decode_tokens_per_s_per_chip, chips * m.total_tokens_per_s_per_chip
    rate = output / request.output_len
    flop_per_s = rate * served_flop_per_request(model, request.input_len, request.output_len, request.prefix_hit_frac)
    peak = lookup(math_dtype, Device.of(hardware).linear_peaks()) * hardware.devices_per_chip
    served = np.where(np.isnan(rate), np.nan, 1.0)
    figures = {
        "decode_throughput_tps_per_gpu": output / chips,
        "decode_throughput_tps": output,
        "total_throughput_tps_per_gpu": total / chips,
        "total_throughput_tps": total,
        "prefill_throughput_tps_per_gpu": served * found.prompt_tokens_per_s / chips,
        "prefill_throughput_tps": served * found.prompt_tokens_per_s,
        "ttft_ms": s_to_ms(1.0) * m.ttft_s,
        "itl_ms": s_to_ms(1.0) * m.tpot_s,
        "request_latency_ms": s_to_ms(1.0) * m.request_latency_s,
        "interactivity_tok_s_per_user": 1.0 / m.tpot_s,
        "per_request_decode_tps": _decode_rate(m.request_latency_s - m.ttft_s, request),
        "decode_step_ms_pure": s_to_ms(1.0) * found.pure_step_s,
        "decode_step_ms_mixed": s_to_ms(1.0) * found.mixed_step_s,
        "iteration_ms": s_to_ms(1.0) * found.step_s,
        "max_concurrent_sequences": m.max_concurrency,
        "max_sustainable_concurrency": np.minimum(found.seats, m.max_concurrency),
        "mixed_step_fraction_pct": 100.0 * found.mixed_frac,
        "tpot_pollution_pct": 100.0 * np.maximum(found.step_s / found.pure_step_s - 1.0, 0.0),
        "prefill_comm_ms": s_to_ms(1.0) * found.prefill_comm_s,
        "decode_comm_ms": s_to_ms(1.0) * found.decode_comm_s,
        "replica_gpus": batch.attention_dp * batch.tp * batch.pp / hardware.devices_per_chip,
        "mfu": flop_per_s / (chips * peak),
        "tflops_per_s_per_gpu": flop_per_s / chips / TERA,
        **_memory_figures(memory, hardware),
    }
    figures |= _priced(output / chips, total / chips, hardware) | _powered(found.watts, output, total, chips)
    return replace(metrics, figures=figures)


def _decode_rate(decoding_s: Column, request: Request) -> Column:
    """Tokens after the first over the time they take; of requests of one token there is no such rate."""
    after = request.output_len - 1.0
    return np.full_like(decoding_s, np.nan) if after <= 0 else after / decoding_s


def _memory_figures(memory: MemoryColumns, hardware: HardwareProfile) -> dict[str, Column]:
    """Items of the fullest chip, in GB of 1e9 bytes."""
    gb, none = bytes_to_gb(1.0) * hardware.devices_per_chip, np.zeros_like(memory.weights_bytes)

    def items(*columns: Column | None) -> Column:
        return gb * sum((column for column in columns if column is not None), start=none)

    return {
        "memory_per_gpu_gb": gb * memory.total_bytes,
        "memory_per_chip_gb": gb * memory.total_bytes,
        "weights_gb": items(memory.weights_bytes, memory.draft_bytes),
        "kv_cache_gb": items(memory.kv_cache_bytes, memory.prefix_cache_bytes),
        "activation_gb": items(memory.activations_bytes, memory.buffers_bytes, memory.graphs_bytes),
    }


def _priced(output: Column, total: Column, hardware: HardwareProfile) -> dict[str, Column]:
    """Cost of a million tokens at so many a second and chip."""
    price = hardware.price_usd_per_chip_hour
    if price is None:
        return {}
    a_second = price.value / S_PER_HOUR
    return {
        "cost_per_million_tokens": a_second / output * MEGA,
        "cost_per_million_total_tokens": a_second / total * MEGA,
    }


def _powered(watts: Column | None, output: Column, total: Column, chips: int) -> dict[str, Column]:
    """Power and the energy of tokens, so many a second of the fleet."""
    if watts is None:
        return {}
    return {
        "avg_power_w": watts,
        "joules_per_output_token": watts * chips / output,
        "joules_per_total_token": watts * chips / total,
    }
