"""A summary's work beside a chip: fractions of its peaks, what limits each kind of kernel, and what cannot be right.

Fractions are of datasheet peaks. What limits a call is decided by the rates that large kernels reach on the chip, the
peaks times the chip's calibrated efficiencies, since no kernel reaches the datasheet:

    compute   FLOP / (peak e) is the longer time        e: of a GEMM, or of attention
    memory    bytes / (bandwidth e) is
    latency   even the longer is below the floor of its kernels (calibration.kernel_floor_s each): neither roof is
              within reach, the time is what a kernel takes to start and end
    unknown   the work is not known, or the figures are implausible

The kinds' bound is the one most of its time is in, if limits are known for half of its time. A call is implausible
above 105 % of a peak (5 % for clocks above the datasheet's and times rounded to microseconds). Of memory that holds for
calls that touch 256 MiB or more, the largest last-level cache there is; smaller ones may find their data in a cache,
and only four times the peak, more than caches give, is implausible. A kind more than a twentieth of whose known time is
implausible keeps its fractions and decides nothing.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from projector.breakdown import OperatorKind
from projector.specs.hardware import HardwareProfile
from projector.units import ns_to_s
from traces.measure_types import ClassWork
from traces.summary_types import TraceSummary
from traces.work.element_types import Format
from traces.work.roofs import Roofs
from traces.work_types import Bound, BoundTime, OperatorWork

ABOVE_PEAK: Final = 1.05
ABOVE_PEAK_CACHED: Final = 4.0
CACHE_BYTES: Final = 256 * 2**20
_IMPLAUSIBLE_SHARE: Final = 0.05
_KNOWN_SHARE: Final = 0.5
_NAMED_SHARE: Final = 0.05


def place_work(summary: TraceSummary, hardware: HardwareProfile | None) -> TraceSummary:
    """The summary with the peak-relative fields of its work filled in, by the rules of this module.

    With None they are as `summarise` left them: no claim.
    """
    roofs = None if hardware is None else Roofs(hardware)
    return summary.model_copy(update={"work": tuple(placed_class(one, roofs) for one in summary.work)})


def placed_class(work: ClassWork, roofs: Roofs | None) -> ClassWork:
    """One kind beside the roofs. Its share of the peak is the mean over its products, by time."""
    operators = tuple(placed_operator(work.kind, one, roofs) for one in work.operators)
    groups = (*operators, *(placed_operator(work.kind, one, roofs) for one in _rest(work)))
    implausible = _implausible(work, groups)
    bounds = _bounds(work, () if implausible else groups) if roofs is not None else ()
    return work.model_copy(
        update={
            "operators": operators,
            "bound": _most(bounds, work.total_ns),
            "bounds": bounds,
            "peak": roofs.described(_formats_run(work, groups, roofs)) if roofs and groups else "",
            "peak_flop_frac": _mean_flop_frac(groups),
            "peak_bytes_frac": _bytes_frac(work.moved_bytes, work.known_ns, roofs),
            "implausible": implausible,
        }
    )


def placed_operator(kind: OperatorKind, one: OperatorWork, roofs: Roofs | None) -> OperatorWork:
    """Calls alike beside the roofs."""
    if roofs is None:
        unplaced = {"bound": "unknown", "peak_flop_frac": None, "peak_bytes_frac": None, "implausible": ""}
        return one.model_copy(update=unplaced)
    run_as = run_format(one, roofs)
    flop_frac = _flop_frac(one, run_as, roofs)
    bytes_frac = _bytes_frac(one.moved_bytes * one.calls, one.total_ns, roofs)
    told = _too_fast(one, run_as, flop_frac, bytes_frac, roofs)
    return one.model_copy(
        update={
            "bound": "unknown" if told else _bound(kind, one, run_as, roofs),
            "peak_flop_frac": flop_frac,
            "peak_bytes_frac": bytes_frac,
            "implausible": told,
        }
    )


def run_format(one: OperatorWork, roofs: Roofs) -> Format:
    """The format the products ran in: fp32 beyond the fp32 peak is TF32, where that is within its peak.

    The profiler writes the type of the tensors, not the mode of the matrix unit.
    """
    if one.format != "fp32" or (_flop_frac(one, "fp32", roofs) or 0.0) <= ABOVE_PEAK:
        return one.format
    frac = _flop_frac(one, "tf32", roofs)
    return "tf32" if frac is not None and frac <= ABOVE_PEAK else "fp32"


def _formats_run(work: ClassWork, groups: Sequence[OperatorWork], roofs: Roofs) -> list[Format]:
    """Formats of at least a twentieth of the known time, the costliest first."""
    times: dict[Format, int] = defaultdict(int)
    for one in groups:
        times[run_format(one, roofs)] += one.total_ns
    return sorted((one for one in times if times[one] >= _NAMED_SHARE * work.known_ns), key=lambda one: -times[one])


def _bound(kind: OperatorKind, one: OperatorWork, run_as: Format, roofs: Roofs) -> Bound:
    flop_s, bytes_s = roofs.attainable_s(kind, run_as, one.flop, one.moved_bytes)
    if max(flop_s, bytes_s) < one.kernels / one.calls * roofs.kernel_floor_s:
        return "latency"
    return "compute" if flop_s > bytes_s else "memory"


def _too_fast(
    one: OperatorWork, run_as: Format, flop_frac: float | None, bytes_frac: float | None, roofs: Roofs
) -> str:
    told = []
    peak = roofs.peak(run_as)
    if flop_frac is not None and flop_frac > ABOVE_PEAK and peak is not None:
        told.append(f"{flop_frac:.3g} times the {peak.label} peak of {roofs.hardware.id}")
    limit = ABOVE_PEAK if one.moved_bytes >= CACHE_BYTES else ABOVE_PEAK_CACHED
    if bytes_frac is not None and bytes_frac > limit:
        told.append(f"{bytes_frac:.3g} times the memory bandwidth of {roofs.hardware.id}")
    return " and ".join(told) + (f"; assumed: {one.assumed}" if told and one.assumed else "")


def _implausible(work: ClassWork, groups: Sequence[OperatorWork]) -> str:
    """What is wrong with most of what is wrong, if that is more than a twentieth of the known time."""
    wrong = [one for one in groups if one.implausible]
    wrong_ns = sum(one.total_ns for one in wrong)
    if not wrong or wrong_ns <= _IMPLAUSIBLE_SHARE * work.known_ns:
        return ""
    worst = max(wrong, key=lambda one: one.total_ns)
    named = f"{worst.operator[:80]} {worst.shapes}".strip()
    return f"{named} would run at {worst.implausible} ({wrong_ns / work.known_ns:.0%} of the known time is implausible)"


def _bounds(work: ClassWork, groups: Sequence[OperatorWork]) -> tuple[BoundTime, ...]:
    """All of the kind's time by what limits it, the longest first."""
    times: dict[Bound, int] = defaultdict(int)
    for one in groups:
        times[one.bound] += one.total_ns
    times["unknown"] += work.total_ns - sum(times.values())
    ordered = sorted(times.items(), key=lambda item: (-item[1], item[0]))
    return tuple(BoundTime(bound=bound, total_ns=total_ns) for bound, total_ns in ordered if total_ns)


def _most(bounds: Sequence[BoundTime], total_ns: int) -> Bound:
    known = [one for one in bounds if one.bound != "unknown"]
    if not known or sum(one.total_ns for one in known) < _KNOWN_SHARE * total_ns:
        return "unknown"
    return known[0].bound


def _rest(work: ClassWork) -> list[OperatorWork]:
    """What each format holds beyond the listed operators, as mean calls."""
    found = []
    for one in work.formats:
        listed = [operator for operator in work.operators if operator.format == one.format]
        calls = one.calls - sum(operator.calls for operator in listed)
        if calls <= 0:
            continue
        flop = None if one.flop is None else one.flop - sum((each.flop or 0) * each.calls for each in listed)
        moved = one.moved_bytes - sum(each.moved_bytes * each.calls for each in listed)
        found.append(
            OperatorWork(
                operator="other operators",
                shapes="",
                format=one.format,
                calls=calls,
                kernels=max(one.kernels - sum(each.kernels for each in listed), 1),
                total_ns=one.known_ns - sum(each.total_ns for each in listed),
                flop=None if flop is None else flop // calls,
                moved_bytes=moved // calls,
            )
        )
    return found


def _flop_frac(one: OperatorWork, run_as: Format, roofs: Roofs) -> float | None:
    """FLOP/s over the peak; None without FLOP, without a peak, and for vector arithmetic."""
    peak = roofs.peak(run_as)
    if peak is None or one.flop is None or not one.total_ns:
        return None
    return one.flop * one.calls / ns_to_s(one.total_ns) / peak.flop_per_s


def _mean_flop_frac(groups: Sequence[OperatorWork]) -> float | None:
    """Mean over the products by time; None without any, or where one has none."""
    products = [one for one in groups if one.format != "vector" and one.total_ns]
    known = [(one.peak_flop_frac, one.total_ns) for one in products if one.peak_flop_frac is not None]
    if not known or len(known) < len(products):
        return None
    return sum(frac * total_ns for frac, total_ns in known) / sum(total_ns for _, total_ns in known)


def _bytes_frac(moved_bytes: int | None, known_ns: int, roofs: Roofs | None) -> float | None:
    if roofs is None or moved_bytes is None or not known_ns:
        return None
    return moved_bytes / ns_to_s(known_ns) / roofs.bytes_per_s
