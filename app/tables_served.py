"""`shardwise eval topk --phase serving` and `shardwise eval anchor` of serving rows, for people."""

from agents.evaluation.reports_served import DegreesReport, ServedTopkReport, ServedWorkload
from agents.evaluation.reports_serving_anchor import ServingAnchorReport
from app.tables_eval import rate_text, show_reasons
from app.tables_parts import LEFT, RIGHT, bullets, console, heading, paragraph, section, table
from app.wording import UNKNOWN, percent, plain


def show_served_topk(report: ServedTopkReport) -> None:
    """Hits beside the baselines, and the choice of degrees over measured sweeps."""
    out = console()
    heading(out, f"{report.n} serving workloads")
    section(out, "Hits of the projector alone, with 95 % Wilson intervals")
    rows = [
        (
            one.stratum,
            str(one.n),
            str(one.n_ranked),
            rate_text(one.top1),
            rate_text(one.top3),
            rate_text(one.tolerant),
            UNKNOWN if one.median_rank is None else f"{one.median_rank:g}",
        )
        for one in report.strata
    ]
    headers = ("workloads", "n", "ranked", "top-1", "top-3", "tolerant", "median rank")
    out.print(table(headers, rows, (LEFT, *(RIGHT,) * 6)))
    section(out, "Baselines that need no model")
    names = [one.name for one in report.strata[0].baselines] if report.strata else []
    guesses = [(one.stratum, *(rate_text(baseline.rate) for baseline in one.baselines)) for one in report.strata]
    out.print(table(("workloads", *names), guesses, (LEFT, *(RIGHT,) * len(names))))
    bullets(out, "Every workload", [_line(one) for one in report.workloads])
    show_reasons(out, "Not planned, counted as missed", report.refusals)
    _show_degrees(report.degrees)
    bullets(out, "How to read this", report.notes)


def _line(one: ServedWorkload) -> str:
    return f"{plain(one.workload_id)}: {', '.join(one.adopted)}; proposed {'; '.join(one.proposals) or one.absent}"


def _show_degrees(degrees: DegreesReport) -> None:
    out = console()
    section(out, "Degrees of the most throughput a chip: projected best of a measured sweep against its measured best")
    rows = [
        (
            plain(one.value),
            str(one.right.n),
            rate_text(one.right),
            rate_text(one.near),
            percent(one.smallest.rate),
            str(one.points),
            percent(one.mape),
            percent(one.bias),
        )
        for one in (degrees.total, *degrees.slices)
    ]
    headers = ("sweeps", "n", "right", "within 10 %", "smallest is best", "points", "error", "bias (median)")
    out.print(table(headers, rows, (LEFT, *(RIGHT,) * 7)))
    show_reasons(out, "Sweeps not projected, counted as missed", degrees.refusals)


def show_serving_anchor(report: ServingAnchorReport) -> None:
    """Errors of an engine's other points, without and with one that was measured."""
    out = console()
    heading(
        out,
        f"{report.n_points} points of {report.n_engines} engines, each the measured one once: {report.n_pairs} pairs",
    )
    paragraph(
        out,
        "mean absolute error of an engine's other points, every engine weighing the same (median over pairs in "
        "parentheses): as modelled, and corrected by one measured point; in interval: of TPOT, share measured inside "
        "the corrected 80 % interval",
    )
    rows = [
        (
            one.value,
            str(one.pairs),
            percent(one.tpot_modelled_mape),
            percent(one.tpot_anchored_mape),
            percent(one.tpot_coverage_80),
            f"{percent(one.ttft_modelled_mape)} ({percent(one.ttft_modelled_median)})",
            f"{percent(one.ttft_anchored_mape)} ({percent(one.ttft_anchored_median)})",
        )
        for one in report.by_distance
    ]
    headers = ("differs in", "pairs", "TPOT modelled", "anchored", "in interval", "TTFT modelled", "anchored")
    out.print(table(headers, rows, (LEFT, *(RIGHT,) * 6)))
    show_reasons(out, "Points that nothing is anchored to", report.refused_anchors)
