"""Provenance of a projection: which figures are of a datasheet, fitted, carried over or assumed, and what binds."""

from projector.breakdown import Provenance, TimeBreakdown
from projector.specs.hardware import Calibration, HardwareProfile

EFFICIENCIES = tuple(name for name in Calibration.model_fields if name not in ("source", "fitted", "assumed"))


def provenance(hardware: HardwareProfile, breakdown: TimeBreakdown) -> Provenance:
    """What the projection of one plan on a chip rests on."""
    calibration, term = hardware.calibration, binding_term(breakdown)
    stated = {name: figure for name, figure in hardware.figures().items() if figure is not None}
    named = set(calibration.fitted) | set(calibration.assumed)
    return Provenance(
        binding=term[0],
        binding_frac=term[1],
        datasheet=tuple(name for name, figure in stated.items() if not figure.unverified),
        unverified=tuple(name for name, figure in stated.items() if figure.unverified),
        measured=tuple(name for name in EFFICIENCIES if name not in named),
        fitted=tuple(name for name, runs in calibration.fitted.items() if runs),
        carried_over=tuple(name for name, runs in calibration.fitted.items() if not runs),
        assumed=tuple(name for name in EFFICIENCIES if name in calibration.assumed),
    )


def binding_term(breakdown: TimeBreakdown) -> tuple[str, float]:
    """(name, share of the step) of the largest: a kind of operator, exposed communication of an axis, copies, idle."""
    terms = {f"{one.kind} compute": one.time_s for one in breakdown.by_kind}
    terms |= {f"{one.axis} communication": one.exposed_s for one in breakdown.by_axis}
    terms |= {"copies": breakdown.exposed_copy_s, "idle": breakdown.idle_s}
    name, longest_s = max(terms.items(), key=lambda term: term[1])
    return name, longest_s / breakdown.total_s if breakdown.total_s else 0.0
