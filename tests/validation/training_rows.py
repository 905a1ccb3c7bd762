"""Published training rows as plans: what a row leaves open is assumed, what cannot be expressed is refused by name."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from projector.catalog import chip, from_hf_config
from projector.errors import InvalidDescription
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import Dtype, ParallelismPlan, Recompute
from projector.specs.software import CURRENT, MEGATRON_2022, Software
from projector.specs.workload import WorkloadSpec
from projector.training import model_flop_per_token

Row = Mapping[str, Any]

DTYPES: dict[str | None, Dtype] = {"bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "mxfp8": "fp8", "nvfp4": "fp4"}
# Stacks of 2021 and 2022: unfused attention, no overlap of gradient reduction, no sequence parallelism by default.
OLD_STACKS = ("2104.04473", "2205.05198", "bigscience")
# model_type -> gated MLP, for rows that state sizes without a hub config
PLAIN_MODELS = {"gpt": False, "gpt3": False, "internlm": True, "llama2": True, "maxtext-default": True}
OPEN_MICRO_BATCHES = (1, 2, 4, 8, 16)
OPEN_RECOMPUTE: tuple[Recompute, ...] = ("none", "selective", "full")


@dataclass(frozen=True)
class TrainingCase:
    """One measured row: the plans it may mean (the fastest that fits counts), and the measured step time."""

    id: str
    source: str
    group: str
    plans: tuple[ParallelismPlan, ...]
    workload: WorkloadSpec
    architecture: ModelArchitecture
    cluster: ClusterSpec
    hardware: HardwareProfile
    software: Software
    step_time_s: float
    memory_bytes: float | None
    target: str


class Refused(Exception):
    """Why a row cannot be projected."""


def training_cases(folder: Path) -> Iterator[tuple[str, TrainingCase | Refused]]:
    """Every row of training.jsonl, as a case or as the reason why not."""
    with (folder / "training.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            try:
                yield row["id"], _case(row)
            except (Refused, InvalidDescription) as reason:
                yield row["id"], Refused(str(reason))


def _case(row: Row) -> TrainingCase:
    if row.get("suspect"):
        raise Refused(f"suspect: {row['suspect']}")
    if not row["arch"]:
        raise Refused("no architecture stated")
    hardware = chip(row["hardware"]["chip"])
    architecture = _architecture(row)
    if row["seq_len"] is None or row["global_batch"] is None:
        raise Refused("sequence length or global batch not stated")
    step_time_s, target = _target(row, architecture)
    old = any(mark in row["source"] for mark in OLD_STACKS)
    return TrainingCase(
        id=row["id"],
        source=row["framework"],
        group=row["workload_id"],
        plans=tuple(_plans(row, hardware, old)),
        workload=WorkloadSpec(seq_len=row["seq_len"], global_batch=row["global_batch"]),
        architecture=architecture,
        cluster=_cluster(row, hardware),
        hardware=hardware,
        software=MEGATRON_2022 if old else CURRENT,
        step_time_s=step_time_s,
        memory_bytes=None if row["measured"]["mem_gb_per_chip"] is None else row["measured"]["mem_gb_per_chip"] * 1e9,
        target=target,
    )


def _architecture(row: Row) -> ModelArchitecture:
    """Models with a hub config through the catalogue's reader; plain GPT and MaxText sizes as they stand."""
    arch = row["arch"]
    kind = arch.get("model_type")
    if kind not in PLAIN_MODELS:
        return from_hf_config(arch, name=row["model"], source=row["source"])
    needed = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size")
    missing = [key for key in needed if not arch.get(key)]
    if missing:
        raise Refused(f"architecture lacks {', '.join(missing)}")
    heads = arch["num_attention_heads"]
    return ModelArchitecture(
        name=row["model"],
        layers=arch["num_hidden_layers"],
        hidden_size=arch["hidden_size"],
        heads=heads,
        kv_heads=arch.get("num_key_value_heads") or heads,
        head_dim=arch.get("head_dim") or arch["hidden_size"] // heads,
        intermediate_size=arch["intermediate_size"],
        vocab_size=arch["vocab_size"],
        gated_mlp=PLAIN_MODELS[kind],
        tied_embeddings=bool(arch.get("tie_word_embeddings")),
        source=row["source"],
    )


def _target(row: Row, architecture: ModelArchitecture) -> tuple[float, str]:
    """(step time, what the row states). TFLOP/s only where the source's convention is known to us."""
    measured, derived, chips = row["measured"], row["derived"], row["hardware"]["count"]
    tokens = row["seq_len"] * row["global_batch"]
    if measured.get("step_time_s"):
        return measured["step_time_s"], "step time"
    if measured.get("tokens_per_s_per_chip"):
        return tokens / (measured["tokens_per_s_per_chip"] * chips), "tokens/s"
    if derived.get("step_time_s"):
        return derived["step_time_s"], "derived step time"
    if not measured.get("tflops_per_chip"):
        raise Refused("neither step time nor tokens/s nor TFLOP/s stated")
    rate = measured["tflops_per_chip"] * 1e12 * chips
    if "2104.04473" in row["source"]:
        return tokens * _megatron_2021_flop_per_token(architecture, row["seq_len"]) / rate, "hardware TFLOP/s"
    if row["framework"] == "MaxText" or "2407.21783" in row["source"]:
        return tokens * model_flop_per_token(architecture, row["seq_len"]) / rate, "model TFLOP/s"
    raise Refused("TFLOP/s of an unknown convention")


def _megatron_2021_flop_per_token(model: ModelArchitecture, seq_len: int) -> float:
    """Hardware FLOP a token with full recompute, 96 l h^2 (1 + s / 6h + V / 16 l h): Narayanan et al. 2021, eq. 3."""
    layers, h = model.layers, model.hidden_size
    return 96.0 * layers * h * h * (1 + seq_len / (6 * h) + model.vocab_size / (16 * layers * h))


def _cluster(row: Row, hardware: HardwareProfile) -> ClusterSpec:
    chips = row["hardware"]["count"]
    slices = 1
    mesh = row["adopted"]["mesh"] or {}
    for axis, size in mesh.items():
        if str(axis).startswith("dcn") and int(size) > 1:
            slices *= int(size)
    return ClusterSpec(chip=hardware.id, chips=chips, slices=slices)


def _plans(row: Row, hardware: HardwareProfile, old: bool) -> Iterator[ParallelismPlan]:
    adopted = row["adopted"]
    devices = row["hardware"]["count"] * hardware.devices_per_chip
    tp, pp, cp, ep = (adopted.get(axis) or 1 for axis in ("tp", "pp", "cp", "ep"))
    if devices % (tp * pp * cp):
        raise Refused(f"tp * pp * cp = {tp * pp * cp} does not divide {devices} devices")
    dp = devices // (tp * pp * cp)
    fsdp, zero = _sharding(adopted, dp, old)
    vp = adopted.get("vp") or 1
    for micro, accumulation in _batches(row, dp, tp * cp):
        for recompute in _recompute(adopted.get("recompute")):
            yield ParallelismPlan(
                dp=dp,
                fsdp=fsdp,
                zero_stage=zero,
                tp=tp,
                sp=adopted["sp"] if adopted.get("sp") is not None else tp > 1 and not old,
                pp=pp,
                vp=vp,
                schedule="interleaved" if vp > 1 else "1f1b",
                cp=cp,
                ep=ep,
                etp=adopted.get("etp") or (tp if ep == 1 else 1),
                micro_batch=micro,
                grad_accum=accumulation,
                recompute=recompute,
                compute_dtype=_dtype(row),
                overlap_grad_reduce=not old,
                overlap_param_gather=not old,
                # XLA splits matrix products so that tensor-parallel collectives hide behind them
                overlap_tp=row["framework"] == "MaxText",
            )


def _dtype(row: Row) -> Dtype:
    try:
        return DTYPES[row["precision_class"]]
    except KeyError:
        raise Refused(f"precision {row['precision_class']!r}") from None


def _sharding(adopted: Row, dp: int, old: bool) -> tuple[int, int]:
    """(fsdp, zero_stage). Stages 1 and 2 keep weights whole; stage 3 without a group size shards over all of dp."""
    zero, fsdp = adopted.get("zero_stage"), adopted.get("fsdp")
    if zero in (1, 2):
        return 1, zero
    if fsdp and fsdp > 1:
        if dp % fsdp:
            raise Refused(f"fsdp {fsdp} does not divide dp {dp}")
        return fsdp, 3
    if zero == 3:
        return dp, 3
    # Megatron's distributed optimizer is on by default in its current recipes
    return 1, 1 if zero is None and not old else 0


def _batches(row: Row, dp: int, per_rank: int) -> Iterator[tuple[int, int]]:
    """(micro_batch, grad_accum) pairs the row may mean. MaxText states sequences a device, all in one micro-batch."""
    batch, micro = row["global_batch"], row["micro_batch"]
    if batch % dp:
        raise Refused(f"global batch {batch} over dp {dp}")
    share = batch // dp
    if row["framework"].startswith("MaxText"):
        yield share, 1
        return
    if micro is None:
        yield from ((size, share // size) for size in OPEN_MICRO_BATCHES if share % size == 0)
        return
    if float(micro) != int(micro) or share % int(micro):
        raise Refused(f"micro-batch {micro} does not divide the {share} sequences of a data rank")
    yield int(micro), share // int(micro)


def _recompute(printed: str | None) -> tuple[Recompute, ...]:
    """Recompute modes the row may mean. Custom and offloading policies stand between selective and full: open."""
    if printed in ("none", "full"):
        return (printed,)  # type: ignore[return-value]
    return ("selective",) if (printed or "").startswith("selective") else OPEN_RECOMPUTE
