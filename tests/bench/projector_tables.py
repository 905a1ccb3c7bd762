"""The comparison as tables on stdout."""

from collections.abc import Iterator, Sequence

from tests.bench.projector_results import Coverage, Errors, Rankings

WIDTH = 44


def coverage_lines(found: Sequence[Coverage], most_reasons: int = 4) -> Iterator[str]:
    """A line a tool, and its commonest reasons to refuse."""
    yield f"{'tool':24}{'asked':>7}{'as they are':>13}{'stand-ins':>11}{'refused':>9}{'called too large':>18}"
    for one in found:
        yield (
            f"{one.tool:24}{one.asked:>7}{one.as_they_are:>13}{one.with_stand_ins:>11}{one.refused:>9}"
            f"{one.called_too_large:>18}"
        )
        for reason, count in one.reasons[:most_reasons]:
            yield f"{'':4}{count:>5}  {reason[:110]}"


def error_lines(found: Sequence[Errors]) -> Iterator[str]:
    """A line a source and tool."""
    yield f"{'source':{WIDTH}}{'n':>6}  {'tool':24}{'MAPE':>8}{'median':>9}{'bias':>9}{'within 20 %':>13}"
    for group in found:
        for place, one in enumerate(group.tools):
            name, n = (group.source[:WIDTH], str(group.n)) if place == 0 else ("", "")
            yield (
                f"{name:{WIDTH}}{n:>6}  {one.tool:24}{percent(one.mape):>8}{percent(one.median):>9}"
                f"{percent(one.bias, signed=True):>9}{percent(one.within_20):>13}"
            )


def ranking_lines(found: Sequence[Rankings]) -> Iterator[str]:
    """A line a source and tool."""
    head = f"{'modelled':>9}{'pairs':>8}{'right order':>13}{'top-1 regret':>14}{'worst':>9}{'top-3':>8}{'Spearman':>10}"
    yield f"{'source':{WIDTH}}{'sweeps':>8}{'rows':>6}  {'tool':24}{head}"
    for group in found:
        for place, one in enumerate(group.tools):
            name, n, rows = (group.source[:WIDTH], str(group.sweeps), str(group.rows)) if place == 0 else ("", "", "")
            rho = "-" if one.spearman is None else f"{one.spearman:.2f}"
            order = "-" if one.order_accuracy is None else percent(one.order_accuracy)
            yield (
                f"{name:{WIDTH}}{n:>8}{rows:>6}  {one.tool:24}{one.modelled:>9}{one.pairs:>8}{order:>13}"
                f"{percent(one.top1_regret):>14}{percent(one.top1_regret_worst):>9}{percent(one.top3_regret):>8}{rho:>10}"
            )


def percent(fraction: float, *, signed: bool = False) -> str:
    """A fraction in per cent."""
    return f"{100 * fraction:{'+' if signed else ''}.1f} %"
