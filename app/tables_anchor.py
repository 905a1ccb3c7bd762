"""`shardwise eval anchor` for people: errors without and with one measured run of the sweep, by distance and source."""

from collections.abc import Sequence

from rich.console import Console

from agents.evaluation.reports_anchor import AnchorErrors, AnchorReport
from app.tables_parts import LEFT, RIGHT, bullets, console, heading, paragraph, section, table
from app.wording import number, percent, plain

NOTHING = "-"
HEADERS = ("pairs", "sweeps", "held", "modelled", "anchored", "carried whole", "in interval", "width")


def show_anchor(report: AnchorReport) -> None:
    """`shardwise eval anchor`."""
    out = console()
    heading(
        out,
        f"{report.n_runs} runs in {report.n_sweeps} sweeps of {report.n_groups} (model, chip) groups, each the anchor "
        f"once: {report.n_pairs} pairs",
    )
    paragraph(
        out,
        "mean absolute error of the other runs' step time, every sweep weighing the same: as modelled, anchored, and "
        "as if the anchor's ratio held for every plan; held: share of the ratio that is carried; in interval and width "
        "of the 80 % interval, modelled / anchored",
    )
    _show(out, "By what differs from the anchor's plan", "differs", report.by_distance)
    _show(out, "By source", "source", report.by_source)
    section(out, "Ranking the other runs of a sweep")
    rows = [
        (one.value, str(one.sweeps), _share(one.order_accuracy), _share(one.top1_regret), _share(one.top3_regret))
        for one in report.ranking
    ]
    headers = ("projection", "sweeps", "right order", "top-1 regret", "top-3 regret")
    out.print(table(headers, rows, (LEFT, *(RIGHT,) * 4)))
    folds = report.folds
    section(out, "In-sample or not")
    paragraph(out, folds.statement)
    best = NOTHING if folds.in_sample_factor is None else number(folds.in_sample_factor)
    paragraph(
        out,
        f"error as built {_share(folds.as_built_mape)}, with the factor best in hindsight ({best}) "
        f"{_share(folds.in_sample_mape)}, with that of the other groups {_share(folds.leave_group_out_mape)}",
    )
    bullets(
        out, "Runs that no projection is anchored to", [f"{one.n} x {one.reason}" for one in report.refused_anchors]
    )


def _show(out: Console, title: str, name: str, errors: Sequence[AnchorErrors]) -> None:
    section(out, title)
    rows = [
        (
            plain(one.value),
            str(one.pairs),
            str(one.sweeps),
            _share(one.held),
            _share(one.modelled_mape),
            _share(one.anchored_mape),
            _share(one.carried_whole_mape),
            f"{_share(one.modelled_coverage_80)} / {_share(one.anchored_coverage_80)}",
            f"{_share(one.modelled_width_80)} / {_share(one.anchored_width_80)}",
        )
        for one in errors
    ]
    out.print(table((name, *HEADERS), rows, (LEFT, *(RIGHT,) * len(HEADERS))))


def _share(value: float | None) -> str:
    return NOTHING if value is None else percent(value)
