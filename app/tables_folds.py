"""`shardwise eval accuracy --folds` for people: figures without a row's own group, and what every constant is."""

from collections import defaultdict
from collections.abc import Sequence

from rich.console import Console

from agents.evaluation.reports import Constant, ErrorFigures, Folds
from app.tables_parts import LEFT, RIGHT, bullets, paragraph, section, table
from app.wording import change, number, percent

NOTHING = "-"
ERROR_HEADERS = ("n", "MAPE", "median", "bias", "in interval", "width")


def show_folds(out: Console, folds: Folds) -> None:
    """Figures by fold, parameters, checks of the linear form, classes of intervals, constants with their sources."""
    section(out, "In-sample or not")
    paragraph(out, folds.statement)
    _show(out, ("constants", *ERROR_HEADERS, "right order", "top-1 regret"), _figures(folds))
    section(out, "Fitted parameters, all together, and the rows that bear on each")
    _show(
        out, ("parameter", "prior", "in use", "fitted", "rows", "groups", "prior from"), _parameters(folds), last=LEFT
    )
    section(out, "The linear form against projections with the fold's own values")
    headers = ("group left out", "rows", "MAPE, linear", "MAPE, projected", "median difference", "largest")
    _show(out, headers, _checks(folds))
    section(out, "Measured over projected, own group left out, by class of interval")
    _show(out, ("class", "runs", "factors in use", "10 to 90 %", "inside"), _intervals(folds))
    section(out, "Calibration constants of these chips and software presets, and what they rest on")
    headers = ("constant", "value", "basis", "on", "rows", "groups")
    out.print(table(headers, _constants(folds), (LEFT, RIGHT, LEFT, LEFT, RIGHT, RIGHT)))
    bullets(out, "Sources of calibration", [f"{chip}: {source}" for chip, source in folds.sources.items()])


def error_cells(figures: ErrorFigures) -> tuple[str, ...]:
    """The cells below ERROR_HEADERS."""
    if figures.n == 0:
        return ("0", *(NOTHING,) * (len(ERROR_HEADERS) - 1))
    return (
        str(figures.n),
        percent(figures.mape),
        percent(figures.median_error),
        change(figures.bias),
        percent(figures.coverage_80),
        percent(figures.width_80),
    )


def _show(out: Console, headers: tuple[str, ...], rows: Sequence[tuple[str, ...]], last: str = RIGHT) -> None:
    out.print(table(headers, list(rows), (LEFT, *(RIGHT,) * (len(headers) - 2), last)))


def _figures(folds: Folds) -> list[tuple[str, ...]]:
    return [
        (
            one.name,
            *error_cells(one.errors),
            percent(one.order_accuracy),
            f"{percent(one.top1_regret)} / {percent(one.top1_regret_worst)}",
        )
        for one in folds.figures
    ]


def _parameters(folds: Folds) -> list[tuple[str, ...]]:
    return [
        (
            one.name,
            number(one.prior),
            number(one.present),
            number(one.fitted),
            str(one.rows),
            str(one.groups),
            one.basis,
        )
        for one in folds.parameters
    ]


def _checks(folds: Folds) -> list[tuple[str, ...]]:
    return [
        (
            one.group,
            str(one.rows),
            percent(one.linear_mape),
            percent(one.projected_mape),
            percent(one.median_difference),
            percent(one.largest_difference),
        )
        for one in folds.checks
    ]


def _intervals(folds: Folds) -> list[tuple[str, ...]]:
    return [
        (
            one.name,
            str(one.runs),
            f"{one.low_factor:.2f} to {one.high_factor:.2f}",
            f"{one.ratio_10:.3f} to {one.ratio_90:.3f}",
            percent(one.coverage_80),
        )
        for one in folds.intervals
    ]


def _constants(folds: Folds) -> list[tuple[str, ...]]:
    shared: dict[tuple[str, str, str], list[Constant]] = defaultdict(list)
    for one in folds.constants:
        shared[one.name, number(one.value), one.basis].append(one)
    return [
        (
            *key,
            ", ".join(one.owner for one in ones),
            str(sum(one.rows for one in ones)),
            str(sum(one.groups for one in ones)),
        )
        for key, ones in sorted(shared.items())
    ]
