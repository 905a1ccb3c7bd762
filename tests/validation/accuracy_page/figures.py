"""What docs/accuracy.json holds: every figure of the page and every point of its charts. Fractions, seconds, bytes."""

import json
import math
from typing import Any

from agents.evaluation.reports import (
    ErrorFigures,
    FittedParameter,
    FoldFigures,
    IntervalClass,
    MemoryFigures,
    Rate,
    Reason,
    SweepFigures,
)
from agents.evaluation.reports_anchor import AnchorErrors, AnchorRanking
from projector.specs.record import Record

SIGNIFICANT_DIGITS = 4

Point = tuple[float, float]
"""Measured, projected."""


class FileFigures(Record):
    """One file of measured rows."""

    name: str
    n_given: int
    n_modelled: int
    n_suspect: int
    n_ineligible: int
    n_refused: int
    all_rows: ErrorFigures
    newest: ErrorFigures
    nothing_assumed: ErrorFigures


class Part(Record):
    """The rows that share a value of one property, over all files."""

    by: str
    value: str
    n_given: int
    n_modelled: int
    errors: ErrorFigures


class Cloud(Record):
    """Points of one kind."""

    name: str
    points: tuple[Point, ...]


class ChipCloud(Cloud):
    """Step times of one chip, in seconds; sweeps with many rows stand apart from their chip."""

    family: str


class Sweep(Record):
    """One sweep, in seconds a step; picked: the place among the points of the one projected fastest that fits."""

    title: str
    source: str
    global_batch: int
    top1_regret: float
    spearman: float | None
    picked: int
    points: tuple[Point, ...]


class Hits(Record):
    """Hit rates of one stratum of workloads, the framework named to the planner or not."""

    framework: str
    stratum: str
    n: int
    n_ranked: int
    top1: Rate
    top3: Rate
    tolerant: Rate
    flatness: float | None
    baseline_common_top3: Rate
    baseline_same_model_top1: Rate
    baseline_same_model_top3: Rate


class PeerErrors(Record):
    """Errors of one tool."""

    tool: str
    mape: float
    median: float
    bias: float
    within_20: float


class PeerGroup(Record):
    """Tools on the same rows of one source."""

    source: str
    n: int
    tools: tuple[PeerErrors, ...]


class PeerRanking(Record):
    """The ranking of one tool inside sweeps."""

    tool: str
    modelled: int
    pairs: int
    order_accuracy: float | None
    top1_regret: float
    top1_regret_worst: float
    top3_regret: float
    spearman: float | None


class PeerSweeps(Record):
    """Tools on the same sweeps."""

    source: str
    sweeps: int
    rows: int
    tools: tuple[PeerRanking, ...]


class PeerCoverage(Record):
    """What a tool models of the rows asked."""

    tool: str
    asked: int
    as_they_are: int
    with_stand_ins: int
    refused: int
    reasons: tuple[tuple[str, int], ...]
    called_too_large: int


class PeerSpeed(Record):
    """What a way to score plans costs on one core."""

    way: str
    plans: int
    us_a_plan: float
    plans_a_second: float
    peak_mib: float


class PeerSettings(Record):
    """Which state of a peer was asked, and how it was configured."""

    tool: str
    state: str
    settings: str


class Peers(Record):
    """The result of `make bench-projector`."""

    tools: tuple[PeerSettings, ...]
    coverage: tuple[PeerCoverage, ...]
    as_they_are: tuple[PeerGroup, ...]
    with_stand_ins: tuple[PeerGroup, ...]
    sweeps: tuple[PeerSweeps, ...]
    speed_setting: str
    speed: tuple[PeerSpeed, ...]


class Figures(Record):
    """Everything."""

    files: tuple[FileFigures, ...]
    parts: tuple[Part, ...]
    step_times: tuple[ChipCloud, ...]
    memory: tuple[MemoryFigures, ...]
    memory_points: tuple[Cloud, ...]
    sweeps: tuple[SweepFigures, ...]
    sweep_plots: tuple[Sweep, ...]
    hits: tuple[Hits, ...]
    anchoring: tuple[AnchorErrors, ...]
    anchored_ranking: tuple[AnchorRanking, ...]
    folds: tuple[FoldFigures, ...]
    parameters: tuple[FittedParameter, ...]
    intervals: tuple[IntervalClass, ...]
    folds_statement: str
    suspects: tuple[Reason, ...]
    refusals: tuple[Reason, ...]
    ineligible: tuple[Reason, ...]
    peers: Peers | None = None


def rounded(value: Any) -> Any:
    """A JSON document with its numbers cut to a few digits: the page is made from what the file says, no more."""
    if isinstance(value, float):
        return significant(value)
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def significant(value: float) -> float:
    """A number of few digits."""
    if value == 0 or not math.isfinite(value):
        return value
    return round(value, SIGNIFICANT_DIGITS - 1 - math.floor(math.log10(abs(value))))


def as_text(figures: Figures) -> str:
    """The JSON file: an entry of a list a line, so that a change of one figure is a change of one line."""
    document = figures.model_dump(mode="json")
    lines = []
    for key, value in document.items():
        if isinstance(value, list) and value:
            entries = ",\n".join(f"  {_compact(one)}" for one in value)
            lines.append(f" {json.dumps(key)}: [\n{entries}\n ]")
        elif isinstance(value, dict):
            entries = ",\n".join(f"  {json.dumps(name)}: {_compact(one)}" for name, one in value.items())
            lines.append(f" {json.dumps(key)}: {{\n{entries}\n }}")
        else:
            lines.append(f" {json.dumps(key)}: {_compact(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
