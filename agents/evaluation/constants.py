"""Every number of the calibration blocks and software presets in use, and what it is said to rest on."""

from collections import defaultdict
from collections.abc import Sequence

from agents.evaluation.reports import Constant
from agents.evaluation.scored import Scored
from projector.specs.hardware import Calibration, HardwareProfile
from projector.specs.software import Software

NOT_VALUES = frozenset({"source", "fitted", "assumed"})


def constants(scored: Sequence[Scored], timed: Sequence[Scored]) -> tuple[Constant, ...]:
    """Those of the chips and stacks of these rows; timed: the rows that print a speed."""
    chips = {one.case.hardware.id: one.case.hardware for one in scored}
    of_chips = (
        constant
        for name, chip in sorted(chips.items())
        for constant in _of_chip(chip, [one for one in timed if one.case.hardware.id == name])
    )
    return (*of_chips, *_of_software(timed))


def _of_chip(chip: HardwareProfile, rows: Sequence[Scored]) -> tuple[Constant, ...]:
    """Every number of the chip's calibration block; what is named neither assumed nor fitted rests on its source."""
    calibration, groups = chip.calibration, len({one.case.row.group for one in rows})
    found = []
    for name in type(calibration).model_fields:
        value = getattr(calibration, name)
        if name not in NOT_VALUES and isinstance(value, int | float) and not isinstance(value, bool):
            found.append(
                Constant(
                    owner=chip.id,
                    name=name,
                    value=float(value),
                    basis=_basis(calibration, name),
                    rows=len(rows),
                    groups=groups,
                )
            )
    return tuple(found)


def _basis(calibration: Calibration, name: str) -> str:
    if name in calibration.assumed:
        return "assumed"
    if name in calibration.fitted:
        return "fitted on published steps"
    stated = name in calibration.model_fields_set
    return "by the chip file's source" if stated else "default of the schema"


def _of_software(timed: Sequence[Scored]) -> tuple[Constant, ...]:
    """Numbers of the software presets in use that differ from those of no stack in particular."""
    usual = Software()
    members: dict[tuple[str, float], list[Scored]] = defaultdict(list)
    for one in timed:
        for name in Software.model_fields:
            value = getattr(one.case.software, name)
            if isinstance(value, int | float) and not isinstance(value, bool) and value != getattr(usual, name):
                members[name, float(value)].append(one)
    return tuple(
        Constant(
            owner="software",
            name=name,
            value=value,
            basis="by the preset",
            rows=len(ones),
            groups=len({one.case.row.group for one in ones}),
        )
        for (name, value), ones in sorted(members.items())
    )
