"""A micro-case: a few events, a label that hand arithmetic fixes, and the way from the one to a diagnosis.

Times are in microseconds. `factor` multiplies every time, `seed` shuffles the events: neither may change a verdict.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from agents.findings import Diagnosis
from agents.planning.analyzer import diagnose
from projector.specs.bottleneck import Bottleneck, Cause
from traces.content import Content
from traces.read import DEFAULT_LIMITS
from traces.readers import kineto, xplane
from traces.summary import summarise
from traces.summary_types import TraceSummary
from traces.trace import Trace

Event = dict[str, Any]


@dataclass(frozen=True)
class Label:
    """What the diagnosis must say. bottleneck None: it must abstain, whatever class the convention names.

    causes: any of them. ambiguous None: not fixed by the arithmetic.
    """

    bottleneck: Bottleneck | None
    causes: tuple[Cause, ...]
    ambiguous: bool | None = None


@dataclass(frozen=True)
class Case:
    """events: (factor, seed) -> the traces of the ranks. adversarial: the kind of trap, '' for a plain case."""

    name: str
    arithmetic: str
    label: Label
    traces: Callable[[int, int | None], list[Trace]]
    adversarial: str = ""

    def summary(self, factor: int = 1, seed: int | None = None) -> TraceSummary:
        """The case read and summarised as any trace is."""
        return summarise(self.traces(factor, seed))

    def diagnosis(self, factor: int = 1, seed: int | None = None) -> Diagnosis:
        """The case diagnosed."""
        return diagnose(self.summary(factor, seed))


def missed(case: Case, diagnosis: Diagnosis) -> str:
    """Why a diagnosis is not the label; '' where it is."""
    label = case.label
    if label.bottleneck is None and not diagnosis.abstained:
        return f"did not abstain, said {diagnosis.bottleneck} ({diagnosis.cause})"
    if label.bottleneck is not None and diagnosis.abstained:
        return f"abstained ({diagnosis.bottleneck}, {diagnosis.cause})"
    if label.bottleneck is not None and diagnosis.bottleneck != label.bottleneck:
        return f"class {diagnosis.bottleneck} ({diagnosis.cause}), not {label.bottleneck}"
    if label.causes and diagnosis.cause not in label.causes:
        return f"cause {diagnosis.cause}, not {' or '.join(label.causes)}"
    if label.ambiguous is not None and diagnosis.ambiguous != label.ambiguous:
        return f"ambiguous {diagnosis.ambiguous}"
    return ""


def scaled(events: list[Event], factor: int) -> list[Event]:
    """Every time multiplied."""
    return [
        {key: value * factor if key in ("ts", "dur") else value for key, value in event.items()} for event in events
    ]


def kineto_traces(ranks: list[tuple[list[Event], dict[str, Any]]], factor: int, seed: int | None) -> list[Trace]:
    """One file a rank: (events, what stands outside of them)."""
    found: list[Trace] = []
    for number, (events, outer) in enumerate(ranks):
        rows = scaled(events, factor)
        if seed is not None:
            rows = [rows[place] for place in np.random.default_rng(seed + number).permutation(len(rows))]
        text = json.dumps({"schemaVersion": 1, **outer, "traceEvents": rows})
        found += kineto.read(Content(f"rank{number}.json", text.encode()), DEFAULT_LIMITS)
    return found


def xplane_traces(data: bytes) -> list[Trace]:
    """The devices of an XSpace."""
    return list(xplane.read(Content("case.xplane.pb", data), DEFAULT_LIMITS))
