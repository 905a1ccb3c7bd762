"""Where kernels stand against the chip's roofline, by the work their shapes show: shares for the verdict, evidence."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from agents.findings import Evidence
from agents.wording import percent, quoted
from projector.breakdown import OperatorKind
from projector.units import TERA
from traces.measure_types import ClassWork
from traces.work_types import Bound

MOST_KINDS: Final = 5
LEAST_SHARE: Final = 0.05
KNOWN_SHARE: Final = 0.5
BOUND_WORDS: Final[dict[Bound, str]] = {
    "compute": "bound by arithmetic",
    "memory": "bound by memory bandwidth",
    "latency": "too short to come near either roof",
    "unknown": "of no known limit",
}


@dataclass(frozen=True)
class Limits:
    """Parts of the time of one kind, 0 to 1: limited by arithmetic, by memory, and neither known."""

    arithmetic: float
    memory: float
    open: float


def limits_of(work: tuple[ClassWork, ...], kind: OperatorKind) -> Limits:
    """What the roofline says of a kind. Kernels of unknown work, and those too short for either roof, stay open."""
    one = next((one for one in work if one.kind == kind and one.total_ns > 0), None)
    if one is None:
        return Limits(0.0, 0.0, 1.0)
    times = {bound.bound: bound.total_ns / one.total_ns for bound in one.bounds}
    arithmetic, memory = times.get("compute", 0.0), times.get("memory", 0.0)
    return Limits(arithmetic, memory, max(1.0 - arithmetic - memory, 0.0))


def work_evidence(work: tuple[ClassWork, ...], kinds: Mapping[OperatorKind, float]) -> tuple[Evidence, ...]:
    """A line for each kind that takes a twentieth of kernel time and whose work is mostly known.

    kinds: their shares of the window.
    """
    whole = sum(kinds.values())
    told = [
        one
        for one in work
        if kinds.get(one.kind, 0.0) >= LEAST_SHARE * whole
        and one.known_ns >= max(KNOWN_SHARE * one.total_ns, 1)
        and not one.implausible
    ]
    return tuple(evidence for one in told[:MOST_KINDS] for evidence in _lines(one))


def work_doubts(work: tuple[ClassWork, ...]) -> list[str]:
    """Kinds whose figures cannot be right, as sentences."""
    return [
        f"the figures of kind {one.kind} are implausible and decide nothing: {quoted(one.implausible, 300)}"
        for one in work
        if one.implausible
    ]


def _lines(one: ClassWork) -> Iterator[Evidence]:
    arithmetic, memory = one.peak_flop_frac, one.peak_bytes_frac
    reached = [f"{percent(arithmetic)} of the peak in arithmetic" if arithmetic is not None else ""]
    reached += [f"{percent(memory)} of the peak in memory bandwidth" if memory is not None else ""]
    if not any(reached):
        return
    part = one.known_ns / one.total_ns
    where = "" if part > 0.995 else f", where shapes show their work ({percent(part)} of their time)"
    words = f"Kernels of kind {one.kind} reach {' and '.join(filter(None, reached))}{where}"
    claim = f"{words}: {_rates(one)}; most of their time is in kernels {BOUND_WORDS[one.bound]} ({one.peak})."
    value = arithmetic if one.bound == "compute" and arithmetic is not None else memory
    yield Evidence(
        id=f"ev-work-{one.kind}",
        claim=claim,
        value=value,
        unit="fraction",
        source="measured",
        ref=f"summary.work[kind={one.kind}]",
    )


def _rates(one: ClassWork) -> str:
    told = []
    if one.flop_per_s is not None and one.peak_flop_frac is not None:
        told.append(f"{one.flop_per_s / TERA:.3g} TFLOP/s")
    if one.bytes_per_s is not None:
        told.append(f"{one.bytes_per_s / TERA:.3g} TB/s")
    if one.intensity_flop_per_byte is not None and one.peak_flop_frac is not None:
        told.append(f"{one.intensity_flop_per_byte:,.1f} FLOP/byte")
    return ", ".join(told)
