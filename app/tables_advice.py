"""`shardwise eval advice` over workloads for people: hit rates, effort, cost, chances against outcomes, ablations."""

from rich.console import Console

from agents.evaluation.reports_advice import AdviceReport
from app.tables_eval import rate_text, show_reasons, show_strata
from app.tables_parts import LEFT, RIGHT, bullets, console, heading, paragraph, section, table
from app.wording import UNKNOWN, percent, plain


def show_advice(report: AdviceReport) -> None:
    """`shardwise eval advice`."""
    out = console()
    left_out = f", without {', '.join(report.ablated)}" if report.ablated else ""
    heading(out, f"{report.n} workloads of phase {report.phase}, framework {report.framework}{left_out}")
    show_strata(out, report, "Hits of the service's proposals, with 95 % Wilson intervals")
    _show_order_only(out, report)
    _show_efforts(out, report)
    _show_confidence(out, report)
    _show_ablations(out, report)
    paragraph(out, f"legal share of the proposals: {percent(report.legal_share)}")
    share = percent(report.refused_ran_share)
    section(out, f"Published layouts that ran and that the gates refuse: {share} of {report.refused_ran_n}")
    bullets(out, "", [f"{one.workload_id}: {one.layout}: {'; '.join(one.rules)}" for one in report.refused_ran])
    show_reasons(out, "Not planned, counted as missed", report.refusals)
    bullets(out, "How to read this", report.notes)


def _show_order_only(out: Console, report: AdviceReport) -> None:
    section(out, "The order of layouts alone, by what its weights have not seen")
    rows = [
        (plain(one.stratum), one.left_out, str(one.n), rate_text(one.top1), rate_text(one.top3))
        for one in report.order_only
    ]
    out.print(table(("stratum", "left out", "n", "top-1", "top-3"), rows, (LEFT, LEFT, RIGHT, RIGHT, RIGHT)))


def _show_efforts(out: Console, report: AdviceReport) -> None:
    section(out, "Layouts tried until the adopted one (median), and what the first proposal costs (mean)")
    costs = {one.stratum: one for one in report.costs}
    rows = [
        (
            plain(one.stratum),
            str(one.n),
            _count(one.advised),
            _count(one.random),
            _count(one.exhaustive),
            percent(costs[one.stratum].projected_loss),
            f"{percent(costs[one.stratum].measured_regret)} of {costs[one.stratum].measured_n}",
        )
        for one in report.efforts
    ]
    headers = ("stratum", "n", "advised", "random", "exhaustive", "projected loss", "measured regret")
    out.print(table(headers, rows, (LEFT, *(RIGHT,) * 6)))


def _show_confidence(out: Console, report: AdviceReport) -> None:
    found = report.confidence
    section(out, "Stated chances against outcomes")
    paragraph(out, f"event: {found.event}; {found.n} proposals with a calibrated chance")
    rows = [(str(one.n), percent(one.stated), percent(one.happened)) for one in found.bins]
    out.print(table(("proposals", "stated", "happened"), rows, (RIGHT, RIGHT, RIGHT)))
    scores = [UNKNOWN if value is None else f"{value:.3f}" for value in (found.ece, found.brier, found.brier_constant)]
    paragraph(
        out, f"expected calibration error {scores[0]}; Brier score {scores[1]}, of a constant forecast {scores[2]}"
    )


def _show_ablations(out: Console, report: AdviceReport) -> None:
    if not report.ablations:
        return
    section(out, "Parts left out, and what that costs in points (paired, 95 % interval)")
    rows = [
        (
            one.left_out,
            plain(one.stratum),
            rate_text(one.top1),
            _cost(one.top1_cost, one.top1_interval),
            rate_text(one.top3),
            _cost(one.top3_cost, one.top3_interval),
            rate_text(one.tolerant),
        )
        for one in report.ablations
    ]
    headers = ("without", "stratum", "top-1", "costs", "top-3", "costs", "tolerant")
    out.print(table(headers, rows, (LEFT, LEFT, *(RIGHT,) * 5)))
    for note in sorted({one.note for one in report.ablations if one.note}):
        paragraph(out, note)


def _cost(points: float, half: float) -> str:
    return f"{100 * points:+.1f} ({100 * (points - half):+.0f} to {100 * (points + half):+.0f})"


def _count(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:g}"
