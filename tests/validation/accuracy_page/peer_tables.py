"""The comparison with other projectors as tables of the page."""

from collections.abc import Iterator

from .figures import Peers
from .tables import NONE, escaped, percent, table


def lines(peers: Peers) -> Iterator[str]:
    """Settings, what each models, errors, ranking, speed."""
    yield "Every tool is asked the same plans of the same rows on A100, H100 and H200, see"
    yield "[evaluation.md](evaluation.md#beside-other-projectors)."
    yield ""
    yield from (f"- {one.tool}, {one.state}: {one.settings}." for one in peers.tools)
    yield ""
    rows: list[tuple[str, ...]] = [
        (one.tool, str(one.asked), str(one.as_they_are), str(one.with_stand_ins), str(one.refused))
        for one in peers.coverage
    ]
    yield from table(("tool", "rows asked", "modelled as they are", "with stand-ins", "refused"), rows)
    yield ""
    yield from _errors(peers)
    yield from _sweeps(peers)
    yield f"CPU time on one core, over plans of one search ({peers.speed_setting}):"
    yield ""
    ours = peers.speed[0].us_a_plan
    rows = [
        (
            one.way,
            str(one.plans),
            f"{one.us_a_plan:,.1f}",
            f"{one.plans_a_second:,.0f}",
            f"{one.us_a_plan / ours:,.0f}",
            f"{one.peak_mib:.0f}",
        )
        for one in peers.speed
    ]
    yield from table(("way", "plans", "µs a plan", "plans a second", "times ours", "peak memory [MiB]"), rows)


def _errors(peers: Peers) -> Iterator[str]:
    for title, groups in (
        ("Rows that all tools model as they are", peers.as_they_are),
        ("Rows that Calculon models with stand-ins", peers.with_stand_ins),
    ):
        rows = [
            (
                escaped(group.source),
                str(group.n),
                one.tool,
                percent(one.mape),
                percent(one.median),
                percent(one.bias, signed=True),
                percent(one.within_20),
            )
            for group in groups
            for one in group.tools
        ]
        yield f"{title}:"
        yield ""
        yield from table(("source", "n", "tool", "MAPE", "median", "bias", "within 20 %"), rows)
        yield ""


def _sweeps(peers: Peers) -> Iterator[str]:
    rows = [
        (
            escaped(group.source),
            str(group.sweeps),
            f"{one.modelled} of {group.rows}",
            one.tool,
            percent(one.order_accuracy),
            percent(one.top1_regret),
            percent(one.top1_regret_worst),
            percent(one.top3_regret),
            NONE if one.spearman is None else f"{one.spearman:.2f}",
        )
        for group in peers.sweeps
        for one in group.tools
    ]
    heads = ("source", "sweeps", "modelled", "tool", "right order", "top-1 regret", "worst", "top-3 regret", "Spearman")
    yield "Sweeps of which every tool models at least two configurations:"
    yield ""
    yield from table(heads, rows)
    yield ""
