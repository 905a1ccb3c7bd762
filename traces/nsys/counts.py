"""How many events of each kind a file holds, and what of it no trace shows."""

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from traces.nsys.database import Database
from traces.nsys.device import GRAPH, KERNEL, MEMCPY, MEMSET
from traces.nsys.events import Events
from traces.nsys.host import CALLS
from traces.nsys.ranks import Place
from traces.trace import UNKNOWN_WORK, Category

_PREFIX: Final = "CUPTI_ACTIVITY_KIND_"
_COUNTED: Final = {"cuda_sync": "SYNCHRONIZATION", "overhead": "OVERHEAD", "cuda_event": "CUDA_EVENT"}
_KNOWN: Final = frozenset({KERNEL, MEMCPY, MEMSET, GRAPH, *CALLS, *(_PREFIX + name for name in _COUNTED.values())})
_VERSION: Final = re.compile(r"_V\d{1,3}$")
_LABELS: Final = {
    Category.KERNEL: "kernel",
    Category.MEMCPY: "gpu_memcpy",
    Category.MEMSET: "gpu_memset",
    Category.RUNTIME: "cuda_runtime",
    Category.CPU_OP: "cpu_op",
    Category.ANNOTATION: "user_annotation",
}
_SHOWN: Final = 60

_DIAGNOSTICS: Final = "DIAGNOSTIC_EVENT"
_ERROR: Final = 3  # of ENUM_DIAGNOSTIC_SEVERITY_LEVEL
_OF_LOSS: Final = re.compile(r"\b(?:lost|dropped|not all|incomplete|missing|out of memory)\b", re.IGNORECASE)
_MOST_COMPLAINTS: Final = 5
_COMPLAINT_SHOWN: Final = 200


def counts_of(db: Database, found: Events, marks: int) -> dict[str, int]:
    """Events by kind, under the names PyTorch's profiler has for them; waits and overhead are counted and not read."""
    graphs = int((found.kind == UNKNOWN_WORK).sum())
    counts = {label: int((found.category == category).sum()) for category, label in _LABELS.items()}
    counts["kernel"] -= graphs
    counts |= {"cuda_graph": graphs, "nvtx_mark": marks}
    counts |= {label: db.count(_PREFIX + name) for label, name in _COUNTED.items()}
    return {label: count for label, count in sorted(counts.items()) if count}


def complaints(db: Database) -> tuple[str, ...]:
    """What the profiler said went wrong: its errors, and whatever it says of lost events."""
    said: dict[str, None] = {}
    for rows in db.records(_DIAGNOSTICS, ("severity",), ("text",), counted=False):
        for severity, raw in rows:
            text = " ".join(db.text(raw).split())
            if text and (severity == _ERROR or _OF_LOSS.search(text)):
                said[text[:_COMPLAINT_SHOWN]] = None
    return tuple(f"the profiler said: {text!r}" for text in list(said)[:_MOST_COMPLAINTS])


def left_out(db: Database, found: Events, places: Sequence[Place]) -> tuple[str, ...]:
    """Sentences about host rows of processes without a trace, and about device tables that are not known here."""
    told = []
    elsewhere = ~np.isin(found.process, [process for process, _ in places])
    if elsewhere.any():
        count = len(np.unique(found.process[elsewhere]))
        told.append(
            f"{int(elsewhere.sum()):,} API calls and ranges of {count} process{'es' if count > 1 else ''} without "
            "device events were left out"
        )
    unknown = [
        name[len(_PREFIX) :][:_SHOWN]
        for name in sorted(db.tables)
        if name.startswith(_PREFIX) and _VERSION.sub("", name) not in _KNOWN and db.has_rows(name)
    ]
    if unknown:
        told.append(f"tables of activities that are not known here were left out: {', '.join(unknown[:5])}")
    return tuple(told)
