"""`shardwise eval advice` over before/after cases, for people."""

from agents.evaluation.case_report import CaseReport
from agents.evaluation.reports import Rate
from app.tables_eval import rate_text, show_reasons
from app.tables_folds import NOTHING
from app.tables_parts import LEFT, RIGHT, bullets, console, heading, section, table
from app.wording import plain


def show_cases(report: CaseReport, *, with_ids: bool) -> None:
    """Rates, baselines, and with ids every miss with its reason."""
    out = console()
    heading(out, f"{report.n} cases of {report.n_sources} sources; {report.n_planned} state enough to plan")
    section(out, "Rates with 95 % Wilson intervals")
    rows = [
        (plain(one.name), str(one.by_case.n), rate_text(one.by_case), rate_text(one.by_source), _baseline(one.baseline))
        for one in report.figures
    ]
    out.print(table(("figure", "n", "by case", "by source", "baseline"), rows, (LEFT, *(RIGHT,) * 4)))
    bullets(
        out,
        "Baselines",
        tuple(dict.fromkeys(f"{one.name}: {one.baseline_name}" for one in report.figures if one.baseline_name)),
    )
    if with_ids:
        bullets(out, "Misses", [f"{one.id} ({', '.join(one.missed)}): {one.reason}" for one in report.misses])
    show_reasons(out, "Not read", report.unreadable)
    bullets(out, "How to read this", report.notes)


def _baseline(one: Rate | None) -> str:
    return NOTHING if one is None else rate_text(one)
