"""What the files of an evaluation hold: rows, workloads, or both, told apart by what their lines say."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from agents.evaluation.refusal import Refused
from agents.evaluation.rows import MeasuredRow, Unreadable, json_object, read_rows
from agents.evaluation.serving_csv import is_serving_csv, read_serving_csv
from agents.evaluation.serving_lines import SERVING, read_serving_lines
from agents.evaluation.serving_rows import ServingRow
from agents.evaluation.vtrain import is_vtrain, read_vtrain
from agents.evaluation.workloads import Workload, read_workloads
from projector.errors import InvalidDescription

FileKind = Literal["rows", "workloads", "vtrain", "serving", "serving_csv"]
LINES_LOOKED_AT = 20
# keys that only rows, or only workloads, have
ROW_KEYS, WORKLOAD_KEYS = frozenset({"adopted", "measured"}), frozenset({"expert_row_ids", "row_ids"})


@dataclass(frozen=True)
class TextFile:
    """A file that was read: its name without folders, and its text."""

    name: str
    text: str


@dataclass(frozen=True)
class Material:
    """The rows and workloads of several files, in their order; serving: rows of served traffic."""

    rows: tuple[MeasuredRow | Unreadable, ...]
    workloads: tuple[Workload | Unreadable, ...]
    serving: tuple[ServingRow | Unreadable, ...] = ()

    @property
    def row_ids(self) -> frozenset[str]:
        """Ids of the rows that could be read."""
        return frozenset(row.id for row in self.rows if isinstance(row, MeasuredRow))

    @property
    def strata(self) -> dict[str, str]:
        """Workload id -> stratum."""
        return {one.id: one.stratum for one in self.workloads if isinstance(one, Workload)}

    def missing_rows(self) -> frozenset[str]:
        """Ids that the workloads name and no row has."""
        named = {name for one in self.workloads if isinstance(one, Workload) for name in one.rows}
        return frozenset(named) - self.row_ids


def read_material(files: Iterable[TextFile]) -> Material:
    """Everything the files hold. InvalidDescription for a file that is neither rows, workloads nor a vTrain sweep."""
    rows: list[MeasuredRow | Unreadable] = []
    workloads: list[Workload | Unreadable] = []
    serving: list[ServingRow | Unreadable] = []
    for file in files:
        kind = kind_of(file)
        if kind == "rows":
            rows += read_rows(file.text, file.name)
        elif kind == "vtrain":
            rows += read_vtrain(file.text, file.name)
        elif kind == "serving":
            serving += read_serving_lines(file.text, file.name)
        elif kind == "serving_csv":
            serving += read_serving_csv(file.text, file.name)
        else:
            workloads += read_workloads(file.text, file.name)
    return Material(tuple(rows), tuple(workloads), tuple(serving))


def kind_of(file: TextFile) -> FileKind:
    """What a file holds, by its first lines."""
    lines = [line for line in file.text.split("\n", LINES_LOOKED_AT)[:LINES_LOOKED_AT] if line.strip()]
    if lines and is_vtrain(lines[0]):
        return "vtrain"
    if lines and is_serving_csv(lines[0]):
        return "serving_csv"
    for line in lines:
        values = _values(line)
        if values.keys() & WORKLOAD_KEYS:
            return "workloads"
        if values.keys() & ROW_KEYS:
            return "serving" if values.get("phase") == SERVING else "rows"
    raise InvalidDescription(
        f"{file.name} holds neither measured rows nor workloads",
        hint="one JSON object a line with `adopted` and `measured`, or with `expert_row_ids`, or a CSV sweep",
    )


def rows_of(material: Material, workloads: Sequence[Workload]) -> tuple[MeasuredRow | Unreadable, ...]:
    """The rows of the material that belong to the workloads."""
    named = {name for one in workloads for name in one.rows}
    return tuple(row for row in material.rows if row.id in named)


def _values(line: str) -> dict[str, object]:
    try:
        return json_object(line)
    except Refused:
        return {}
