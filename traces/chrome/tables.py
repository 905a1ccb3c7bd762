"""Collects batches of events into columns, and notes what stands beside single rows."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from itertools import count as numbers_from_zero
from typing import Any, Final

from traces.chrome.arguments import collective_args, op_inputs
from traces.chrome.categories import ROW_GROUPS, Group
from traces.chrome.fields import (
    UNSTATED,
    CallArgs,
    CallEvent,
    CollectiveFields,
    DeviceArgs,
    DeviceEvent,
    MemoryEvent,
    Number,
    OpArgs,
    OpEvent,
    whole,
)
from traces.chrome.lanes import Batch
from traces.chrome.staging import Staging
from traces.trace import ABSENT, Category, CollectiveArgs, OpInputs
from traces.work.table import formula_of

RowArgs = OpArgs | CallArgs | DeviceArgs

_NO_ARGS: Final[Mapping[Group, Any]] = {Group.OPS: OpArgs(), Group.CALLS: CallArgs(), Group.DEVICE: DeviceArgs()}
_MEMORY: Final = "[memory]"
_DEVICE_MEMORY_TYPES: Final = (1, 20)  # c10::DeviceType: CUDA (ROCm reports itself so), PrivateUse1

INPUTS_KEPT: Final = re.compile(
    r"linear|mm\b|matmul|gemm|embedding|attention|attn|mha|norm|rotary|rope|cache|moe|expert|topk|split_with_sizes|conv"
    r"|softmax|record_param_comms|c10d|symm_mem|nccl|gloo|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all",
    re.IGNORECASE,
)
"""Operators whose inputs are kept, besides those with a formula of their work: what tells sizes of model and mesh."""


class Numbered(dict[Any, int]):
    """Numbers things in the order in which they are first asked for, and lists them in `fresh`."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self.fresh: list[Any] = []
        self._numbers = numbers

    def __missing__(self, key: Any) -> int:
        number = self[key] = next(self._numbers)
        self.fresh.append(key)
        return number


class Tables:
    """Growing columns and notes.

    counts, unknown, unpaired, odd, memory   of all events so far
    names, threads                           what their columns number; threads by process
    collectives, inputs, flop, copy_kinds    by group: rows within the group, and what they have
    """

    def __init__(self) -> None:
        self.staging = Staging()
        self.counts: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self.unpaired = self.odd = 0
        self.memory: dict[int, int] = {}
        self.names = Numbered(numbers_from_zero())
        self.threads: dict[Number, Numbered] = {}
        self.collectives: dict[Group, dict[int, CollectiveArgs]] = {Group.OPS: {}, Group.DEVICE: {}}
        self.inputs: dict[int, OpInputs] = {}
        self.flop: dict[int, int] = {}
        self.copy_kinds: dict[int, str] = {}
        self._thread_numbered = numbers_from_zero()
        self._wanted = bytearray()
        self._inputs_of: dict[tuple[bytes, bytes, bytes, bytes], OpInputs] = {}
        self._kind_of: dict[str, str] = {}

    @property
    def kept(self) -> int:
        """Events that became rows, before their times are checked."""
        return self.staging.length.total()

    def add(self, batch: Batch) -> None:
        """Count the events of a batch and keep the rows among them."""
        self.odd += batch.odd
        for kind, count in batch.kinds.items():
            self.counts[kind.counted] += count
            if kind.unknown:
                self.unknown[kind.counted] += count
            if kind.unpaired:
                self.unpaired += count
        for group in ROW_GROUPS:
            if events := batch.events.get(group):
                self._add_rows(group, events, batch.categories[group])
        for event in batch.events.get(Group.MEMORY, ()):
            self._note_memory(event)

    def _add_rows(self, group: Group, events: list[Any], categories: bytes) -> None:
        """The columns that all groups have, and those of the group."""
        no_args = _NO_ARGS[group]
        args = [event.args or no_args for event in events]
        names = [self.names[event.name] for event in events]
        staging = self.staging
        staging.starts[group].extend([event.ts for event in events])
        staging.durations[group].extend([event.dur for event in events])
        staging.categories[group] += categories
        staging.extend(group, "name", names)
        staging.extend(group, "external_id", _external_ids(args))
        if group is Group.OPS:
            staging.extend(group, "record_id", [one.record_id for one in args])
            self._note_inputs(args, names)
            self._note_flop(args)
        else:
            staging.extend(group, "correlation", [one.correlation for one in args])
            staging.extend(group, "size", [one.size_bytes for one in args])
        if group is Group.DEVICE:
            staging.extend(group, "device", _or_of_event([one.device for one in args], events, "pid"))
            staging.extend(group, "stream", _or_of_event([one.stream for one in args], events, "tid"))
            self._note_copies(args, categories)
        else:
            staging.extend(group, "thread", self._thread_numbers(events))
        if group is not Group.CALLS:
            self._note_collectives(group, args)
        staging.length[group] += len(events)

    def _thread_numbers(self, events: Sequence[OpEvent | CallEvent]) -> list[int]:
        processes = [event.pid for event in events]
        for process in set(processes) - self.threads.keys():
            self.threads[process] = Numbered(self._thread_numbered)
        if len(set(processes)) > 1:
            return [self.threads[event.pid][event.tid] for event in events]
        threads = self.threads[processes[0]]
        return [threads[event.tid] for event in events]

    def _note_collectives(self, group: Group, args: Sequence[CollectiveFields]) -> None:
        named = [one.collective for one in args]
        if named.count(None) < len(named):
            first = self.staging.length[group]
            found = ((first + row, args[row]) for row, name in enumerate(named) if name is not None)
            self.collectives[group].update((row, collective_args(one)) for row, one in found)

    def _note_inputs(self, args: Sequence[OpArgs], names: list[int]) -> None:
        """Inputs of operators that tell sizes."""
        if len(self._wanted) < len(self.names):
            self._wanted += bytes(map(_wants_inputs, self.names.fresh))
            self.names.fresh.clear()
        first = self.staging.length[Group.OPS]
        for row in compress(range(len(names)), map(self._wanted.__getitem__, names)):
            if bytes(args[row].dims):
                self.inputs[first + row] = self._op_inputs(args[row])

    def _note_flop(self, args: Sequence[OpArgs]) -> None:
        written = [one.flop for one in args]
        if written.count(UNSTATED) < len(written):
            first = self.staging.length[Group.OPS]
            found = ((first + row, whole(flop)) for row, flop in enumerate(written) if flop != UNSTATED)
            self.flop.update((row, flop) for row, flop in found if flop != ABSENT)

    def _op_inputs(self, args: OpArgs) -> OpInputs:
        key = (bytes(args.dims), bytes(args.types), bytes(args.values), bytes(args.strides))
        found = self._inputs_of.get(key)
        if found is None:
            found = self._inputs_of[key] = op_inputs(*key)
        return found

    def _note_copies(self, args: Sequence[DeviceArgs], categories: bytes) -> None:
        """Directions of copies whose arguments state them."""
        first = self.staging.length[Group.DEVICE]
        for row, category in enumerate(categories) if Category.MEMCPY in categories else ():
            kind = args[row].kind
            if category == Category.MEMCPY and isinstance(kind, str) and kind:
                self.copy_kinds[first + row] = self._kind_of.setdefault(kind, kind)

    def _note_memory(self, event: MemoryEvent) -> None:
        if event.name != _MEMORY or event.args is None:
            return
        allocated, device = whole(event.args.total_allocated), whole(event.args.device_id)
        if whole(event.args.device_type) in _DEVICE_MEMORY_TYPES and allocated > self.memory.get(device, 0):
            self.memory[device] = allocated


def _wants_inputs(name: str) -> bool:
    return INPUTS_KEPT.search(name) is not None or formula_of(name) is not None


def _external_ids(args: Sequence[RowArgs]) -> list[Number]:
    """External ids; files of 2021 write the key in lower case."""
    written = [one.external_id for one in args]
    if UNSTATED in written:
        lower = [one.external_id_2021 for one in args]
        if lower.count(UNSTATED) < len(lower):
            return [other if one == UNSTATED else one for one, other in zip(written, lower, strict=True)]
    return written


def _or_of_event(written: list[Number], events: Sequence[DeviceEvent], elsewhere: str) -> list[Number]:
    """The arguments, or where one is not stated the event's own pid or tid: all that old and thinned files have."""
    if UNSTATED not in written:
        return written
    return [
        whole(getattr(event, elsewhere)) if one == UNSTATED else one for one, event in zip(written, events, strict=True)
    ]
