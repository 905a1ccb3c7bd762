"""ServingFigures: every figure a serving plan is judged by, each under the name and in the unit of its objective."""

from pydantic import Field

from projector.specs.record import Record


class ServingFigures(Record):
    """Formulas and meanings: `projector.specs.serving_objectives`. None where a plan or a chip has no such figure: an
    engine that holds no request serves none; without a price or a board power there is no cost and no energy.
    """

    mfu: float | None = Field(None, ge=0, description="fraction")
    memory_per_chip_gb: float | None = Field(None, ge=0, description="GB")
    cost_per_million_tokens: float | None = Field(None, ge=0, description="USD")
    decode_throughput_tps_per_gpu: float | None = Field(None, ge=0, description="tokens/s/chip")
    decode_throughput_tps: float | None = Field(None, ge=0, description="tokens/s")
    total_throughput_tps_per_gpu: float | None = Field(None, ge=0, description="tokens/s/chip")
    total_throughput_tps: float | None = Field(None, ge=0, description="tokens/s")
    prefill_throughput_tps_per_gpu: float | None = Field(None, ge=0, description="tokens/s/chip")
    prefill_throughput_tps: float | None = Field(None, ge=0, description="tokens/s")
    ttft_ms: float | None = Field(None, ge=0, description="ms")
    itl_ms: float | None = Field(None, ge=0, description="ms")
    request_latency_ms: float | None = Field(None, ge=0, description="ms")
    interactivity_tok_s_per_user: float | None = Field(None, ge=0, description="tokens/s/user")
    per_request_decode_tps: float | None = Field(None, ge=0, description="tokens/s/request")
    decode_step_ms_pure: float | None = Field(None, ge=0, description="ms")
    decode_step_ms_mixed: float | None = Field(None, ge=0, description="ms")
    max_concurrent_sequences: float | None = Field(None, ge=0, description="requests")
    max_sustainable_concurrency: float | None = Field(None, ge=0, description="requests")
    memory_per_gpu_gb: float | None = Field(None, ge=0, description="GB")
    kv_cache_gb: float | None = Field(None, ge=0, description="GB")
    weights_gb: float | None = Field(None, ge=0, description="GB")
    activation_gb: float | None = Field(None, ge=0, description="GB")
    mixed_step_fraction_pct: float | None = Field(None, ge=0, description="%")
    tpot_pollution_pct: float | None = Field(None, ge=0, description="%")
    prefill_comm_ms: float | None = Field(None, ge=0, description="ms")
    decode_comm_ms: float | None = Field(None, ge=0, description="ms")
    replica_gpus: float | None = Field(None, ge=0, description="chips")
    avg_power_w: float | None = Field(None, ge=0, description="W")
    joules_per_output_token: float | None = Field(None, ge=0, description="J")
    joules_per_total_token: float | None = Field(None, ge=0, description="J")
    tflops_per_s_per_gpu: float | None = Field(None, ge=0, description="TFLOP/s/chip")
    iteration_ms: float | None = Field(None, ge=0, description="ms")
    cost_per_million_total_tokens: float | None = Field(None, ge=0, description="USD")
