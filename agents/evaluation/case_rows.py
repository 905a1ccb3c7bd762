"""Before/after cases: public reports of a configuration that was slow or failed, what was changed, and what that did.

What a request may hold is apart from what scores it: `CaseInput` has no field of the outcome.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field, ValidationError

from agents.evaluation.rows import Unreadable
from projector.specs.record import Record

Value = Any  # of a configuration or a figure as printed: numbers, words, lists and nested tables
CasePhase = Literal["train", "sft", "rl", "serve"]
CaseClass = Literal["compute", "memory", "communication", "mixed"]
Outcome = Literal["improved", "worse", "neutral", "unknown"]


class Arm(Record):
    """A configuration and what was measured of it, as printed."""

    config: dict[str, Value] = Field(default_factory=dict)
    figures: dict[str, Value] = Field(default_factory=dict)


class CaseModel(Record):
    """A model by name, with the numbers the report states."""

    name: str
    numbers: dict[str, Value] = Field(default_factory=dict)


class CaseHardware(Record):
    """A machine as the report names it; None: not stated."""

    chip: str
    count: float | None = None
    nodes: float | None = None
    link: str = ""


class CaseInput(Record):
    """All that a request may be made of."""

    phase: CasePhase
    model: CaseModel
    hardware: CaseHardware
    is_moe: bool
    is_tpu: bool
    before: Arm
    symptom: str


class CaseTruth(Record):
    """What scores an answer. ratio: above 1 where the change was better on its metric; None: not measured."""

    cls: CaseClass
    cause: str
    levers: tuple[str, ...]
    after: Arm
    metric: str
    ratio: float | None
    outcome: Outcome
    request_fields: tuple[str, ...]


class Case(Record):
    """One case; source is the repository or site it comes from, the unit of weighting."""

    id: str
    source: str
    given: CaseInput
    truth: CaseTruth


def are_cases(text: str) -> bool:
    """Whether the first row of a file is a before/after case: what `shardwise eval advice` tells files apart by."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    try:
        raw = json.loads(first)
    except ValueError:
        return False
    return isinstance(raw, dict) and {"before", "after", "bottleneck", "levers"} <= raw.keys()


def read_cases(text: str, file: str) -> Iterator[Case | Unreadable]:
    """Every line of a file of cases; lines without content are skipped."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            raw = json.loads(line)
        except ValueError:
            yield Unreadable(f"line {number}", file, "no JSON")
            continue
        yield case_of(raw, file) if isinstance(raw, dict) else Unreadable(f"line {number}", file, "no JSON object")


def case_of(raw: dict[str, Any], file: str = "") -> Case | Unreadable:
    """A case of a row of JSON; Unreadable with the reason where a field is missing or of another type."""
    row_id = str(raw.get("id", "without id"))
    try:
        given = {name: raw[name] for name in CaseInput.model_fields}
        bottleneck, effect = raw["bottleneck"], raw["effect"]
        truth = {
            "cls": bottleneck["cls"],
            "cause": bottleneck.get("cause", ""),
            "levers": raw["levers"],
            "after": raw["after"],
            "metric": effect.get("metric") or "",
            "ratio": effect.get("improvement_ratio"),
            "outcome": effect["outcome"],
            "request_fields": raw.get("request_fields", []),
        }
        source = _repository(str(raw["source"]["url"]))
        return Case.model_validate({"id": row_id, "source": source, "given": given, "truth": truth})
    except (KeyError, TypeError, AttributeError) as error:
        return Unreadable(row_id, file, f"no field {error}")
    except ValidationError as error:
        first = error.errors()[0]
        return Unreadable(row_id, file, f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}")


def _repository(url: str) -> str:
    """'owner/name' of a repository, else the host."""
    found = re.match(r"https?://(?:www\.)?github\.com/([^/\s]+/[^/\s#?]+)", url)
    host = re.match(r"https?://([^/\s]+)", url)
    return found[1].lower() if found else host[1].lower() if host else url
