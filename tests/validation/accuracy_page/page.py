"""docs/accuracy.md: the template beside this file with tables and charts in the places it names."""

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap

from agents.evaluation.reports import Reason

from . import peer_tables
from .charts import charts
from .figures import Figures
from .in_short import in_short
from .tables import NONE, errors, escaped, percent, rate, table

FOLDER = "accuracy"
"""Where the charts lie, beside the page."""
TEMPLATE = Path(__file__).with_name("template.md")
PLACE = re.compile(r"^\{\{(.+)\}\}$", re.MULTILINE)
ERROR_HEADS = ("n", "MAPE", "median", "bias", "in interval", "width")
CHARTS = {
    "step_time.svg": "projected against measured step time of every row, by family of chips",
    "by_chip.svg": "projected over measured step time of every row, by chip",
    "by_source.svg": "mean and median error of step time by source",
    "sweeps.svg": "projected against measured time inside sweeps",
    "memory.svg": "projected against measured memory of a device, by source",
    "topk.svg": "hit rates of published layouts with intervals and baselines",
    "peers.svg": "mean absolute error of each tool by source",
}
LINE = 120
BY = ("source", "framework", "chip", "target", "model")


def page(figures: Figures) -> str:
    """The whole page."""
    blocks = {
        "in_short": _in_short(figures),
        "files": _files(figures),
        "kinds_of_rows": _kinds_of_rows(figures),
        "folds": _folds(figures),
        "intervals": _intervals(figures),
        "parameters": _parameters(figures),
        **{f"by {name}": _parts(figures, name) for name in BY},
        "sweeps": _sweeps(figures),
        "memory": _memory(figures),
        "hits": _hits(figures),
        "baselines": _baselines(figures),
        "anchoring": _anchoring(figures),
        "anchored_ranking": _anchored_ranking(figures),
        "peers": _peers(figures),
        "left_out": _left_out(figures),
        **{name: _image(name) for name in charts(figures)},
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    return PLACE.sub(lambda found: "\n".join(blocks.get(found[1], iter(()))), text)


def _image(name: str) -> Iterator[str]:
    yield f"![{CHARTS[name]}]({FOLDER}/{name})"
    yield ""


def _in_short(figures: Figures) -> Iterator[str]:
    for line in in_short(figures):
        yield from wrap(f"- {line}", LINE, subsequent_indent="  ", break_on_hyphens=False)


def _files(figures: Figures) -> Iterator[str]:
    rows = [
        (
            f"`{one.name}`",
            f"{one.n_modelled} of {one.n_given}",
            str(one.n_refused),
            str(one.n_suspect + one.n_ineligible),
            *errors(one.all_rows),
        )
        for one in figures.files
    ]
    return table(("file", "modelled", "refused", "suspect or incomplete", *ERROR_HEADS), rows)


def _kinds_of_rows(figures: Figures) -> Iterator[str]:
    first = figures.files[0]
    kinds = (("all", first.all_rows), ("newest", first.newest), ("nothing assumed", first.nothing_assumed))
    return table(("rows", *ERROR_HEADS), [(name, *errors(found)) for name, found in kinds])


def _folds(figures: Figures) -> Iterator[str]:
    yield from wrap(f"{figures.folds_statement} Of the first file:", LINE, break_on_hyphens=False)
    yield ""
    rows = [
        (
            one.name,
            *errors(one.errors),
            percent(one.order_accuracy),
            percent(one.top1_regret),
            percent(one.top1_regret_worst),
        )
        for one in figures.folds
    ]
    yield from table(("constants", *ERROR_HEADS, "right order", "top-1 regret", "worst"), rows)


def _intervals(figures: Figures) -> Iterator[str]:
    rows = [
        (
            escaped(one.name),
            str(one.runs),
            f"{one.low_factor:.2f} to {one.high_factor:.2f}",
            f"{one.ratio_10:.2f} to {one.ratio_90:.2f}",
            percent(one.coverage_80),
        )
        for one in figures.intervals
    ]
    return table(("projections", "runs", "interval over projection", "middle 80 % of measured", "in interval"), rows)


def _parameters(figures: Figures) -> Iterator[str]:
    rows = [
        (
            escaped(one.name),
            f"{one.prior:.3g}",
            f"{one.present:.3g}",
            f"{one.fitted:.3g}",
            str(one.rows),
            str(one.groups),
        )
        for one in figures.parameters
    ]
    return table(("constant", "without a fit", "in use", "fitted on all rows", "rows", "groups"), rows)


def _parts(figures: Figures, by: str) -> Iterator[str]:
    found = (one for one in figures.parts if one.by == by)
    rows = [(escaped(one.value), f"{one.n_modelled} of {one.n_given}", *errors(one.errors)) for one in found]
    return table((by, "modelled", *ERROR_HEADS), rows)


def _sweeps(figures: Figures) -> Iterator[str]:
    rows = [
        (
            escaped(one.value),
            str(one.groups),
            str(one.rows),
            str(one.pairs),
            percent(one.order_accuracy),
            percent(one.top1_regret),
            percent(one.top1_regret_worst),
            percent(one.top3_regret),
            NONE if one.spearman is None else f"{one.spearman:.2f}",
        )
        for one in figures.sweeps
    ]
    heads = ("source", "sweeps", "rows", "pairs", "right order", "top-1 regret", "worst", "top-3 regret", "Spearman")
    return table(heads, rows)


def _memory(figures: Figures) -> Iterator[str]:
    rows = [
        (
            escaped(one.value),
            str(one.n),
            percent(one.mape),
            percent(one.median_error),
            percent(one.bias, signed=True),
            f"{one.ran_called_too_large} of {one.ran}",
            f"{one.out_of_memory_flagged} of {one.out_of_memory}",
        )
        for one in figures.memory
        if one.n or one.out_of_memory or one.ran_called_too_large
    ]
    return table(("source", "n", "MAPE", "median", "bias", "ran, said too large", "out of memory, said so"), rows)


def _hits(figures: Figures) -> Iterator[str]:
    rows = [
        (
            one.stratum,
            one.framework,
            str(one.n),
            str(one.n_ranked),
            *(rate(each) for each in (one.top1, one.top3, one.tolerant)),
            NONE if one.flatness is None else f"{one.flatness:g}",
        )
        for one in figures.hits
    ]
    heads = ("workloads", "framework", "n", "ranked", "first proposal", "among three", "as good", "flatness")
    return table(heads, rows)


def _baselines(figures: Figures) -> Iterator[str]:
    first = {one.stratum: one for one in reversed(figures.hits)}
    rows = [
        (
            one.stratum,
            str(one.n),
            rate(one.baseline_common_top3),
            rate(one.baseline_same_model_top1),
            rate(one.baseline_same_model_top3),
        )
        for one in reversed(first.values())
    ]
    heads = ("workloads", "n", "three commonest", "same model, first", "same model, three")
    return table(heads, rows)


def _anchoring(figures: Figures) -> Iterator[str]:
    rows = [
        (
            escaped(one.value),
            str(one.pairs),
            str(one.sweeps),
            percent(one.modelled_mape),
            percent(one.anchored_mape),
            percent(one.carried_whole_mape),
            percent(one.modelled_coverage_80),
            percent(one.anchored_coverage_80),
        )
        for one in figures.anchoring
    ]
    heads = ("what differs", "pairs", "sweeps", "modelled", "anchored", "carried whole", "in interval", "anchored")
    return table(heads, rows)


def _anchored_ranking(figures: Figures) -> Iterator[str]:
    rows = [
        (
            escaped(one.value),
            str(one.sweeps),
            percent(one.order_accuracy),
            percent(one.top1_regret),
            percent(one.top3_regret),
        )
        for one in figures.anchored_ranking
    ]
    return table(("projection", "sweeps", "right order", "top-1 regret", "top-3 regret"), rows)


def _peers(figures: Figures) -> Iterator[str]:
    if figures.peers is None:
        yield "`make bench-projector` has not been run for this page."
        return
    yield from _image("peers.svg")
    yield from peer_tables.lines(figures.peers)


def _left_out(figures: Figures) -> Iterator[str]:
    for title, reasons in (
        ("Refused", figures.refusals),
        ("Left out because their file marks them as incomplete", figures.ineligible),
        ("Left out because their file marks them as suspect", figures.suspects),
    ):
        if reasons:
            yield f"{title}:"
            yield ""
            with_ids = reasons is figures.suspects
            yield from table(("rows", "ids" if with_ids else "reason"), [_reason(one, with_ids) for one in reasons])
            yield ""


def _reason(one: Reason, with_ids: bool) -> tuple[str, str]:
    # what a file says of a suspect row are its own sentences: the ids lead there
    return str(one.n), ", ".join(f"`{name}`" for name in one.ids) if with_ids else escaped(one.reason)
