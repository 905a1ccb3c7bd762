"""`shardwise eval` for people: errors, sweeps, memory and hit rates as tables, with what was left out and why."""

from collections.abc import Callable, Sequence
from itertools import groupby

from rich.console import Console

from agents.evaluation.reports import (
    AccuracyReport,
    MemoryFigures,
    Rate,
    Reason,
    Stratum,
    SweepFigures,
    TopkReport,
)
from app.tables_folds import ERROR_HEADERS, NOTHING, error_cells, show_folds
from app.tables_parts import LEFT, RIGHT, bullets, console, heading, paragraph, section, table
from app.wording import UNKNOWN, change, number, percent, plain

# slices that say the same as another one are left to the document
SHOWN_SLICES = (
    "source",
    "framework",
    "source, framework",
    "chip",
    "framework, chip",
    "phase",
    "stratum",
    "target",
    "model",
    "framework, model",
    "newest: framework, model",
)


def show_accuracy(report: AccuracyReport) -> None:
    """`shardwise eval accuracy`."""
    out = console()
    heading(
        out,
        f"{report.n_modelled} of {report.n_given} rows modelled: {report.n_suspect} suspect, {report.n_ineligible} not "
        f"eligible, {report.n_refused} refused ({percent(report.refused_share)} of the rest)",
    )
    paragraph(
        out,
        "error: projected / measured step time - 1; in interval: share measured inside the 80 % interval; width: its "
        "median width over the projection",
    )
    section(out, "Step time")
    rows = [
        ("all rows", *error_cells(report.all_rows)),
        ("newest release of each workload", *error_cells(report.newest)),
        ("rows with nothing assumed", *error_cells(report.nothing_assumed)),
    ]
    out.print(table(("rows", *ERROR_HEADERS), rows, (LEFT, *(RIGHT,) * len(ERROR_HEADERS))))
    if report.assumed:
        knobs = ", ".join(f"{name} in {count}" for name, count in report.assumed.items())
        paragraph(out, f"left open and assumed, the fastest value that fits: {knobs} rows")
    _show_slices(out, report)
    _show_sweeps(out, "Ranking inside sweeps of one source and release", report.sweeps)
    _show_sweeps(
        out, "Workloads that mix sources or releases: software progress beside configuration", report.mixed_sweeps
    )
    _show_memory(out, report.memory)
    if report.folds is not None:
        show_folds(out, report.folds)
    show_reasons(out, "Suspect, not in any error figure", report.suspects)
    show_reasons(out, "Not eligible", report.ineligible)
    show_reasons(out, "Refused", report.refusals)
    show_reasons(out, "Ran although our rules call the layout illegal (projected all the same)", report.broken_rules)


def show_topk(report: TopkReport) -> None:
    """`shardwise eval topk`."""
    out = console()
    heading(out, f"{report.n} workloads of phase {report.phase}, framework {report.framework}")
    show_strata(out, report, "Hits of the projector alone, with 95 % Wilson intervals")
    paragraph(out, f"legal share of the proposals: {percent(report.legal_share)}")
    for detail in report.details:
        paragraph(out, f"of the hits whose row prints {detail.field}, the plan agrees in {rate_text(detail.rate)}")
    show_reasons(out, "Not planned, counted as missed", report.refusals)
    bullets(out, "How to read this", report.notes)


def show_strata(out: Console, report: TopkReport, title_of_hits: str) -> None:
    """Hits, strict hits and baselines by stratum, each workload once and each layout key once."""
    for title, headers, cells in TOPK_TABLES:
        section(out, title or title_of_hits)
        rows = [(plain(one.stratum), one.weighted_by, *cells(one)) for one in report.strata]
        out.print(table(("stratum", "each", *headers), rows, (LEFT, LEFT, *(RIGHT,) * len(headers))))


def _hit_cells(one: Stratum) -> tuple[str, ...]:
    rates = (one.top1, one.top3, one.tolerant, one.tolerant_2)
    return (str(one.n), str(one.n_ranked), *(rate_text(rate) for rate in rates))


def _standing_cells(one: Stratum) -> tuple[str, ...]:
    return (
        rate_text(one.top1_strict),
        rate_text(one.top3_strict),
        _number(one.flatness),
        _number(one.median_rank),
        str(one.outside),
        str(one.too_large),
    )


def _baseline_cells(one: Stratum) -> tuple[str, ...]:
    return (
        percent(one.baseline_common_top1.rate),
        rate_text(one.baseline_common_top3),
        percent(one.baseline_common_in_sample_top3.rate),
        percent(one.baseline_same_model_top1.rate),
        rate_text(one.baseline_same_model_top3),
    )


TOPK_TABLES: tuple[tuple[str, tuple[str, ...], Callable[[Stratum], tuple[str, ...]]], ...] = (
    (
        "",
        ("n", "ranked", "top-1", "top-3", "tolerant", "within 2 %"),
        _hit_cells,
    ),
    (
        "Strict hits (fsdp and zero_stage too, where printed), and where the adopted layout stands",
        ("top-1", "top-3", "flatness", "median rank", "outside", "too large"),
        _standing_cells,
    ),
    (
        "Baselines that need no model",
        ("common, top-1", "common, top-3", "nothing left out", "same model, top-1", "same model, top-3"),
        _baseline_cells,
    ),
)


def _show_slices(out: Console, report: AccuracyReport) -> None:
    for by, members in groupby(report.slices, key=lambda one: one.by):
        if by not in SHOWN_SLICES:
            continue
        section(out, f"By {by}")
        rows = [
            (
                plain(one.value) or UNKNOWN,
                f"{one.n_modelled} of {one.n_given}",
                str(one.n_suspect),
                *error_cells(one.errors),
            )
            for one in members
        ]
        headers = (by, "modelled", "suspect", *ERROR_HEADERS)
        out.print(table(headers, rows, (LEFT, *(RIGHT,) * (len(ERROR_HEADERS) + 2))))


def _show_sweeps(out: Console, title: str, sweeps: Sequence[SweepFigures]) -> None:
    if not sweeps:
        return
    section(out, title)
    rows = [
        (
            plain(one.value),
            str(one.groups),
            str(one.rows),
            str(one.pairs),
            str(one.tied_pairs),
            percent(one.order_accuracy) if one.pairs else NOTHING,
            f"{percent(one.top1_regret)} / {percent(one.top1_regret_worst)}",
            f"{percent(one.top3_regret)} / {percent(one.top3_regret_worst)}",
            NOTHING if one.spearman is None else f"{one.spearman:.2f}",
        )
        for one in sweeps
    ]
    headers = ("source", "groups", "rows", "pairs", "ties", "right order", "top-1 regret", "top-3 regret", "rho")
    out.print(table(headers, rows, (LEFT, *(RIGHT,) * 8)))
    paragraph(out, "pairs that differ by more than 5 %; regret: mean over groups / worst; rho: mean rank correlation")


def _show_memory(out: Console, memory: Sequence[MemoryFigures]) -> None:
    section(out, "Memory, and what is called out of memory")
    rows = [
        (
            plain(one.value),
            str(one.n),
            percent(one.mape) if one.n else NOTHING,
            percent(one.median_error) if one.n else NOTHING,
            change(one.bias) if one.n else NOTHING,
            f"{one.ran_called_too_large} of {one.ran}",
            f"{one.out_of_memory_flagged} of {one.out_of_memory}",
        )
        for one in memory
    ]
    headers = ("source", "n", "MAPE", "median", "bias", "ran, called too large", "out of memory, flagged")
    out.print(table(headers, rows, (LEFT, *(RIGHT,) * 6)))


def show_reasons(out: Console, title: str, found: Sequence[Reason]) -> None:
    """What was left out, and how often for which reason."""
    bullets(out, title, [f"{one.n} x {one.reason}{_ids(one.ids)}" for one in found])


def _ids(ids: Sequence[str]) -> str:
    return f" [{', '.join(ids)}]" if ids else ""


def rate_text(one: Rate) -> str:
    """A rate with its interval, in per cent."""
    if one.rate is None or one.low is None or one.high is None:
        return NOTHING
    return f"{100 * one.rate:.1f} % ({100 * one.low:.0f}-{100 * one.high:.0f})"


def _number(value: float | None) -> str:
    return NOTHING if value is None else number(value)
