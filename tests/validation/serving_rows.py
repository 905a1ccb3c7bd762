"""Measured serving points as plans: silicon_serving.csv, aggregated engines; what cannot be expressed is refused."""

import csv
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agents.evaluation.refusal import Refused
from projector.catalog import chip, from_hf_config
from projector.errors import InvalidDescription
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import Dtype, ParallelismPlan
from projector.specs.workload import WorkloadSpec

Row = Mapping[str, str]

# GEMM weights as the file names them; KV caches are not stated and taken as 8 bit where the weights are narrow on
# TensorRT-LLM, 16 bit elsewhere (the engines' defaults).
DTYPES: dict[str, Dtype] = {
    "bfloat16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8",
    "nvfp4": "fp4",
    "w4a16_mxfp4": "fp4",
    "w4a8_mxfp4_mxfp8": "fp4",
    "int8_wo": "int8",
}


@dataclass(frozen=True)
class ServingCase:
    """One measured point: an engine, its load, TTFT and TPOT."""

    id: str
    backend: str
    plan: ParallelismPlan
    workload: WorkloadSpec
    architecture: ModelArchitecture
    cluster: ClusterSpec
    hardware: HardwareProfile
    ttft_s: float
    tpot_s: float

    @property
    def group(self) -> str:
        """Points that differ in load and layout only."""
        return f"{self.architecture.name} {self.hardware.id} {self.backend}"


def serving_cases(folder: Path) -> Iterator[tuple[str, ServingCase | Refused]]:
    """Every row of silicon_serving.csv, as a case or as the reason why not."""
    models = _models(folder)
    with (folder / "silicon_serving.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            try:
                yield row["id"], _case(row, models)
            except (Refused, InvalidDescription) as reason:
                yield row["id"], Refused(str(reason))


def _models(folder: Path) -> dict[str, tuple[str, dict[str, object]]]:
    """Plain model name -> (catalogue name, config)."""
    found = {}
    with (folder / "models.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            model = json.loads(line)
            found[_plain(model["hf_id"] or model["id"])] = (model["id"], model["config"])
    return found


def _plain(hf_id: str) -> str:
    name = hf_id.split("/")[-1].lower()
    for affix in ("meta-", "-instruct", "-fp8", "-nvfp4"):
        name = name.replace(affix, "")
    return name


def _case(row: Row, models: Mapping[str, tuple[str, dict[str, object]]]) -> ServingCase:
    if row["mode"] != "agg":
        raise Refused(f"{row['mode']} engines are not modelled")
    try:
        name, config = models[_plain(row["model_path"])]
    except KeyError:
        raise Refused(f"no config of {row['model_path']}") from None
    architecture = from_hf_config(config, name=name, source="models.jsonl")
    hardware = chip(row["system"].replace("_", "-"))
    dtype = DTYPES.get(row["moe_quant_mode"] if architecture.is_moe else row["gemm_quant_mode"])
    if dtype is None:
        raise Refused(f"weights {row['gemm_quant_mode']}")
    tp, pp, attention_dp, etp, ep = (
        int(row[key] or 1) for key in ("tp_size", "pp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")
    )
    if architecture.heads % tp:
        raise Refused("tp does not divide the heads: several engines counted as one")
    if architecture.is_moe and etp * ep != tp * attention_dp:
        raise Refused("experts over other devices than the engine's")
    stated = re.search(r"silicon_concurrency=(\d+)", row["silicon_data_source"])
    requests = int(stated[1]) if stated else int(row["batch_size"]) * attention_dp
    plan = ParallelismPlan(
        phase="serving",
        dp=attention_dp,
        attention_dp=attention_dp,
        tp=tp,
        pp=pp,
        ep=ep if architecture.is_moe else 1,
        etp=etp if architecture.is_moe else 1,
        weight_dtype=dtype,
        kv_cache_dtype="fp8" if row["backend"] == "trtllm" and dtype != "bf16" else "bf16",
        max_num_seqs=max(requests, 1),
        chunked_prefill_tokens=8192,
    )
    return ServingCase(
        id=row["id"],
        backend=row["backend"],
        plan=plan,
        workload=WorkloadSpec(
            phase="serving", input_len=int(row["isl"]), output_len=int(row["osl"]), concurrency=requests
        ),
        architecture=architecture,
        cluster=ClusterSpec(chip=hardware.id, chips=plan.devices),
        hardware=hardware,
        ttft_s=float(row["silicon_ttft_ms"]) / 1e3,
        tpot_s=float(row["silicon_tpot_ms"]) / 1e3,
    )
