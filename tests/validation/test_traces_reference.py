"""The window identity of every shared sample against an independent calculation.

That is reference/hta/interval_crosscheck.json, which classifies by kernel name (its `wide_name` figures: nccl, DeepEP,
symmetric memory) and prints microseconds to three digits. Three things about it matter here.

- It read times as doubles. In two files the times are so large that the spacing of doubles nears or exceeds a
  nanosecond, and its window and idle time are off by 1 ns and 36 ns. Read the same way, ours agree with it to the last
  digit; read exactly, all other terms do.
- For the 2021 schema it knows kernels alone, as copies are in categories it does not look at.
- paths.json maps four entries to another file of the same base name; `MISMAPPED` has the right file, or None.
"""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traces.chrome.exact_time import exact_ns
from traces.read import read_traces
from traces.summary import summarise
from traces.summary_types import TraceSummary
from traces.trace import Category, Trace

SHARED = Path(os.environ.get("SHARDWISE_SHARED", Path(__file__).parents[3] / "shared"))
REFERENCE = SHARED / "reference" / "hta"

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not REFERENCE.is_dir(), reason=f"no samples at {SHARED}; set SHARDWISE_SHARED"),
]

_QWEN = "mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
MISMAPPED: dict[str, str | None] = {
    "hta/critical_path/end_to_end/simple_add/input/trace.json.gz": None,
    "tracelens/traces/torch_compile_triton/trace.json.gz": "tracelens/torch_compile_triton/trace.json.gz",
    f"tracelens/traces/{_QWEN}": f"tracelens/{_QWEN}",
    "tracelens/traces/mi300/gaunernst_bert-small-uncased__1016001.json.gz": None,
}
KERNELS_ONLY = {"kineto/resnet50_num_workers_0/worker0.1623143566756.pt.trace.json.gz"}
BEYOND_A_DOUBLE = {
    "hta/nccl_parser_config/nccl_data.json.gz",
    "hta/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
}
FIGURES = {
    "span_us": "window_ns",
    "compute_us": "compute_ns",
    "comm_us": "communication_ns",
    "exposed_comm_us": "exposed_communication_ns",
    "copy_us": "copy_ns",
    "exposed_copy_us": "exposed_copy_ns",
    "idle_us": "idle_ns",
}


def entries() -> dict[str, tuple[str, dict[str, float]]]:
    """Entry name -> (file under traces/, wide_name figures)."""
    if not REFERENCE.is_dir():
        return {}
    mapped = json.loads((REFERENCE / "paths.json").read_text())["map"]
    figures: list[dict[str, Any]] = json.loads((REFERENCE / "interval_crosscheck.json").read_text())
    found = {}
    for entry in figures:
        file = MISMAPPED.get(entry["file"], mapped.get(entry["file"]))
        if file is not None and "wide_name" in entry:
            found[entry["file"]] = (file, entry["wide_name"])
    return found


ENTRIES = entries()
summaries: dict[tuple[str, str], TraceSummary] = {}


def trace_of(file: str) -> Trace:
    (trace,) = read_traces([SHARED / "traces" / file])
    if file in KERNELS_ONLY:
        host = ~np.isin(trace.category, [Category.MEMCPY, Category.MEMSET])
        return trace.take(np.flatnonzero(host))
    return trace


def summary_of(file: str, evidence: Any) -> TraceSummary:
    if (file, evidence) not in summaries:
        summaries[file, evidence] = summarise([trace_of(file)], evidence=evidence)
    return summaries[file, evidence]


def told(summary: TraceSummary) -> dict[str, float]:
    return {theirs: getattr(summary, ours) / 1000 for theirs, ours in FIGURES.items()}


def through_doubles(trace: Trace) -> Trace:
    """The same trace with its times read as a double each, as the reference read them."""
    rows = trace.device_rows
    texts = [f"{start // 1000}.{start % 1000:03}" for start in trace.start_ns[rows].tolist()]
    assert exact_ns([text.encode() for text in texts])[0].tolist() == trace.start_ns[rows].tolist()
    device = trace.take(rows)
    device.start_ns[:] = [round(float(text) * 1000) for text in texts]
    return device


def test_every_mapped_entry_is_checked() -> None:
    assert len(ENTRIES) == 24
    assert len({file for file, _ in ENTRIES.values()}) == 23


@pytest.mark.parametrize("evidence", ["names", "provenance"])
@pytest.mark.parametrize("entry", sorted(ENTRIES))
def test_exact_agreement(entry: str, evidence: str) -> None:
    file, theirs = ENTRIES[entry]
    ours = told(summary_of(file, evidence))
    ignored = {"span_us", "idle_us"} if file in BEYOND_A_DOUBLE else set()
    assert {name: ours[name] for name in FIGURES if name not in ignored} == {
        name: theirs[name] for name in FIGURES if name not in ignored
    }


@pytest.mark.parametrize("file", sorted(BEYOND_A_DOUBLE))
def test_the_two_files_a_double_cannot_hold_agree_when_read_through_doubles(file: str) -> None:
    (theirs,) = [figures for path, figures in ENTRIES.values() if path == file]
    assert told(summarise([through_doubles(trace_of(file))], evidence="names")) == {
        name: theirs[name] for name in FIGURES
    }
    exact = told(summary_of(file, "names"))
    assert 0 < abs(exact["span_us"] - theirs["span_us"]) < 0.05


def test_deepseek_hides_nearly_all_of_its_communication() -> None:
    summary = summary_of("deepseek/train.json", "provenance")
    assert summary.communication_ns == 113_030_000
    assert summary.window_ns == 129_012_000
    hidden = 1 - summary.exposed_communication_ns / summary.communication_ns
    assert round(100 * hidden, 1) == 96.3


def test_the_only_pair_of_ranks() -> None:
    folder = SHARED / "traces" / "hta" / "trace_filter"
    summary = summarise(read_traces([folder / "sampled_rank-0.json.gz", folder / "sampled_rank-1.json.gz"]))
    assert [rank.rank for rank in summary.ranks] == [0, 1]
    assert summary.communication_ns == 396_199_000 + 379_053_000
    assert summary.window_ns == 1_222_847_000 + 1_231_186_000
