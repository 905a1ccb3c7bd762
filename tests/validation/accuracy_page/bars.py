"""Charts of figures over many rows: errors by source, hit rates, and the tools beside each other."""

from collections.abc import Sequence

from agents.evaluation.reports import Rate

from .figures import Hits, Part, Peers
from .scatters import grid
from .svg import Drawing, Scale, linear_ticks, log_domain, log_ticks, source_name

WIDTH = 860.0


def by_source(parts: Sequence[Part]) -> str:
    """Mean absolute error of each source as a bar, its median as a tick."""
    shown = [one for one in parts if one.by == "source" and one.errors.mape is not None]
    shown.sort(key=lambda one: (one.errors.mape or 0.0, one.value))
    pitch, top, left, right = 26.0, 62.0, 270.0, WIDTH - 110
    bottom = top + pitch * len(shown)
    drawing = Drawing(WIDTH, bottom + 48, "Error of projected step time by source")
    drawing.text(20, 28, "Error of projected step time, by source", "h")
    drawing.text(20, 46, "bar: mean absolute error; tick: median; (n): rows that print a speed", "m")
    most = 105 * max(one.errors.mape or 0.0 for one in shown)
    x = Scale(0, most, left, right)
    grid(drawing, (left, top, right, bottom), [(x(at), f"{at:g}") for at in linear_ticks(most)], [])
    drawing.text((left + right) / 2, bottom + 37, "absolute error [%]", "s", "middle")
    for place, one in enumerate(shown):
        y = top + pitch * place
        mean, middle = 100 * (one.errors.mape or 0.0), 100 * (one.errors.median_error or 0.0)
        drawing.text(left - 8, y + 17, f"{source_name(one.value)} ({one.errors.n})", "s", "end")
        drawing.bar(left, y + 6, x(mean) - left, pitch - 10, "c0 p")
        drawing.line(x(middle), y + 3, x(middle), y + pitch - 1, "k")
        drawing.text(max(x(mean), x(middle)) + 8, y + 17, f"{mean:.1f}, median {middle:.1f}", "m")
    return drawing.document()


def top_k(found: Sequence[Hits]) -> str:
    """Hit rates with their 95 % intervals, the framework named and not, and two baselines in three proposals."""
    names = (("top1", "first proposal"), ("top3", "among three"), ("tolerant", "as good as adopted"))
    strata = list(dict.fromkeys(one.stratum for one in found))
    pitch, top, left, right = 26.0, 96.0, 200.0, WIDTH - 40
    bottom = top + pitch * len(strata) * (len(names) + 1)
    drawing = Drawing(WIDTH, bottom + 50, "Hit rates of published layouts")
    drawing.text(20, 28, "How often the published layout is among the proposals", "h")
    words = "line: 95 % Wilson interval; both baselines are of three proposals, own (family, chip) group left out"
    drawing.text(20, 46, words, "m")
    shapes = ("framework named", "the three commonest layouts", "same model on other chips", "framework unknown")
    drawing.legend(26, 70, [(shapes[at], at) for at in (0, 3, 1, 2)], WIDTH - 20)
    x = Scale(0, 100, left, right)
    grid(drawing, (left, top, right, bottom), [(x(at), f"{at:g}") for at in range(0, 101, 20)], [])
    drawing.text((left + right) / 2, bottom + 38, "workloads [%]", "s", "middle")
    y = top
    for stratum in strata:
        members = {one.framework: one for one in found if one.stratum == stratum}
        counts = "/".join(str(n) for n in sorted({one.n for one in members.values()}))
        drawing.text(20, y + 18, f"{stratum}, n = {counts}", "t")
        for field, name in names:
            y += pitch
            drawing.text(left - 10, y + 17, name, "s", "end")
            for framework, series, off in (("named", 0, 9.0), ("unknown", 3, 17.0)):
                if framework in members:
                    _rate(drawing, x, getattr(members[framework], field), y + off, series)
            if field == "top3":
                one = next(iter(members.values()))
                for series, baseline in ((1, one.baseline_common_top3), (2, one.baseline_same_model_top3)):
                    drawing.marks([(x(100 * (baseline.rate or 0.0)), y + 13)], series, "full")
        y += pitch
    return drawing.document()


def beside_peers(peers: Peers) -> str:
    """Mean absolute error of each tool on the rows of each source that all tools model."""
    groups = [(group, "") for group in peers.as_they_are] + [(group, " *") for group in peers.with_stand_ins]
    pitch, top, left, right = 24.0, 84.0, 290.0, WIDTH - 40
    bottom = top + pitch * len(groups)
    drawing = Drawing(WIDTH, bottom + 50, "Error of step time beside other projectors")
    drawing.text(20, 28, "Error of step time on the rows that all tools model, by source", "h")
    drawing.text(20, 46, "(n): rows; *: rows that Calculon models with stand-ins", "m")
    drawing.legend(26, 70, [(tool.tool, at) for at, tool in enumerate(groups[0][0].tools)], WIDTH - 20)
    low, high = log_domain(100 * tool.mape for group, _ in groups for tool in group.tools)
    x = Scale(low, high, left, right, is_log=True)
    grid(drawing, (left, top, right, bottom), [(x(at), f"{at:g}") for at in log_ticks(low, high)], [])
    drawing.text((left + right) / 2, bottom + 38, "mean absolute error [%], logarithmic", "s", "middle")
    for place, (group, mark) in enumerate(groups):
        y = top + pitch * place + 12
        drawing.text(left - 8, y + 4, f"{source_name(group.source)}{mark} ({group.n})", "s", "end")
        drawing.line(left, y, right, y)
        for series, tool in enumerate(group.tools):
            drawing.marks([(x(100 * tool.mape), y)], series, "full")
    return drawing.document()


def _rate(drawing: Drawing, x: Scale, rate: Rate, y: float, series: int) -> None:
    if rate.rate is None or rate.low is None or rate.high is None:
        return
    drawing.line(x(100 * rate.low), y, x(100 * rate.high), y, "w")
    drawing.marks([(x(100 * rate.rate), y)], series, "full")
