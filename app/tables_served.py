"""`shardwise eval topk --phase serving` for people."""

from agents.evaluation.reports_served import DegreesReport, ServedTopkReport, ServedWorkload
from app.tables_eval import rate_text, show_reasons
from app.tables_parts import LEFT, RIGHT, bullets, console, heading, section, table
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
