"""Workloads: sets of comparable rows with the layouts that experts adopted, as their index file states them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agents.evaluation.fields import Fields
from agents.evaluation.refusal import Refused
from agents.evaluation.rows import Degrees, MeasuredRow, Unreadable, json_object

TRIVIAL = "trivial"


@dataclass(frozen=True)
class Workload:
    """One workload: what the planner is told, and which rows say what experts adopted."""

    id: str
    phase: str
    model: str
    family: str
    chip: str
    chips: int | None
    precision: str | None
    seq_len: int | None
    global_batch: int | None
    eligible: bool
    nontrivial: bool
    stratum: str
    layout_key: str
    frameworks: tuple[str, ...]
    expert_rows: tuple[str, ...]
    rows: tuple[str, ...]
    file: str

    @property
    def group(self) -> tuple[str, str]:
        """(family, chip): what is held out together."""
        return (self.family, self.chip.lower())


def read_workloads(text: str, file: str) -> Iterator[Workload | Unreadable]:
    """Every line of a workloads file."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            name = f"{file}:{number}"
            try:
                values = json_object(line)
                name = str(values.get("workload_id") or name)
                yield _workload(Fields(values), name)
            except Refused as reason:
                yield Unreadable(name, file, str(reason))


def adopted_layouts(workload: Workload, rows: Mapping[str, MeasuredRow]) -> frozenset[Degrees]:
    """(tp, pp, cp, ep) of every expert row at hand."""
    return frozenset(row.plan.degrees for row in expert_rows(workload, rows))


def expert_rows(workload: Workload, rows: Mapping[str, MeasuredRow]) -> Sequence[MeasuredRow]:
    """The expert rows at hand."""
    return [rows[name] for name in workload.expert_rows if name in rows]


def _workload(workload: Fields, name: str) -> Workload:
    chip, phase = workload.text("chip"), workload.text("phase")
    if chip is None or phase is None:
        raise Refused("phase or chip not stated")
    model = workload.text("model") or ""
    nontrivial = bool(workload.switch("nontrivial_parallelism"))
    return Workload(
        id=name,
        phase=phase,
        model=model,
        family=workload.text("family") or model,
        chip=chip,
        chips=_one_count(workload),
        precision=workload.text("precision"),
        seq_len=workload.whole("seq_len"),
        global_batch=workload.whole("global_batch"),
        eligible=bool(workload.switch("topk_eligible")),
        nontrivial=nontrivial,
        stratum=workload.text("stratum") or ("nontrivial, not classed" if nontrivial else TRIVIAL),
        layout_key=workload.text("layout_key") or name,
        frameworks=workload.texts("framework"),
        expert_rows=workload.texts("expert_row_ids"),
        rows=workload.texts("row_ids"),
        file=workload.text("file") or "",
    )


def _one_count(workload: Fields) -> int | None:
    """The number of chips; None where rows on several numbers are compared (serving states a list)."""
    if isinstance(workload.values.get("count"), list):
        return None
    chips = workload.whole("count")
    if chips is not None and chips < 1:
        raise Refused(f"count is {chips}, not a positive number")
    return chips
