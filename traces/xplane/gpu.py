"""A GPU plane: kernels and copies by stream. It states no cost, so its op table has times and no efficiencies.

Where XLA runs operators as command buffers (CUDA graphs), the profiler may trace a launch as a whole: then the plane
has an event "CudaGraphExec:12" (openxla/xla, xla/backends/profiler/gpu/cupti_buffer_events.cc) in place of kernels, and
nobody says what it computes.
"""

import re
from collections import Counter
from typing import Final

import numpy as np

from traces.kernel_names import communication_of, is_copy, kind_of
from traces.trace import ABSENT, NOT_STATED, UNKNOWN_WORK, Category, CollectiveArgs, Ints, Mask
from traces.xplane.hlo import OpClass, collective_of
from traces.xplane.nesting import OwnTime
from traces.xplane.planes import Peaks, device_index, stream_index
from traces.xplane.profile import DeviceProfile, Op, measure
from traces.xplane.rows import PS_PER_NS, Rows
from traces.xplane.space import NO_TEXT, Line, Plane, Texts, join

_COPY_NAME: Final = re.compile(r"^(?:memcpy|copy(?:host|device)to)", re.IGNORECASE)
_SET_NAME: Final = re.compile(r"^memset", re.IGNORECASE)
_GRAPH_NAME: Final = re.compile(r"^CudaGraphExec:\d")
_SIZE: Final = re.compile(r"\b(?:size|num_bytes):(\d{1,18})\b")


def gpu_rows(plane: Plane, rows: Rows) -> tuple[DeviceProfile, Counter[str], tuple[str, ...]] | None:
    """Add the device's rows; its profile, how often each framework operator ran, warnings. None without an event."""
    streams = [line for line in plane.lines if stream_index(line) is not None and len(line)]
    if not streams:
        return None
    titles = rows.name_ids([kind.title for kind in plane.kinds])
    categories = np.array([_category(kind.title) for kind in plane.kinds], dtype=np.int64)
    graphs = np.array([_GRAPH_NAME.match(kind.title) is not None for kind in plane.kinds], dtype=np.bool_)
    for line in streams:
        rows.add(
            line.begin_ps,
            line.end_ps,
            titles[line.kind],
            categories[line.kind],
            device=device_index(plane),
            stream=stream_index(line) or 0,
            correlation=line.ints.get("correlation_id", ABSENT),
            size_bytes=_sizes(line),
            kind=np.where(graphs[line.kind], UNKNOWN_WORK, NOT_STATED),
            collectives=_collectives(line, (categories[line.kind] == Category.KERNEL) & ~graphs[line.kind]),
        )
    whole = join(streams)
    return _profile(plane, whole), _framework_ops(streams), _graphs_told(whole.where(graphs[whole.kind]))


def _graphs_told(launches: Line) -> tuple[str, ...]:
    if not len(launches):
        return ()
    time_ns = int(launches.duration_ps.sum()) // PS_PER_NS
    return (
        f"{len(launches):,} CUDA graph launches ({time_ns:,} ns) were traced as wholes: the kernels, copies and "
        "collectives inside are hidden, and the time counts as unclassified computation; "
        "profile with XLA_FLAGS=--xla_gpu_enable_command_buffer= to see them",
    )


def _category(name: str) -> Category:
    if _SET_NAME.match(name):
        return Category.MEMSET
    return Category.MEMCPY if _COPY_NAME.match(name) else Category.KERNEL


def _sizes(line: Line) -> Ints | int:
    """Bytes copied, where the details of a copy state them."""
    found = np.full(len(line), ABSENT, dtype=np.int64)
    for texts in line.texts_named("memcpy_details", "memset_details", "Memset_details"):
        matches = [_SIZE.search(text) for text in texts.values]
        sizes = np.array([int(match[1]) if match else ABSENT for match in matches] + [ABSENT], dtype=np.int64)
        found = np.maximum(found, sizes[texts.ids])
    return found


def _collectives(line: Line, kernels: Mask) -> list[CollectiveArgs | None]:
    """Kernels that run a collective HLO operator, whatever the kernel is called (ROCm calls all of them alike)."""
    texts = line.texts.get("hlo_op")
    if texts is None:
        return [None] * len(line)
    named = [CollectiveArgs(name=name) if (name := collective_of(text)) else None for text in texts.values]
    return [
        named[index] if index != NO_TEXT and is_kernel else None
        for index, is_kernel in zip(texts.ids.tolist(), kernels.tolist(), strict=True)
    ]


def _framework_ops(streams: list[Line]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for line in streams:
        texts = line.texts.get("tf_op")
        if texts is not None:
            ids, occurrences = np.unique(texts.ids[texts.ids != NO_TEXT], return_counts=True)
            for index, count in zip(ids.tolist(), occurrences.tolist(), strict=True):
                counts[texts.values[index]] += count
    return counts


def _profile(plane: Plane, line: Line) -> DeviceProfile:
    """Op table by HLO operator and kernel; streams run beside each other, so nothing is nested."""
    hlo = line.texts.get("hlo_op", Texts(np.full(len(line), NO_TEXT), ()))
    keys = line.kind * (len(hlo.values) + 1) + hlo.ids + 1
    distinct, op_ids = np.unique(keys, return_inverse=True)
    ops = []
    for key in distinct.tolist():
        kind, hlo_op = divmod(key, len(hlo.values) + 1)
        ops.append(_op(plane.kinds[kind].title, hlo.values[hlo_op - 1] if hlo_op else ""))
    events = np.arange(len(line))
    own = OwnTime(line, np.stack((line.begin_ps, line.end_ps, events), axis=1), line.duration_ps)
    return measure(own, op_ids.ravel(), ops, np.empty((0, 2), dtype=np.int64), None, Peaks())


def _op(kernel: str, hlo_op: str) -> Op:
    return Op(
        name=hlo_op or kernel,
        long_name=kernel,
        category="",
        program=0,
        framework_op="",
        op_class=_op_class(kernel, hlo_op),
        cost=None,
    )


def _op_class(kernel: str, hlo_op: str) -> OpClass | None:
    if _GRAPH_NAME.match(kernel):
        return None
    if _category(kernel) is not Category.KERNEL or is_copy(kernel):
        return OpClass("copy")
    collective = collective_of(hlo_op) or communication_of(kernel)
    if collective:
        return OpClass("communication", collective=collective)
    kind = kind_of(kernel)
    return OpClass("compute", kind) if kind is not None else None
