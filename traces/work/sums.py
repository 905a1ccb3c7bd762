"""ClassWork from operators, and from the ClassWork of several ranks."""

from collections.abc import Iterable, Sequence
from typing import Final

from projector.breakdown import OperatorKind
from projector.units import ns_to_s
from traces.measure_types import ClassWork
from traces.work.element_types import Format
from traces.work_types import FormatWork, OperatorWork

_OPERATORS_LISTED: Final = 12


def class_work(
    kind: OperatorKind,
    operators: Iterable[OperatorWork],
    *,
    unknown_count: int,
    unknown_ns: int,
    basis: str,
    assumed: str = "",
) -> ClassWork:
    """One kind: the sums of its operators and the kernels of unknown work. The costliest operators are listed."""
    added = add_operators(operators)
    formats = _formats(added)
    return _class(
        kind,
        formats,
        added,
        count=unknown_count + sum(one.kernels for one in formats),
        total_ns=unknown_ns + sum(one.known_ns for one in formats),
        basis=basis if formats else "",
        assumed=tuple(sorted(({one.assumed for one in added} | {assumed if added else ""}) - {""})),
    )


def added_classes(same: Sequence[ClassWork]) -> ClassWork:
    """One kind of several ranks, summed. Operators a rank did not list stay in its sums by format."""
    by_format: dict[Format, list[FormatWork]] = {}
    for rank in same:
        for one in rank.formats:
            by_format.setdefault(one.format, []).append(one)
    return _class(
        same[0].kind,
        _costliest_first(_added_formats(formats) for formats in by_format.values()),
        add_operators(operator for rank in same for operator in rank.operators),
        count=sum(rank.count for rank in same),
        total_ns=sum(rank.total_ns for rank in same),
        basis=" and ".join(sorted({rank.basis for rank in same if rank.basis})),
        assumed=tuple(sorted({one for rank in same for one in rank.assumed})),
    )


def add_operators(operators: Iterable[OperatorWork]) -> tuple[OperatorWork, ...]:
    """Calls with the same inputs and work as one, the costliest first."""
    found: dict[tuple[str, str, Format, int | None, int], OperatorWork] = {}
    for one in operators:
        key = (one.operator, one.shapes, one.format, one.flop, one.moved_bytes)
        known = found.get(key)
        found[key] = one if known is None else _added_calls(known, one)
    return tuple(sorted(found.values(), key=lambda one: (-one.total_ns, one.operator, one.shapes, one.moved_bytes)))


def work_sorted(classes: Iterable[ClassWork]) -> tuple[ClassWork, ...]:
    """The costliest kind first."""
    return tuple(sorted(classes, key=lambda one: (-one.total_ns, one.kind)))


def _added_calls(known: OperatorWork, more: OperatorWork) -> OperatorWork:
    sums = {name: getattr(known, name) + getattr(more, name) for name in ("calls", "kernels", "total_ns")}
    return known.model_copy(update=sums)


def _formats(operators: Sequence[OperatorWork]) -> tuple[FormatWork, ...]:
    by_format: dict[Format, list[FormatWork]] = {}
    for one in operators:
        work = FormatWork(
            format=one.format,
            calls=one.calls,
            kernels=one.kernels,
            known_ns=one.total_ns,
            flop=None if one.flop is None else one.flop * one.calls,
            moved_bytes=one.moved_bytes * one.calls,
        )
        by_format.setdefault(one.format, []).append(work)
    return _costliest_first(_added_formats(same) for same in by_format.values())


def _added_formats(same: Sequence[FormatWork]) -> FormatWork:
    return FormatWork(
        format=same[0].format,
        calls=sum(one.calls for one in same),
        kernels=sum(one.kernels for one in same),
        known_ns=sum(one.known_ns for one in same),
        flop=_known_sum([one.flop for one in same]),
        moved_bytes=sum(one.moved_bytes for one in same),
    )


def _costliest_first(formats: Iterable[FormatWork]) -> tuple[FormatWork, ...]:
    return tuple(sorted(formats, key=lambda one: (-one.known_ns, one.format)))


def _class(
    kind: OperatorKind,
    formats: tuple[FormatWork, ...],
    operators: tuple[OperatorWork, ...],
    *,
    count: int,
    total_ns: int,
    basis: str,
    assumed: tuple[str, ...],
) -> ClassWork:
    known_ns = sum(one.known_ns for one in formats)
    flop = _known_sum([one.flop for one in formats])
    moved = sum(one.moved_bytes for one in formats) if formats else None
    seconds = ns_to_s(known_ns)
    return ClassWork(
        kind=kind,
        count=count,
        total_ns=total_ns,
        known_count=sum(one.kernels for one in formats),
        known_ns=known_ns,
        flop=flop,
        moved_bytes=moved,
        flop_per_s=flop / seconds if flop is not None and seconds else None,
        bytes_per_s=moved / seconds if moved is not None and seconds else None,
        intensity_flop_per_byte=flop / moved if flop is not None and moved else None,
        basis=basis,
        assumed=assumed,
        formats=formats,
        operators=operators[:_OPERATORS_LISTED],
    )


def _known_sum(figures: Sequence[int | None]) -> int | None:
    """The sum; None without figures or where one is unknown."""
    known = [one for one in figures if one is not None]
    return sum(known) if known and len(known) == len(figures) else None
