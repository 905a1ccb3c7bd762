"""How far error figures rest on the rows they are printed for: one level a chip and dtype, without a row's own group.

The projector is not refitted here: its constants stand in the chip files and are the same for every row. What can be
said honestly beside that is by how much one free factor a (chip, dtype) would change the figures when it is taken from
the very rows (in-sample), from other (family, chip) groups only, and from other sources only. Where the last two are
close to the figures as projected, the chip files' levels do not lean on the row's own group.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import median

from agents.evaluation.errors import error_figures
from agents.evaluation.reports import Constant, Folds, Level
from agents.evaluation.scored import Scored
from projector.specs.hardware import Calibration, HardwareProfile
from projector.specs.software import Software

FEWEST_ROWS = 3
STATEMENT = (
    "The figures as projected use the constants of the chip files and of the software presets as they stand, so they "
    "are in-sample wherever a constant was chosen on rows given here. No constant is keyed by model, workload or row. "
    "The folds multiply all rows of one chip and dtype by one level, the median of measured over projected time of the "
    "other rows; they show what a recalibration that never saw the row's own (family, chip) group, or its source, "
    "prints, and not what a refit of every constant would."
)
NOT_VALUES = frozenset({"source", "fitted", "assumed"})


def folds(scored: Sequence[Scored]) -> Folds:
    """The folds over the rows that print a speed."""
    timed = [one for one in scored if one.measured_s is not None]
    by_level: dict[tuple[str, str], list[Scored]] = defaultdict(list)
    for one in timed:
        by_level[_level_key(one)].append(one)
    in_sample = _levels(timed, by_level, lambda _: None)
    by_group, by_source = _levels(timed, by_level, _group), _levels(timed, by_level, _source)
    chips = {one.case.hardware.id: one.case.hardware for one in scored}
    return Folds(
        statement=STATEMENT,
        as_projected=error_figures(timed),
        in_sample=error_figures(timed, [level or 1.0 for level in in_sample]),
        leave_group_out=error_figures(timed, [level or 1.0 for level in by_group]),
        leave_source_out=error_figures(timed, [level or 1.0 for level in by_source]),
        corrected_by_group=sum(level is not None for level in by_group),
        corrected_by_source=sum(level is not None for level in by_source),
        levels=tuple(_entry(key, rows) for key, rows in sorted(by_level.items())),
        constants=(
            *(
                constant
                for name, chip in sorted(chips.items())
                for constant in _constants(chip, [one for one in timed if one.case.hardware.id == name])
            ),
            *_of_software(timed),
        ),
        sources={name: chip.calibration.source for name, chip in sorted(chips.items())},
    )


def _level_key(one: Scored) -> tuple[str, str]:
    return (one.case.hardware.id, one.projection.plan.compute_dtype)


def _group(one: Scored) -> str:
    return one.case.row.group


def _source(one: Scored) -> str:
    return one.case.row.source


def _levels(
    timed: Sequence[Scored],
    by_level: dict[tuple[str, str], list[Scored]],
    held_out: Callable[[Scored], str | None],
) -> list[float | None]:
    """For every row the level of the rows of its chip and dtype that differ in what is held out (None: of all)."""
    known: dict[tuple[tuple[str, str], str | None], float | None] = {}
    for one in timed:
        key, out = _level_key(one), held_out(one)
        if (key, out) not in known:
            known[key, out] = _level([other for other in by_level[key] if out is None or held_out(other) != out])
    return [known[_level_key(one), held_out(one)] for one in timed]


def _level(rows: Sequence[Scored]) -> float | None:
    """The factor that would centre the rows; None where they are too few to say."""
    ratios = [one.measured_s / one.projected_s for one in rows if one.measured_s is not None]
    return median(ratios) if len(ratios) >= FEWEST_ROWS else None


def _entry(key: tuple[str, str], rows: Sequence[Scored]) -> Level:
    chip, dtype = key
    groups = len({_group(one) for one in rows})
    ratios = [one.measured_s / one.projected_s for one in rows if one.measured_s is not None]
    return Level(chip=chip, dtype=dtype, rows=len(rows), groups=groups, level=median(ratios))


def _constants(chip: HardwareProfile, rows: Sequence[Scored]) -> tuple[Constant, ...]:
    """Every number of the chip's calibration block; what is not named as assumed rests on the block's source."""
    calibration, groups = chip.calibration, len({_group(one) for one in rows})
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
            groups=len({_group(one) for one in ones}),
        )
        for (name, value), ones in sorted(members.items())
    )
