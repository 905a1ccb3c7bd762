"""`shardwise eval accuracy` of serving rows for people: errors by model, chip, engine and mode, what was left out."""

from collections.abc import Sequence

from rich.console import Console

from agents.evaluation.reports import Reason
from agents.evaluation.serving_reports import ServingFigures, ServingFolds, ServingReport
from app.tables_parts import LEFT, RIGHT, bullets, console, heading, paragraph, section, table
from app.wording import change, number, percent, plain

METRIC_TITLES = {
    "tpot_s": "TPOT",
    "ttft_s": "TTFT",
    "decode_tokens_per_s_per_chip": "Output tokens/s per chip",
}
HEADERS = ("n", "MAPE", "median", "bias", "rho", "inside", "10 %", "90 %")
BESIDE = ("roofline", "median", "rho")


def show_serving(report: ServingReport) -> None:
    """`shardwise eval accuracy` of serving rows."""
    out = console()
    heading(
        out,
        f"{report.n_modelled} of {report.n_given} serving rows modelled: {report.n_repeated} repetitions, "
        f"{report.n_ineligible} not eligible, {report.n_refused} refused",
    )
    paragraph(
        out,
        "error: projected / measured - 1; inside: share measured inside the 80 % interval; 10 %, 90 %: percentiles of "
        "measured over projected; roofline: mean error of weights and KV of a step read once at 70 % of HBM bandwidth; "
        f"called too large although they ran: {report.too_large}",
    )
    for metric, title in METRIC_TITLES.items():
        found = [one for one in report.figures if one.metric == metric]
        for by in dict.fromkeys(one.by for one in found):
            _show_figures(out, f"{title} by {by}", [one for one in found if one.by == by])
    if report.folds is not None:
        _show_folds(out, report.folds)
    bullets(out, "Taken for granted", [f"{plain(text)}: {count} rows" for text, count in report.assumed.items()])
    _show_reasons(out, "Repetitions", report.repeated)
    _show_reasons(out, "Not eligible", report.ineligible)
    _show_reasons(out, "Refused", report.refusals)


def _show_figures(out: Console, title: str, figures: Sequence[ServingFigures]) -> None:
    section(out, title)
    beside = any(one.roofline_mape is not None for one in figures)
    headers = ("", *HEADERS, *(BESIDE if beside else ()))
    rows = [(plain(one.value), *_cells(one), *(_beside(one) if beside else ())) for one in figures]
    out.print(table(headers, rows, (LEFT, *(RIGHT,) * (len(headers) - 1))))


def _show_folds(out: Console, folds: ServingFolds) -> None:
    section(out, "In-sample or not")
    paragraph(out, folds.statement)
    rows = [
        (
            one.name,
            METRIC_TITLES[one.metric],
            one.kind,
            str(one.n),
            percent(one.mape),
            percent(one.median_error),
            change(one.bias),
        )
        for one in folds.figures
    ]
    out.print(table(("constants", "figure", "models", "n", "MAPE", "median", "bias"), rows, (LEFT,) * 3 + (RIGHT,) * 4))
    section(out, "Fitted parameters, all together, and the rows that bear on each")
    values = [
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
    headers = ("parameter", "prior", "in use", "fitted", "rows", "groups", "prior from")
    out.print(table(headers, values, (LEFT, *(RIGHT,) * 5, LEFT)))
    section(out, "Measured over projected TPOT out of fold, by class of interval")
    classes = [
        (
            one.name,
            str(one.runs),
            f"{one.low_factor:.2f} to {one.high_factor:.2f}",
            f"{one.ratio_10:.2f} to {one.ratio_90:.2f}",
            percent(one.coverage_80),
        )
        for one in folds.intervals
    ]
    out.print(table(("class", "points", "in use", "10 to 90 %", "inside"), classes, (LEFT, *(RIGHT,) * 4)))
    section(out, "TPOT by model, chip, engine, own (family, chip) group left out")
    ranks = [(plain(one.value), *_cells(one), *_beside(one)) for one in folds.ranks]
    out.print(table(("", *HEADERS, *BESIDE), ranks, (LEFT, *(RIGHT,) * (len(HEADERS) + len(BESIDE)))))


def _cells(one: ServingFigures) -> tuple[str, ...]:
    return (
        str(one.n),
        percent(one.mape),
        percent(one.median_error),
        change(one.bias),
        _rho(one.spearman),
        percent(one.coverage_80),
        f"{one.ratio_10:.2f}",
        f"{one.ratio_90:.2f}",
    )


def _beside(one: ServingFigures) -> tuple[str, ...]:
    return (percent(one.roofline_mape), percent(one.roofline_median_error), _rho(one.roofline_spearman))


def _rho(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _show_reasons(out: Console, title: str, reasons: Sequence[Reason]) -> None:
    lines = [f"{one.n}: {plain(one.reason)}{_ids(one)}" for one in reasons]
    if lines:
        bullets(out, title, lines)


def _ids(one: Reason) -> str:
    return f" ({', '.join(plain(name) for name in one.ids)})" if one.ids else ""
