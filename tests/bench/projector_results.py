"""Answers against measurements: what each tool modelled, its errors on the rows all model, its ranking in sweeps."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agents.evaluation.cases import Case
from agents.evaluation.sweeps import order_of_picks, pairs_in_order, spearman

ALL = "all"
FEWEST_FOR_RANKS = 4


@dataclass(frozen=True)
class Answer:
    """What a tool says of a row: seconds a token of the whole machine, bytes, and what stood in for what it lacks."""

    s_per_token: float
    bytes: float
    fits: bool
    stand_ins: tuple[str, ...]


Answers = Mapping[str, Answer | str]
"""Row -> answer, or why there is none."""


@dataclass(frozen=True)
class Coverage:
    """Of the rows asked: modelled as they are, with stand-ins, refused with reasons; runs that ran called too large."""

    tool: str
    asked: int
    as_they_are: int
    with_stand_ins: int
    refused: int
    reasons: tuple[tuple[str, int], ...]
    called_too_large: int


@dataclass(frozen=True)
class Error:
    """Of one tool over rows: projected / measured step time - 1, as fractions."""

    tool: str
    mape: float
    median: float
    bias: float
    within_20: float


@dataclass(frozen=True)
class Errors:
    """The tools on the same rows of one source."""

    source: str
    n: int
    tools: tuple[Error, ...]


@dataclass(frozen=True)
class Ranking:
    """Of one tool over the sweeps of a source: what it models of their rows, order and regret against the best row."""

    tool: str
    modelled: int
    pairs: int
    order_accuracy: float | None
    top1_regret: float
    top1_regret_worst: float
    top3_regret: float
    spearman: float | None


@dataclass(frozen=True)
class Rankings:
    """The tools on the sweeps of one source in which each models at least two configurations."""

    source: str
    sweeps: int
    rows: int
    tools: tuple[Ranking, ...]


def answers_of(lines: Iterable[Mapping[str, Any]]) -> dict[str, Answer | str]:
    """A row's fastest answer that fits, where none fits the smallest; where there is none the commonest reason."""
    given: dict[str, list[tuple[tuple[bool, float], Answer]]] = defaultdict(list)
    refused: dict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        if "refused" in line:
            refused[line["row"]][line["refused"]] += 1
            continue
        answer = Answer(line["time_s"] / line["tokens"], line["bytes"], line["fits"], tuple(line["stand_ins"]))
        order = (not answer.fits, answer.s_per_token if answer.fits else answer.bytes)
        given[line["row"]].append((order, answer))
    reasons = {row: counts.most_common(1)[0][0] for row, counts in refused.items()}
    return reasons | {row: min(found, key=lambda one: one[0])[1] for row, found in given.items()}


def coverage(tool: str, cases: Sequence[Case], answers: Answers) -> Coverage:
    """What a tool modelled."""
    found = [answers[case.row.id] for case in cases]
    modelled = [one for one in found if isinstance(one, Answer)]
    reasons = Counter(one for one in found if isinstance(one, str))
    return Coverage(
        tool=tool,
        asked=len(cases),
        as_they_are=sum(not one.stand_ins for one in modelled),
        with_stand_ins=sum(bool(one.stand_ins) for one in modelled),
        refused=len(found) - len(modelled),
        reasons=tuple(reasons.most_common()),
        called_too_large=sum(not one.fits for one in modelled),
    )


def common(cases: Sequence[Case], tools: Mapping[str, Answers], *, stand_ins: bool) -> list[Case]:
    """Rows every tool models as they are; or, with stand_ins, those some tool models only with a stand-in."""
    found = []
    for case in cases:
        answers = [answers[case.row.id] for answers in tools.values()]
        given = [one for one in answers if isinstance(one, Answer)]
        if len(given) == len(answers) and any(one.stand_ins for one in given) == stand_ins:
            found.append(case)
    return found


def errors(cases: Sequence[Case], tools: Mapping[str, Answers]) -> tuple[Errors, ...]:
    """Every tool on the same rows: all, then by source."""
    by_source: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        by_source[case.row.source].append(case)
    groups = [(ALL, list(cases)), *sorted(by_source.items())] if cases else []
    return tuple(
        Errors(source, len(rows), tuple(_error(tool, rows, answers) for tool, answers in tools.items()))
        for source, rows in groups
    )


def rankings(cases: Sequence[Case], tools: Mapping[str, Answers]) -> tuple[Rankings, ...]:
    """Sweeps (one workload, source and release) by source, and all together."""
    sweeps: dict[tuple[str, str, str], list[Case]] = defaultdict(list)
    for case in cases:
        sweeps[case.row.source, case.row.workload_id, case.row.release or ""].append(case)
    by_source: dict[str, list[list[Case]]] = defaultdict(list)
    for (source, _, _), members in sorted(sweeps.items()):
        if all(_configurations(members, answers) > 1 for answers in tools.values()):
            by_source[source].append(members)
    groups = [(ALL, [one for ones in by_source.values() for one in ones]), *sorted(by_source.items())]
    return tuple(
        Rankings(
            source,
            len(ones),
            sum(len(one) for one in ones),
            tuple(_ranking(tool, ones, answers) for tool, answers in tools.items()),
        )
        for source, ones in groups
        if ones
    )


def _measured(case: Case) -> float:
    assert case.target is not None
    return case.target.s_per_token


def _configurations(members: Sequence[Case], answers: Answers) -> int:
    return len({case.row.configuration for case in members if isinstance(answers[case.row.id], Answer)})


def _error(tool: str, cases: Sequence[Case], answers: Answers) -> Error:
    given = [answers[case.row.id] for case in cases]
    projected = np.array([one.s_per_token for one in given if isinstance(one, Answer)])
    error = projected / np.array([_measured(case) for case in cases]) - 1
    absolute = np.abs(error)
    return Error(
        tool=tool,
        mape=float(absolute.mean()),
        median=float(np.median(absolute)),
        bias=float(error.mean()),
        within_20=float((absolute <= 0.2).mean()),
    )


def _ranking(tool: str, sweeps: Sequence[Sequence[Case]], answers: Answers) -> Ranking:
    modelled, pairs, right = 0, 0, 0
    top1, top3, ranks = [], [], []
    for members in sweeps:
        given = [(case, answers[case.row.id]) for case in members]
        known = [(case, one) for case, one in given if isinstance(one, Answer)]
        measured = np.array([_measured(case) for case, _ in known])
        projected = np.array([one.s_per_token for _, one in known])
        best = min(_measured(case) for case in members)
        order = order_of_picks(measured, projected, np.array([one.fits for _, one in known]))
        counted, correct, _ = pairs_in_order([case.row.configuration for case, _ in known], measured, projected)
        modelled, pairs, right = modelled + len(known), pairs + counted, right + correct
        top1.append(float(measured[order[0]] / best - 1))
        top3.append(float(measured[order[:3]].min() / best - 1))
        rho = spearman(projected, measured) if len(set(measured.tolist())) >= FEWEST_FOR_RANKS else None
        ranks += [] if rho is None else [rho]
    return Ranking(
        tool=tool,
        modelled=modelled,
        pairs=pairs,
        order_accuracy=right / pairs if pairs else None,
        top1_regret=float(np.mean(top1)),
        top1_regret_worst=max(top1),
        top3_regret=float(np.mean(top3)),
        spearman=float(np.mean(ranks)) if ranks else None,
    )
