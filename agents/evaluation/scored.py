"""A case with its projection: of the plans a row may mean the fastest that fits, where none fits the smallest."""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from agents.evaluation.cases import Case, Option
from agents.evaluation.refusal import Refused, or_refused
from agents.evaluation.row_frameworks import framework_of_row
from projector.batch_projection import ProjectionBatch
from projector.breakdown import Projection
from projector.cost.memory import runtime_bytes
from projector.errors import ShardwiseError
from projector.legality import check
from projector.project import project_many
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import WorkloadSpec


@dataclass(frozen=True)
class Scored:
    """A case, the global batch that was taken, the projection, and the rules the plan breaks although it ran."""

    case: Case
    workload: WorkloadSpec
    projection: Projection
    broken_rules: tuple[str, ...]

    @property
    def measured_s(self) -> float | None:
        """Seconds a step of these tokens takes at the measured rate; None where no speed was printed."""
        target = self.case.target
        return None if target is None else target.s_per_token * step_tokens(self.workload)

    @property
    def projected_s(self) -> float:
        """Seconds a step is projected to take."""
        return self.projection.step_time_s

    @property
    def projected_s_per_token(self) -> float:
        """Seconds a token of the whole machine, for comparing steps of different sizes."""
        return self.projection.step_time_s / step_tokens(self.workload)

    @property
    def counted_bytes(self) -> float | None:
        """Projected bytes as the row's framework counts them; all but the reserve where nothing else is known."""
        memory = self.projection.memory
        if memory is None:
            return None
        row = self.case.row
        counter = framework_of_row(row.framework, row.source).memory_counter
        outside = {
            "allocated": memory.reserve_bytes,
            "reserved": min(runtime_bytes(self.case.hardware), memory.reserve_bytes),
            "device": 0.0,
        }
        return memory.total_bytes - outside[counter]

    @property
    def ran(self) -> bool:
        """Whether the run is known to have fitted."""
        return not self.case.row.measured.out_of_memory

    @property
    def too_large(self) -> bool:
        """Whether it is projected not to fit."""
        return self.projection.fit == "too_large"


def step_tokens(workload: WorkloadSpec) -> int:
    """Tokens of one step."""
    assert workload.seq_len is not None
    assert workload.global_batch is not None
    return workload.seq_len * workload.global_batch


def score(case: Case) -> Scored:
    """One case. Refused where the projector refuses the description."""
    found = score_all([case])[0]
    if isinstance(found, Refused):
        raise found
    return found


def score_all(cases: Sequence[Case]) -> list[Scored | Refused]:
    """Every case in its order; cases that differ in nothing but the plan are projected together."""
    together: dict[tuple[Hashable, ...], list[tuple[int, Option]]] = defaultdict(list)
    for place, case in enumerate(cases):
        for option in case.options:
            if option.plans:
                key = (option.workload, case.architecture, case.cluster, case.hardware.id, case.software)
                together[key].append((place, option))
    best: dict[int, _Choice] = {}
    refused: dict[int, Refused] = {}
    for members in together.values():
        for place, found in _choices(cases, members):
            if isinstance(found, Refused):
                refused.setdefault(place, found)
            elif place not in best or found.order < best[place].order:
                best[place] = found
    return [
        or_refused(partial(_scored, case, best[place])) if place in best else refused[place]
        for place, case in enumerate(cases)
    ]


@dataclass(frozen=True)
class _Choice:
    """The plan one option comes down to. Smaller order is better: what fits first, then time a token, or bytes."""

    option: Option
    projection: Projection
    order: tuple[bool, float]


def _choices(cases: Sequence[Case], members: Sequence[tuple[int, Option]]) -> Iterator[tuple[int, "_Choice | Refused"]]:
    """The choice of every member of a batch; one at a time where the projector refuses it, to know which it is."""
    case = cases[members[0][0]]
    batch = PlanBatch.from_plans([plan for _, option in members for plan in option.plans])
    projected = or_refused(lambda: _projected(case, members[0][1].workload, batch))
    if isinstance(projected, Refused):
        if len(members) == 1:
            yield members[0][0], projected
            return
        for member in members:
            yield from _choices(cases, [member])
        return
    start = 0
    for place, option in members:
        rows = slice(start, start + len(option.plans))
        start = rows.stop
        yield place, _choice(option, projected, rows)


def _projected(case: Case, workload: WorkloadSpec, batch: PlanBatch) -> ProjectionBatch:
    try:
        return project_many(batch, workload, case.architecture, case.cluster, case.hardware, software=case.software)
    except ShardwiseError as error:
        raise Refused(str(error)) from error


def _choice(option: Option, projected: ProjectionBatch, rows: slice) -> _Choice:
    fits, times, bytes_ = projected.fits[rows], projected.step_time_s[rows], projected.memory_bytes[rows]
    if fits.any():
        chosen = int(np.argmin(np.where(fits, times, np.inf)))
        order = (False, float(times[chosen]) / step_tokens(option.workload))
    else:
        chosen = int(np.argmin(bytes_))
        order = (True, float(bytes_[chosen]))
    return _Choice(option, projected[rows.start + chosen], order)


def _scored(case: Case, choice: _Choice) -> Scored:
    workload = choice.option.workload
    rules = check(choice.projection.plan, workload, case.architecture, case.cluster, case.hardware)
    return Scored(case, workload, choice.projection, tuple(rejection.text for rejection in rules))
