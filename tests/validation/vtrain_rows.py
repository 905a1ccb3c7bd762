"""The sweeps of vTrain: GPT models on A100, Megatron of 2022 with full recompute, fp16, 51200 vocabulary entries."""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

from projector.catalog import chip
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan
from projector.specs.software import MEGATRON_2022
from projector.specs.workload import WorkloadSpec

from .training_rows import TrainingCase

MULTI_NODE, SINGLE_NODE = "vtrain_a100_multi_node.csv", "vtrain_a100_single_node.csv"


def vtrain_cases(folder: Path, file: str) -> Iterator[TrainingCase]:
    """The rows of one sweep."""
    with (folder / file).open(encoding="utf-8") as lines:
        for number, row in enumerate(csv.DictReader(lines)):
            yield _case(f"{file}:{number}", row)


def _case(name: str, row: Mapping[str, str]) -> TrainingCase:
    hardware = chip("a100-80-sxm")
    devices, batch, seq_len = int(row["# GPUs"]), int(row["global batch"]), int(row["sequence length"])
    micro, dp = int(row["micro batch"]), int(row["data parallelism"])
    model = gpt(int(row["# layers"]), int(row["hidden size"]), int(row["attention heads"]), seq_len)
    plan = ParallelismPlan(
        dp=dp,
        tp=int(row["tensor parallelism"]),
        pp=int(row["pipeline parallelism"]),
        micro_batch=micro,
        grad_accum=batch // (dp * micro),
        recompute="full",
        compute_dtype="fp16",
        # that Megatron reduced gradients after the last micro-batch
        overlap_grad_reduce=False,
        overlap_param_gather=False,
    )
    return TrainingCase(
        id=name,
        source="vTrain",
        group=f"{model.name} s{seq_len} b{batch} on {devices}",
        plans=(plan,),
        workload=WorkloadSpec(seq_len=seq_len, global_batch=batch),
        architecture=model,
        cluster=ClusterSpec(chip=hardware.id, chips=devices),
        hardware=hardware,
        software=MEGATRON_2022,
        step_time_s=float(row["iteration time (ms)"]) / 1e3,
        memory_bytes=None,
        target="step time",
    )


def gpt(layers: int, hidden: int, heads: int, positions: int) -> ModelArchitecture:
    """A GPT-3 style model of the sizes vTrain sweeps."""
    return ModelArchitecture(
        name=f"gpt-{hidden}x{layers}",
        layers=layers,
        hidden_size=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        intermediate_size=4 * hidden,
        vocab_size=51200,
        gated_mlp=False,
        tied_embeddings=True,
        positions="learned",
        max_positions=positions,
        source="sizes stated by the sweep",
    )
