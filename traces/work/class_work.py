"""Work of one rank by kind of kernel, and the sum over the ranks of a job."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from projector.breakdown import OperatorKind
from traces.launches import is_thinned
from traces.linking import NONE
from traces.measure_types import ClassWork
from traces.naming import KINDS, Classified
from traces.trace import OpInputs, Trace
from traces.work.attribution import Attribution, attribute
from traces.work.element_types import element_of
from traces.work.sums import add_operators, added_classes, class_work, work_sorted
from traces.work.xla import xla_work
from traces.work_types import OperatorWork

BASIS: Final = "operator shapes"
_THINNED: Final = "no kernel of an operator is missing, although most events were removed from the file"
_LONGEST_SHAPES: Final = 160


def work_of(trace: Trace, classified: Classified) -> tuple[ClassWork, ...]:
    """Work of every kind of kernel of one device over the whole file, the costliest kind first; () without kernels.

    From the compiler's costs where the profile has them (`xla_work`), else from the shapes of the operators that
    launched the kernels. A kind without known work is listed with its time, so that what is unknown can be seen.
    """
    if trace.profile is not None and (stated := xla_work(trace.profile)):
        return stated
    found = attribute(trace, classified)
    operators = _operators_by_kind(trace, found)
    assumed = _THINNED if is_thinned(trace, classified.links) else ""
    return work_sorted(
        class_work(
            KINDS[kind],
            operators.get(kind, ()),
            unknown_count=int(unknown.sum()),
            unknown_ns=int(trace.duration_ns[found.rows[unknown]].sum()),
            basis=BASIS,
            assumed=assumed,
        )
        for kind in np.unique(found.kinds).tolist()
        for unknown in [(found.kinds == kind) & (found.call == NONE)]
    )


def merge_work(ranks: Iterable[Sequence[ClassWork]]) -> tuple[ClassWork, ...]:
    """Sums over the ranks of a job, kind by kind; operators with the same inputs are added up."""
    kinds: dict[OperatorKind, list[ClassWork]] = {}
    for rank in ranks:
        for one in rank:
            kinds.setdefault(one.kind, []).append(one)
    return work_sorted(added_classes(same) for same in kinds.values())


def _operators_by_kind(trace: Trace, found: Attribution) -> dict[int, tuple[OperatorWork, ...]]:
    """Known calls of each kind (index into KINDS), calls alike added up."""
    kinds: dict[int, list[OperatorWork]] = {}
    for kind, one in _calls(trace, found):
        kinds.setdefault(kind, []).append(one)
    return {kind: add_operators(operators) for kind, operators in kinds.items()}


def _calls(trace: Trace, found: Attribution) -> Iterator[tuple[int, OperatorWork]]:
    """(kind, operator) for calls alike in kind, name, inputs and work, with the sums of their kernels."""
    known = found.call != NONE
    kernels = np.bincount(found.call[known], minlength=len(found.calls))
    times = np.zeros(len(found.calls), dtype=np.int64)
    np.add.at(times, found.call[known], trace.duration_ns[found.rows[known]])
    kinds = np.zeros(len(found.calls), dtype=np.int64)
    kinds[found.call[known]] = found.kinds[known]
    columns = (found.calls, trace.name_id[found.calls], kinds, kernels, times)
    sums: dict[tuple[int, ...], list[int]] = {}
    for index, (row, name, kind, count, time) in enumerate(zip(*(one.tolist() for one in columns), strict=True)):
        key = (kind, name, id(trace.inputs[row]), id(found.works[index]))
        entry = sums.setdefault(key, [index, 0, 0, 0])
        for place, more in ((1, 1), (2, count), (3, time)):
            entry[place] += more
    for (kind, *_), (index, calls, count, time) in sums.items():
        work, row = found.works[index], int(found.calls[index])
        yield (
            kind,
            OperatorWork(
                operator=trace.name(row),
                shapes=_shapes(trace.inputs[row]),
                format=work.format,
                calls=calls,
                kernels=count,
                total_ns=time,
                flop=work.flop,
                moved_bytes=work.moved_bytes,
                assumed=work.assumed,
            ),
        )


def _shapes(inputs: OpInputs) -> str:
    """Sizes of the tensor inputs, or of the first tensors of a list."""
    shapes = [str(list(shape)) for shape, kind in zip(inputs.dims, inputs.types, strict=False) if element_of(kind)]
    lists = [f"{len(one)} tensors" for one in inputs.lists if one]
    text = " ".join(shapes + lists)
    return text if len(text) <= _LONGEST_SHAPES else text[: _LONGEST_SHAPES - 3] + "..."
