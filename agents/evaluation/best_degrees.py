"""Which degrees serve most: the projected best of a measured sweep against its measured best.

A sweep is one workload of one release measured with several layouts of one engine, all requests there at the start.
Throughput is compared by chip, so that engines of different size compare.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import ValidationError

from agents.evaluation.accuracy import reasons
from agents.evaluation.architecture import architecture_of
from agents.evaluation.precisions import dtype_of, stored_dtype
from agents.evaluation.rates import rate
from agents.evaluation.refusal import Refused, or_refused
from agents.evaluation.reports_served import DegreesReport, DegreesSlice
from agents.evaluation.served_rows import ServedRow
from projector.catalog import chip
from projector.errors import ShardwiseError
from projector.project import project_many
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ComputeDtype
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import WorkloadSpec

QUEUED = "all requests queued"
# limits of requests a step that are tried, as whoever tunes an engine for throughput does
SEATS = (64, 128, 256, 512, 1024, 2048, 4096)
# TensorRT-LLM's default max_num_tokens
PREFILL_TOKENS = 8192
NEAR = 0.10


@dataclass(frozen=True)
class Choice:
    """One sweep. smallest_right: the measured best is the smallest engine; share: measured throughput of the projected
    best over the measured best; ratios: projected over measured, of every point."""

    id: str
    model: str
    chip: str
    right: bool
    smallest_right: bool
    share: float
    ratios: tuple[float, ...]


def best_degrees(sweeps: Iterable[tuple[str, Sequence[ServedRow]]]) -> DegreesReport:
    """Over every sweep with two distinct engines or more; one that cannot be projected counts as missed."""
    chosen: list[Choice] = []
    refused: list[tuple[str, str]] = []
    for name, rows in sweeps:
        points = [row for row in rows if _counts(row)]
        if len({row.layout.engine for row in points}) < 2:
            continue
        found = or_refused(lambda name=name, points=points: _choice(name, points))  # type: ignore[misc]
        if isinstance(found, Refused):
            refused.append((name, str(found)))
        else:
            chosen.append(found)
    groups: dict[str, list[Choice]] = defaultdict(list)
    for one in chosen:
        groups[f"{one.model} {one.chip}"].append(one)
    return DegreesReport(
        total=_slice("all", chosen, len(refused)),
        slices=tuple(_slice(name, members) for name, members in sorted(groups.items())),
        refusals=reasons(refused, with_ids=False),
    )


def _counts(row: ServedRow) -> bool:
    measured = row.output_tokens_per_s_per_chip is not None and row.suspect is None and not row.disaggregated
    return measured and QUEUED in row.scenario


def _choice(name: str, points: Sequence[ServedRow]) -> Choice:
    measured = np.array([row.output_tokens_per_s_per_chip for row in points], dtype=np.float64)
    projected = np.array([projected_tokens_per_s_per_chip(row) for row in points])
    best, pick = int(np.argmax(measured)), int(np.argmax(projected))
    if projected[pick] <= 0:
        raise Refused("no engine of the sweep is projected to hold one request")
    return Choice(
        id=name,
        model=points[0].model,
        chip=points[0].chip,
        right=points[pick].layout.engine == points[best].layout.engine,
        smallest_right=points[best].layout.devices == min(row.layout.devices for row in points),
        share=float(measured[pick] / measured[best]),
        ratios=tuple((projected / measured).tolist()),
    )


def projected_tokens_per_s_per_chip(row: ServedRow) -> float:
    """Generated tokens a second and chip with the best of SEATS, all of them taken; 0 where not one request fits.

    Refused for a row that does not say enough, or that the projector refuses.
    """
    if row.input_len is None or row.output_len is None:
        raise Refused("the lengths of the requests are not stated")
    layout = row.layout
    model = architecture_of(row.arch, row.model, row.source)
    dtype, _ = dtype_of(row.precision)
    try:
        hardware = chip(row.chip)
        plans = PlanBatch.from_columns(
            len(SEATS),
            phase="serving",
            dp=layout.replicas * layout.attention_dp,
            attention_dp=layout.attention_dp,
            tp=layout.tp,
            pp=layout.pp,
            ep=layout.ep if model.is_moe else 1,
            etp=layout.tp * layout.attention_dp // layout.ep if model.is_moe else 1,
            weight_dtype=stored_dtype(dtype),
            compute_dtype=_computed(dtype, hardware),
            # TensorRT-LLM keeps an 8-bit cache where weights are narrow
            kv_cache_dtype="bf16" if dtype in ("fp32", "bf16", "fp16") else "fp8",
            max_num_seqs=np.array(SEATS),
            chunked_prefill_tokens=PREFILL_TOKENS,
        )
        workload = WorkloadSpec(phase="serving", input_len=row.input_len, output_len=row.output_len, precision=dtype)
        cluster = ClusterSpec(chip=hardware.id, chips=row.chips)
        found = project_many(plans, workload, model, cluster, hardware, all_seats_taken=True)
    except (ValidationError, ShardwiseError) as error:
        raise Refused(str(error).splitlines()[0]) from error
    return float(found.objective("decode_throughput_tps_per_gpu").max())


def _computed(dtype: ComputeDtype, hardware: HardwareProfile) -> str:
    return dtype if dtype in hardware.peak_flop_per_s else "bf16"


def _slice(value: str, members: Sequence[Choice], missed: int = 0) -> DegreesSlice:
    ratios = [ratio for one in members for ratio in one.ratios]
    return DegreesSlice(
        value=value,
        right=rate([*(float(one.right) for one in members), *[0.0] * missed]),
        near=rate([*(float(one.share >= 1 - NEAR) for one in members), *[0.0] * missed]),
        smallest=rate([*(float(one.smallest_right) for one in members), *[0.0] * missed]),
        points=len(ratios),
        mape=float(np.mean(np.abs(np.array(ratios) - 1))) if ratios else None,
        bias=float(np.median(ratios)) - 1 if ratios else None,
    )
