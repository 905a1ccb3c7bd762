"""What HTA and TraceLens print for the sample traces, as kept in reference/hta, and the same figures of ours.

HTA: `get_temporal_breakdown` of 0.5.0 and of traceinsight 0.6.1. Its definition, on the events it keeps: idle = span
minus the union of all device events; compute = union of kernels whose name is neither a collective's nor a copy's. It
reads times in whole microseconds, drops the last of several profiler steps with all that it launched, and knows
collectives by name alone.
TraceLens 171dd74: `gpu_timeline`, in milliseconds; it keeps the kernels it can link to a host operator and counts
memsets as compute.
"""

import csv
import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from traces import intervals
from traces.shares import union_of
from traces.trace import ABSENT, Category, Ints, Trace

HTA_VERSIONS = ("hta-0.5.0", "traceinsight-0.6.1")
TRACELENS = "tracelens-171dd74"
_COMMUNICATION = {
    "hta-0.5.0": re.compile(r"^nccl"),
    "traceinsight-0.6.1": re.compile(r"^nccl.*|^hip|^hccl|.*ncclKernel.*"),
}
_MEMORY = re.compile(r"^(hip)?Mem(cpy|set)|^dma")
_STEP = re.compile(r"ProfilerStep#\d+")

# name in reference/hta -> files under traces/, in order of rank
FILES: dict[str, tuple[str, ...]] = {
    "deepseek_train": ("deepseek/train.json",),
    "hta_alexnet": ("hta/critical_path/alexnet/benchmark_result_2869224_1695835535_trace.json.gz",),
    "hta_amd_mi250": ("hta/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz",),
    "hta_nccl_data": ("hta/nccl_parser_config/nccl_data.json.gz",),
    "hta_negative_queue_rank0of16": ("hta/negative_queue_length_values_check/rank0.json.gz",),
    "hta_ns_resolution": ("hta/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",),
    "hta_sampled_2of128": (
        "hta/trace_filter/sampled_rank-0.json.gz",
        "hta/trace_filter/sampled_rank-1.json.gz",
    ),
    "hta_sampled_rank0": ("hta/trace_filter/sampled_rank-0.json.gz",),
    "hta_sampled_rank1": ("hta/trace_filter/sampled_rank-1.json.gz",),
    "hta_trace_diff_control": ("hta/trace_diff/control/control.json.gz",),
    "kineto_resnet50_w0": ("kineto/resnet50_num_workers_0/worker0.1623143566756.pt.trace.json.gz",),
    "param_resnet_rtx2080ti": ("param/resnet_kineto.json.gz",),
    "tracelens_b200_eager": ("tracelens/b200/eager_trace.json.gz",),
    "tracelens_h100_bert-small": ("tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz",),
    "tracelens_h100_qwen1.5-0.5b": ("tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",),
    "tracelens_mi210_gpu_only": ("tracelens/mi210/gpu_only_trace/gpu_only_trace.json.gz",),
    "tracelens_mi300_qwen1.5-0.5b": ("tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",),
    "tracelens_mi300_resnet_ddp8_rank0": ("tracelens/mi300/resnet_act_checkpoint.json.gz",),
    "tracelens_sglang_qwen3-8b_decode": ("tracelens/inference/sglang_decode/sglang_Qwen3-8B_decode.json.gz",),
    "tracelens_sglang_qwen3-8b_prefilldecode": (
        "tracelens/inference/sglang_prefilldecode/sglang_Qwen3-8B_prefilldecode.json.gz",
    ),
    "tracelens_torch_compile_triton": ("tracelens/torch_compile_triton/trace.json.gz",),
    "tracelens_vllm_piecewise": ("tracelens/inference/vllm_prefilldecode_piecewise/graph_execution.json.gz",),
}


@dataclass(frozen=True)
class Figures:
    """Microseconds. exposed: communication and copies that no compute covers, as far as the tool tells them apart."""

    span_us: float
    compute_us: float
    idle_us: float
    communication_us: float | None = None


@dataclass(frozen=True)
class Peer:
    """What one tool says of one rank; figures None: it failed, with its own words."""

    tool: str
    figures: Figures | None
    failure: str = ""


def hta_of(reference: Path, version: str, name: str, rank: int = 0) -> Peer | None:
    """HTA's temporal breakdown; None where nobody ran it on this file."""
    status = reference / version / f"{name}.status.json"
    if not status.is_file():
        return None
    told = json.loads(status.read_text())
    table = reference / version / f"{name}.temporal_breakdown.csv"
    if not table.is_file():
        failures = [f"{key}: {text}" for key, text in told.items() if isinstance(text, str) and text.startswith("FAIL")]
        return Peer(version, None, "; ".join(failures[:1]) or "no temporal breakdown")
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    row = rows[rank]
    figures = Figures(float(row["kernel_time(us)"]), float(row["compute_time(us)"]), float(row["idle_time(us)"]))
    return Peer(version, figures)


def tracelens_of(reference: Path, name: str) -> Peer | None:
    """TraceLens' GPU timeline; None where nobody ran it on this file."""
    status = reference / TRACELENS / f"{name}.status.json"
    if not status.is_file():
        return None
    table = reference / TRACELENS / f"{name}.gpu_timeline.csv"
    if not table.is_file():
        return Peer(TRACELENS, None, str(json.loads(status.read_text()).get("gpu_timeline", "no timeline")))
    with table.open(newline="") as file:
        rows = {row["type"]: 1000 * float(row["time ms"]) for row in csv.DictReader(file)}
    figures = Figures(rows["total_time"], rows["computation_time"], rows["idle_time"], rows["total_comm_time"])
    return Peer(TRACELENS, figures)


def communication_pattern(version: str) -> re.Pattern[str]:
    """What that version of HTA takes for the name of a collective."""
    return _COMMUNICATION[version]


def as_hta(trace: Trace, version: str) -> tuple[Figures, int]:
    """Our exact figures on HTA's events, with HTA's names for collectives; and how many events that are."""
    rows = _launched_before_last_step(trace)
    names = np.array(
        [not _COMMUNICATION[version].match(name) and not _MEMORY.match(name) for name in trace.names], np.bool_
    )
    return _figures(trace, rows, rows[names[trace.name_id[rows]]]), len(rows)


def as_tracelens(trace: Trace) -> tuple[Figures, int]:
    """Our exact figures with memsets and unknown kernels as compute, over every device event."""
    rows = trace.device_rows
    copies = trace.category[rows] == Category.MEMCPY
    nccl = np.array([re.search("nccl|rccl|cross_device_reduce", name) is not None for name in trace.names], np.bool_)
    return _figures(trace, rows, rows[~copies & ~nccl[trace.name_id[rows]]]), len(rows)


def _figures(trace: Trace, rows: Ints, compute: Ints) -> Figures:
    if not len(rows):
        return Figures(0.0, 0.0, 0.0)
    span = int(trace.end_ns[rows].max() - trace.start_ns[rows].min())
    busy = intervals.length(union_of(trace, rows))
    return Figures(span / 1000, intervals.length(union_of(trace, compute)) / 1000, (span - busy) / 1000)


def _launched_before_last_step(trace: Trace) -> Ints:
    """Device events HTA keeps: where several profiler steps are marked, those launched before the last one began."""
    rows = trace.device_rows
    is_step = np.array([_STEP.fullmatch(name) is not None for name in trace.names], np.bool_)
    marks = trace.named(trace.rows(Category.ANNOTATION), is_step)
    if len({trace.name(row) for row in marks}) < 2:
        return rows
    calls = trace.rows(Category.RUNTIME)
    early = calls[trace.start_ns[calls] < trace.start_ns[marks].max()]
    kept = np.unique(trace.correlation[early])
    return rows[np.isin(trace.correlation[rows], kept[kept != ABSENT])]
