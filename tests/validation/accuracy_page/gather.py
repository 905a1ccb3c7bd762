"""The figures of the page from files of measured rows and workloads, and from the comparison with other projectors."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np

from agents.evaluation.accuracy import accuracy
from agents.evaluation.anchoring import anchor_report
from agents.evaluation.material import Material, TextFile, read_material
from agents.evaluation.reports import AccuracyReport, Reason, ScoredRow, TopkReport
from agents.evaluation.rows import MeasuredRow
from agents.evaluation.sweeps import order_of_picks
from agents.evaluation.topk import topk
from projector.catalog import chip

from .figures import ChipCloud, Cloud, Figures, FileFigures, Hits, Part, Peers, Point, Sweep, rounded

Say = Callable[[str], None]
ROWS, POST, WORKLOADS = "training.jsonl", "posttraining.jsonl", "workloads.jsonl"
MULTI_NODE, SINGLE_NODE = "vtrain_a100_multi_node.csv", "vtrain_a100_single_node.csv"
FILES = (ROWS, MULTI_NODE, SINGLE_NODE, POST)
# of the single-node sweeps alone there are 126, and each of their runs would be the anchor once
ANCHORED = (ROWS, MULTI_NODE)
FRAMEWORKS: tuple[Literal["named", "unknown"], ...] = ("named", "unknown")
SLICES = ("source", "framework", "chip", "target", "model")
STRATA = ("nontrivial", "modern", "trivial")
# sweeps that are drawn: the largest, of files with few of them
FEWEST_DRAWN, MOST_DRAWN = 6, 12
MOST_SWEEPS_OF_A_FILE = 60
# chip ids begin with these; what no entry fits is named by its vendor
FAMILIES = (
    ("A100", ("a100",)),
    ("H100, H200", ("h100", "h200")),
    ("B200 to GB300", ("b200", "b300", "gb200", "gb300")),
    ("TPU v4 to v7x", ("tpu",)),
    ("MI325X, MI355X", ("mi",)),
    ("other NVIDIA", ("a10", "a40", "l4", "h20", "h800", "rtx")),
)
SWEPT = "A100, vTrain sweeps"


def gather(folder: Path, peers: Peers | None, say: Say) -> Figures:
    """Evaluate every file of the folder. peers: the result of the comparison, where there is one."""
    index = _text(folder / WORKLOADS)
    strata = read_material([index]).strata
    materials = {name: read_material([_text(folder / name)]) for name in FILES if (folder / name).is_file()}
    reports = {}
    for name, material in materials.items():
        say(f"{name}: {len(material.rows)} rows")
        reports[name] = accuracy(material.rows, strata, with_folds=name == ROWS, with_ids=True, with_rows=True)
    say("top-k")
    rows = tuple(chain.from_iterable(materials[name].rows for name in (ROWS, POST) if name in materials))
    workloads = read_material([index]).workloads
    hits = [topk(workloads, rows, phase="pretrain", framework=told) for told in FRAMEWORKS]
    say("anchoring")
    swept = tuple(chain.from_iterable(materials[name].rows for name in ANCHORED if name in materials))
    anchored = anchor_report(swept, strata)
    first = reports[ROWS]
    assert first.folds is not None
    document = Figures(
        files=tuple(_file(name, report) for name, report in reports.items()),
        parts=_parts(reports),
        step_times=_step_times(reports.values()),
        memory=first.memory,
        memory_points=_memory_points(first.rows),
        sweeps=tuple(entry for report in reports.values() for entry in report.sweeps if entry.value != "all"),
        sweep_plots=_sweep_plots(materials, reports),
        hits=tuple(entry for report in hits for entry in _hits(report)),
        anchoring=anchored.by_distance,
        anchored_ranking=anchored.ranking,
        folds=first.folds.figures,
        parameters=first.folds.parameters,
        intervals=first.folds.intervals,
        folds_statement=first.folds.statement,
        suspects=_reasons(report.suspects for report in reports.values()),
        refusals=_reasons(report.refusals for report in reports.values()),
        ineligible=_reasons(report.ineligible for report in reports.values()),
        peers=peers,
    )
    return Figures.model_validate_json(json.dumps(rounded(document.model_dump(mode="json"))))


def _text(path: Path) -> TextFile:
    return TextFile(path.name, path.read_text(encoding="utf-8"))


def _file(name: str, report: AccuracyReport) -> FileFigures:
    fields = FileFigures.model_fields.keys() - {"name"}
    return FileFigures(name=name, **{field: getattr(report, field) for field in fields})


def _parts(reports: Mapping[str, AccuracyReport]) -> tuple[Part, ...]:
    """Slices of the first file, and the sources of all, named with their file where they come a second time."""
    found: dict[tuple[str, str], Part] = {}
    for name, report in reports.items():
        for one in report.slices:
            if one.by in SLICES and (name == ROWS or one.by == "source"):
                value = f"{one.value}, {name.split('.')[0]}" if (one.by, one.value) in found else one.value
                figures = {"n_given": one.n_given, "n_modelled": one.n_modelled, "errors": one.errors}
                found[one.by, value] = Part(by=one.by, value=value, **figures)
    return tuple(found.values())


def _step_times(reports: Iterable[AccuracyReport]) -> tuple[ChipCloud, ...]:
    """The rows that print a speed, by family in the order of the list, then by chip."""
    members: dict[tuple[str, str], list[Point]] = defaultdict(list)
    for row in chain.from_iterable(report.rows for report in reports):
        if row.measured_s is not None:
            members[_family(row), _chip_name(row)].append((row.measured_s, row.projected_s))
    listed = [name for name, _ in FAMILIES]
    order = sorted(members, key=lambda key: (listed.index(key[0]) if key[0] in listed else len(listed), *key))
    return tuple(ChipCloud(name=name, family=family, points=tuple(members[family, name])) for family, name in order)


def _family(row: ScoredRow) -> str:
    if row.source.startswith("vTrain"):
        return SWEPT
    return next((name for name, starts in FAMILIES if row.chip.startswith(starts)), chip(row.chip).vendor)


def _chip_name(row: ScoredRow) -> str:
    name = row.chip.split("(")[0].replace("-hbm2e", "").replace("-ironwood", "")
    return row.source if row.source.startswith("vTrain") else name


def _memory_points(rows: Sequence[ScoredRow]) -> tuple[Cloud, ...]:
    members: dict[str, list[Point]] = defaultdict(list)
    for row in rows:
        if row.measured_memory_bytes is not None and row.projected_memory_bytes is not None:
            members[row.source].append((row.measured_memory_bytes, row.projected_memory_bytes))
    return tuple(Cloud(name=name, points=tuple(points)) for name, points in sorted(members.items()))


def _sweep_plots(materials: Mapping[str, Material], reports: Mapping[str, AccuracyReport]) -> tuple[Sweep, ...]:
    """The largest sweeps of the files that hold few."""
    found: list[Sweep] = []
    for name, report in reports.items():
        if len(report.sweep_groups) > MOST_SWEEPS_OF_A_FILE:
            continue
        of_row = {row.id: row for row in materials[name].rows if isinstance(row, MeasuredRow)}
        members: dict[str, list[ScoredRow]] = defaultdict(list)
        for scored in report.rows:
            row = of_row[scored.id]
            members[" ".join(part for part in (row.workload_id, row.source, row.release or "") if part)].append(scored)
        for group in report.sweep_groups:
            ones = [one for one in members[group.name] if one.measured_s is not None]
            if len(ones) >= FEWEST_DRAWN:
                row = of_row[ones[0].id]
                points = tuple((one.measured_s or 0.0, one.projected_s) for one in ones)
                measured, projected = np.array(points).T
                fits = np.array([one.fit != "too_large" for one in ones])
                found.append(
                    Sweep(
                        title=f"{row.model}, {row.chips} chips",
                        source=row.source,
                        global_batch=row.global_batch or 0,
                        top1_regret=group.top1_regret,
                        spearman=group.spearman,
                        picked=int(order_of_picks(measured, projected, fits)[0]),
                        points=points,
                    )
                )
    return tuple(sorted(found, key=lambda one: (-len(one.points), one.source, one.title))[:MOST_DRAWN])


def _hits(report: TopkReport) -> Iterable[Hits]:
    fields = Hits.model_fields.keys() - {"framework"}
    for one in report.strata:
        if one.weighted_by == "workload" and one.stratum in STRATA:
            yield Hits(framework=report.framework, **{field: getattr(one, field) for field in fields})


def _reasons(found: Iterable[Sequence[Reason]]) -> tuple[Reason, ...]:
    return tuple(chain.from_iterable(found))
