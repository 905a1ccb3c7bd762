"""A GPU plane: kernels and copies by stream. It states no cost, so its op table has times and no efficiencies."""

import re
from collections import Counter
from typing import Final

import numpy as np

from traces.kernel_names import communication_of, is_copy, kind_of
from traces.trace import ABSENT, Category, CollectiveArgs, Ints
from traces.xplane.hlo import OpClass, collective_of
from traces.xplane.nesting import OwnTime
from traces.xplane.planes import Peaks, device_index, stream_index
from traces.xplane.profile import DeviceProfile, Op, measure
from traces.xplane.rows import Rows
from traces.xplane.space import NO_TEXT, Line, Plane, Texts, join

_COPY_NAME: Final = re.compile(r"^(?:memcpy|copy(?:host|device)to)", re.IGNORECASE)
_SET_NAME: Final = re.compile(r"^memset", re.IGNORECASE)
_SIZE: Final = re.compile(r"\b(?:size|num_bytes):(\d{1,18})\b")


def gpu_rows(plane: Plane, rows: Rows) -> tuple[DeviceProfile, Counter[str]] | None:
    """Add the device's rows; its profile, and how often each framework operator ran. None without a stream's event."""
    streams = [line for line in plane.lines if stream_index(line) is not None and len(line)]
    if not streams:
        return None
    titles = rows.name_ids([kind.title for kind in plane.kinds])
    categories = np.array([_category(kind.title) for kind in plane.kinds], dtype=np.int64)
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
            collectives=_collectives(line, categories[line.kind]),
        )
    return _profile(plane, join(streams)), _framework_ops(streams)


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


def _collectives(line: Line, categories: Ints) -> list[CollectiveArgs | None]:
    """Kernels that run a collective HLO operator, whatever the kernel is called (ROCm calls all of them alike)."""
    texts = line.texts.get("hlo_op")
    if texts is None:
        return [None] * len(line)
    named = [CollectiveArgs(name=name) if (name := collective_of(text)) else None for text in texts.values]
    return [
        named[index] if index != NO_TEXT and category == Category.KERNEL else None
        for index, category in zip(texts.ids.tolist(), categories.tolist(), strict=True)
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
    if _category(kernel) is not Category.KERNEL or is_copy(kernel):
        return OpClass("copy")
    collective = collective_of(hlo_op) or communication_of(kernel)
    if collective:
        return OpClass("communication", collective=collective)
    kind = kind_of(kernel)
    return OpClass("compute", kind) if kind is not None else None
