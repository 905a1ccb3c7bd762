"""Collects events into the columns of a Trace, and drops (counting) those whose times cannot be right."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from traces.chrome.believable import ON_DEVICE, Codes, believable
from traces.chrome.events import Args, Event, Number, whole
from traces.chrome.exact_time import exact_ns
from traces.trace import ABSENT, Category, CollectiveArgs, Ints, Metadata, OpInputs, Trace, moved

# timed events that are no work of a host or device: stacks, the profiler itself, waits
_NO_WORK: Final = frozenset({"python_function", "overhead", "trace", "cuda_sync", "cuda_profiler_range"})
_NAME_SHOWN = 60
_CATEGORIES: Final[Mapping[str, Category]] = {
    "kernel": Category.KERNEL,
    "concurrent_kernel": Category.KERNEL,
    "gpu_memcpy": Category.MEMCPY,
    "memcpy": Category.MEMCPY,
    "gpu_memset": Category.MEMSET,
    "memset": Category.MEMSET,
    "cpu_op": Category.CPU_OP,
    "operator": Category.CPU_OP,
    "user_annotation": Category.ANNOTATION,
    "gpu_user_annotation": Category.DEVICE_ANNOTATION,
    "cuda_runtime": Category.RUNTIME,
    "cuda_driver": Category.RUNTIME,
    "runtime": Category.RUNTIME,
    "xpu_runtime": Category.RUNTIME,
    "xpu_driver": Category.RUNTIME,
    "mtia_runtime": Category.RUNTIME,
    "privateuse1_runtime": Category.RUNTIME,
}
_PHASES: Final = {
    "M": "metadata",
    "i": "instant",
    "I": "instant",
    "C": "counter",
    "s": "flow",
    "t": "flow",
    "f": "flow",
}
_ANNOTATION_NAME: Final = re.compile(r"ProfilerStep#\d|Optimizer\.|enumerate\(DataLoader\)|DistributedDataParallel\.")
_INPUTS_KEPT: Final = re.compile(
    r"linear|mm\b|matmul|gemm|embedding|attention|attn|mha|norm|rotary|rope|cache|moe|expert|split_with_sizes|conv"
    r"|record_param_comms|c10d|symm_mem|nccl|gloo|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all",
    re.IGNORECASE,
)
_DEVICE_MEMORY_TYPES: Final = (1, 20)  # c10::DeviceType: CUDA (ROCm reports itself so), PrivateUse1


class Columns:
    """Growing columns; `add` takes one event, `traces` closes them."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.memory: dict[int, int] = {}
        self.unpaired = 0
        self.unknown: Counter[str] = Counter()
        self._names: dict[str, int] = {}
        self._wants_inputs: list[bool] = []
        self._threads: dict[tuple[Number, Number], int] = {}
        self._starts: list[bytes] = []
        self._durations: list[bytes] = []
        self._category: list[int] = []
        self._name_id: list[int] = []
        self._device: list[Number] = []
        self._stream: list[Number] = []
        self._thread: list[int] = []
        self._correlation: list[Number] = []
        self._external_id: list[Number] = []
        self._size_bytes: list[Number] = []
        self._collectives: dict[int, CollectiveArgs] = {}
        self._inputs: dict[int, OpInputs] = {}
        self._decoded: dict[tuple[bytes, bytes, bytes], OpInputs] = {}

    @property
    def kept(self) -> int:
        """Events that became rows, before their times are checked."""
        return len(self._starts)

    def add(self, event: Event) -> None:
        """Count the event and keep it as a row if it is a timed event of a known category."""
        category = _CATEGORIES.get(event.cat)
        if category is None:
            category = _CATEGORIES.get(event.cat.lower())
        self.counts[event.cat or _PHASES.get(event.ph, "uncategorised")] += 1
        if category is None or event.ph != "X":
            if event.ph == "X" and event.cat and event.cat.lower() not in _NO_WORK:
                self.unknown[event.cat] += 1
            self.unpaired += event.ph in ("B", "E") and category is not None
            if event.name == "[memory]" and event.args is not None:
                self._note_memory(event.args)
            return
        args = event.args or _NO_ARGS
        name_id = self._intern(event.name)
        if args.collective is not None:
            self._collectives[len(self._starts)] = _collective(args)
        if self._wants_inputs[name_id] and bytes(args.dims):
            self._inputs[len(self._starts)] = self._op_inputs(args)
        self._starts.append(bytes(event.ts))
        self._durations.append(bytes(event.dur))
        self._category.append(category)
        self._name_id.append(name_id)
        self._correlation.append(args.correlation)
        self._external_id.append(args.external_id if args.external_id is not None else args.external_id_2021)
        self._size_bytes.append(args.size_bytes)
        self._place(event, args, category in ON_DEVICE)

    def _intern(self, name: str) -> int:
        name_id = self._names.setdefault(name, len(self._names))
        if name_id == len(self._wants_inputs):
            self._wants_inputs.append(_INPUTS_KEPT.search(name) is not None)
        return name_id

    def _place(self, event: Event, args: Args, on_device: bool) -> None:
        """Device, stream, thread. Old and thinned files name device and stream only as pid and tid."""
        if on_device:
            self._device.append(event.pid if args.device is None else args.device)
            self._stream.append(event.tid if args.stream is None else args.stream)
            self._thread.append(ABSENT)
        else:
            self._device.append(None)
            self._stream.append(None)
            self._thread.append(self._threads.setdefault((event.pid, event.tid), len(self._threads)))

    def _note_memory(self, args: Args) -> None:
        allocated, device = whole(args.total_allocated), whole(args.device_id)
        if whole(args.device_type) in _DEVICE_MEMORY_TYPES and allocated > self.memory.get(device, 0):
            self.memory[device] = allocated

    def _op_inputs(self, args: Args) -> OpInputs:
        key = (bytes(args.dims), bytes(args.types), bytes(args.values))
        found = self._decoded.get(key)
        if found is None:
            found = self._decoded[key] = OpInputs(_dims(key[0]), _strings(key[1]), _strings(key[2]))
        return found

    def traces(self, file: str, metadata: Metadata, warnings: tuple[str, ...]) -> tuple[Trace, ...]:
        """One Trace for each device with events, or one of the host where there is none."""
        starts, start_read = exact_ns(self._starts)
        durations, duration_read = exact_ns(self._durations)
        name_id, stream, external_id = (_integers(one) for one in (self._name_id, self._stream, self._external_id))
        category = self._annotations_apart(np.array(self._category, dtype=np.int8), name_id)
        keep, told = believable(starts, durations, start_read, duration_read, category, self._durations)
        if self.unknown:
            listed = ", ".join(f"{count:,} x {name[:_NAME_SHOWN]}" for name, count in self.unknown.most_common(5))
            told += (f"timed events of categories that are not known here were left out: {listed}",)
        if self.unpaired:
            told += (f"{self.unpaired:,} begin/end events were not read; only complete events are",)
        rows = np.flatnonzero(keep)
        order = rows[np.lexsort((stream[rows], category[rows], -durations[rows], starts[rows]))]
        place = np.full(len(starts), ABSENT, dtype=np.int64)
        place[order] = np.arange(len(order))
        trace = Trace(
            format="kineto",
            file=file,
            start_ns=starts[order],
            duration_ns=durations[order],
            category=category[order],
            name_id=name_id[order].astype(np.int32),
            device=_integers(self._device)[order],
            stream=stream[order],
            thread=_integers(self._thread)[order].astype(np.int32),
            correlation=_integers(self._correlation)[order],
            external_id=np.where(external_id == _NO_ID, ABSENT, external_id)[order],
            size_bytes=_integers(self._size_bytes)[order],
            names=tuple(self._names),
            collectives=moved(self._collectives, place),
            inputs=moved(self._inputs, place),
            metadata=metadata,
            memory_high_water_bytes=self.memory,
            event_counts=dict(sorted(self.counts.items())),
            warnings=warnings + told,
        )
        return _by_device(trace)

    def _annotations_apart(self, category: Codes, name_id: Ints) -> Codes:
        """The 2021 schema files step marks and the like under operators: move them to annotations."""
        marks = np.array([_ANNOTATION_NAME.match(name) is not None for name in self._names], dtype=np.bool_)
        if len(category) and marks.any():
            category[marks[name_id] & (category == Category.CPU_OP)] = Category.ANNOTATION
        return category


_NO_ARGS: Final = Args()
_NO_ID = 0  # the profiler's "none"


def _integers(values: Sequence[Number]) -> Ints:
    """A column of integers, ABSENT where none is stated; text and numbers beyond 64 bits are read one by one."""
    try:
        return np.array([ABSENT if value is None else value for value in values], dtype=np.int64)
    except (ValueError, OverflowError):
        return np.array([whole(value) for value in values], dtype=np.int64)


def _collective(args: Args) -> CollectiveArgs:
    size = whole(args.group_size)
    inward, outward = whole(args.in_elements), whole(args.out_elements)
    return CollectiveArgs(
        name=args.collective or "",
        group="" if args.group is None else str(args.group),
        group_description=args.group_description or "",
        group_size=size if size > 0 else None,
        ranks=_ranks(args.group_ranks or ""),
        dtype=args.dtype or "",
        in_elements=inward if inward >= 0 else None,
        out_elements=outward if outward >= 0 else None,
    )


def _ranks(text: str) -> tuple[int, ...]:
    """Ranks of "[0, 1]"; () where the profiler shortened the list."""
    parts = [part.strip() for part in text.strip("[] ").split(",")]
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()


def _dims(text: bytes) -> tuple[tuple[int, ...], ...]:
    """Shapes of the inputs; an input that is a list of tensors, or none, counts as ()."""
    shapes = _json_list(text)
    return tuple(
        tuple(shape) if isinstance(shape, list) and all(type(size) is int for size in shape) else () for shape in shapes
    )


def _strings(text: bytes) -> tuple[str, ...]:
    return tuple(item if isinstance(item, str) else "" for item in _json_list(text))


def _json_list(text: bytes) -> list[Any]:
    try:
        parsed = msgspec.json.decode(text) if text else []
    except msgspec.DecodeError:
        return []
    return parsed if isinstance(parsed, list) else []


def _by_device(trace: Trace) -> tuple[Trace, ...]:
    """Split by device where one process drove several; the host rows go with each."""
    rows = trace.device_rows
    devices = np.unique(trace.device[rows])
    if len(devices) < 2:
        return (trace,)
    host = ~np.isin(trace.category, [int(one) for one in ON_DEVICE])
    return tuple(trace.take(np.flatnonzero(host | (trace.device == device))) for device in devices)
