"""Chips, models and plans with round numbers, so that expected values can be worked out on paper."""

from typing import Literal

from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import Calibration, Fabric, Figure, HardwareProfile, HostLink, ScaleOut
from projector.specs.workload import WorkloadSpec


def figure(value: float) -> Figure:
    return Figure(value=value, source="made up for tests", retrieved="2026-01-01")


def ideal(**changes: float) -> Calibration:
    """Everything at its peak, nothing fixed: times are FLOP over peak and bytes over bandwidth."""
    values: dict[str, float] = {
        "gemm_efficiency_frac": 1.0,
        "attention_efficiency_frac": 1.0,
        "hbm_efficiency_frac": 1.0,
        "link_efficiency_frac": 1.0,
        "gemm_half_size_flop": 1e-9,
        "kernel_launch_s": 0.0,
        "kernel_floor_s": 0.0,
    }
    return Calibration(**(values | changes), source="ideal")


def switched_chip(
    *,
    domain_chips: int = 8,
    calibration: Calibration | None = None,
    latency_s: float = 1e-6,
    network: float | None = 25e9,
    hbm_bytes: float = 100e9,
    hbm_bytes_per_s: float = 1e12,
    peak_flop_per_s: float = 100e12,
    devices_per_chip: int = 1,
    kind: Literal["gpu", "tpu"] = "gpu",
    host: float | None = None,
) -> HardwareProfile:
    """100 TFLOP/s, 1 TB/s, 100 GB; 100 GB/s to each of 8 neighbours, 25 GB/s beyond."""
    return HardwareProfile(
        id="switched",
        vendor="nobody",
        kind=kind,
        aliases=("Switched 100",),
        devices_per_chip=devices_per_chip,
        chips_per_node=8,
        peak_flop_per_s={"bf16": figure(peak_flop_per_s), "fp32": figure(peak_flop_per_s / 4)},
        hbm_bytes=figure(hbm_bytes),
        hbm_bytes_per_s=figure(hbm_bytes_per_s),
        intra=Fabric(
            kind="switch",
            name="switch",
            bytes_per_s_one_way=figure(100e9),
            max_domain_chips=domain_chips,
            latency_s=latency_s,
        ),
        inter=ScaleOut(
            name="network", bytes_per_s_one_way=None if network is None else figure(network), latency_s=5e-6
        ),
        host=None if host is None else HostLink(name="PCIe", bytes_per_s_one_way=figure(host)),
        calibration=calibration or ideal(),
    )


def torus_chip(*, dimensions: int = 2, wrap_multiple: int = 16, max_chips: int = 256) -> HardwareProfile:
    """10 GB/s a link one way, two links a dimension."""
    links = 2 * dimensions
    return HardwareProfile(
        id="torus",
        vendor="nobody",
        kind="tpu",
        chips_per_node=4,
        peak_flop_per_s={"bf16": figure(100e12)},
        hbm_bytes=figure(16e9),
        hbm_bytes_per_s=figure(1e12),
        intra=Fabric(
            kind="torus",
            name="ICI",
            bytes_per_s_one_way=figure(10e9 * links),
            links_per_chip=links,
            torus_dimensions=2 if dimensions == 2 else 3,
            wrap_multiple=wrap_multiple,
            max_domain_chips=max_chips,
            latency_s=1e-6,
        ),
        inter=ScaleOut(name="DCN", bytes_per_s_one_way=figure(5e9), latency_s=20e-6),
        calibration=ideal(),
    )


def dense_model(**changes: object) -> ModelArchitecture:
    """8 layers, hidden 1024, 16 heads of 64, 4 KV heads, gated MLP of 4096."""
    values: dict[str, object] = {
        "name": "dense",
        "layers": 8,
        "hidden_size": 1024,
        "heads": 16,
        "kv_heads": 4,
        "head_dim": 64,
        "intermediate_size": 4096,
        "vocab_size": 32000,
        "source": "made up for tests",
    }
    return ModelArchitecture.model_validate(values | changes)


def moe_model(**changes: object) -> ModelArchitecture:
    """The dense model with 16 experts of 512, 2 a token, one shared, first layer dense."""
    experts: dict[str, object] = {
        "name": "moe",
        "experts": 16,
        "experts_per_token": 2,
        "moe_intermediate_size": 512,
        "shared_experts": 1,
        "first_dense_layers": 1,
    }
    return dense_model(**(experts | changes))


def latent_model() -> ModelArchitecture:
    """The dense model with latent attention: latents of 256 and 384, heads of 32 + 16 and values of 32."""
    return dense_model(
        name="latent",
        kv_heads=16,
        head_dim=48,
        q_lora_rank=384,
        kv_lora_rank=256,
        qk_nope_head_dim=32,
        qk_rope_head_dim=16,
        v_head_dim=32,
    )


def gpt(layers: int, hidden: int, heads: int) -> ModelArchitecture:
    """GPT-3 style: as many KV heads as heads, ungated MLP of 4 h, tied embeddings."""
    return dense_model(
        name="gpt",
        layers=layers,
        hidden_size=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        intermediate_size=4 * hidden,
        vocab_size=51200,
        gated_mlp=False,
        tied_embeddings=True,
    )


def cluster(hardware: HardwareProfile, chips: int, **changes: object) -> ClusterSpec:
    return ClusterSpec.model_validate({"chip": hardware.id, "chips": chips} | changes)


def training(global_batch: int, seq_len: int = 2048) -> WorkloadSpec:
    return WorkloadSpec(seq_len=seq_len, global_batch=global_batch)


def serving(concurrency: int, input_len: int = 1024, output_len: int = 256) -> WorkloadSpec:
    return WorkloadSpec(phase="serving", input_len=input_len, output_len=output_len, concurrency=concurrency)
