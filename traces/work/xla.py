"""ClassWork out of the costs XLA's compiler states for its operators."""

from collections import defaultdict
from typing import Final

from projector.breakdown import OperatorKind
from traces.measure_types import ClassWork
from traces.work.element_types import Format
from traces.work.sums import class_work, work_sorted
from traces.work_types import OperatorWork
from traces.xplane.hlo import CONTROL
from traces.xplane.profile import DeviceProfile, OpSum

BASIS: Final = "XLA cost analysis"
_PRODUCTS: Final[frozenset[OperatorKind]] = frozenset({"gemm", "attention", "moe"})
_PS_PER_NS: Final = 1000


def xla_work(profile: DeviceProfile) -> tuple[ClassWork, ...]:
    """Work of every kind of operator of one device over its steps; () where the profile costs none.

    Time is an operator's own, without what it contains. Operators that only contain others (loops, calls) are left out,
    their cost is that of what they contain; operators nobody can name are of kind "other" and of unknown work, as are
    custom calls, of which the compiler knows no cost. Bytes are those of HBM. The profile does not state number
    formats.
    """
    operators: dict[OperatorKind, list[OperatorWork]] = defaultdict(list)
    unknown: dict[OperatorKind, list[OpSum]] = defaultdict(list)
    for one in profile.ops:
        op_class = one.op.op_class
        if one.op.category in CONTROL or (op_class is not None and op_class.event_class != "compute"):
            continue
        kind: OperatorKind = "other" if op_class is None or op_class.kind is None else op_class.kind
        work = _operator(one, "unknown" if kind in _PRODUCTS else "vector") if op_class is not None else None
        if work is None:
            unknown[kind].append(one)
        else:
            operators[kind].append(work)
    if not operators:
        return ()
    return work_sorted(
        class_work(
            kind,
            operators.get(kind, ()),
            unknown_count=sum(one.count for one in unknown[kind]),
            unknown_ns=sum(one.own_ps for one in unknown[kind]) // _PS_PER_NS,
            basis=BASIS,
        )
        for kind in {*operators, *unknown}
    )


def _operator(one: OpSum, number_format: Format) -> OperatorWork | None:
    """None without a cost, and for what took no time of its own."""
    if one.cost is None or one.own_ps < _PS_PER_NS:
        return None
    return OperatorWork(
        operator=one.op.name,
        shapes="",
        format=number_format,
        calls=one.count,
        kernels=one.count,
        total_ns=one.own_ps // _PS_PER_NS,
        flop=one.cost.flop // one.count,
        moved_bytes=one.cost.hbm_bytes // one.count,
    )
