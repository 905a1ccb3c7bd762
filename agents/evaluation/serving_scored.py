"""Serving cases with their projections: those that differ in nothing but the plan are projected together."""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from agents.evaluation.refusal import Refused, or_refused
from agents.evaluation.serving_cases import Metric, ServingCase
from projector.batch_projection import ProjectionBatch
from projector.errors import ShardwiseError
from projector.project import project_many
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import WorkloadSpec

# what a bare roofline gets of HBM bandwidth
ROOFLINE_FRAC = 0.7


@dataclass(frozen=True)
class ServingScored:
    """A case and what is projected of it: its figures with the factors of their interval, whether it fits.

    roofline_tpot_s: weights and KV of a step read once at 70 % of HBM bandwidth, the bar to clear.
    """

    case: ServingCase
    projected: dict[Metric, float]
    low_factor: float
    high_factor: float
    roofline_tpot_s: float
    too_large: bool

    def measured(self, metric: Metric) -> float | None:
        """The measured figure, where the row prints it."""
        return next((one.value for one in self.case.targets if one.metric == metric), None)


def score_serving(cases: Sequence[ServingCase]) -> list[ServingScored | Refused]:
    """Every case in its order."""
    together: dict[tuple[Hashable, ...], list[int]] = defaultdict(list)
    for place, case in enumerate(cases):
        key = (_open_load(case), case.architecture, case.cluster, case.hardware.id, case.stack)
        together[(*key, _calibration(case))].append(place)
    found: list[ServingScored | Refused | None] = [None] * len(cases)
    for places in together.values():
        for place, outcome in zip(places, _together([cases[place] for place in places]), strict=True):
            found[place] = outcome
    assert all(one is not None for one in found)
    return [one for one in found if one is not None]


def _open_load(case: ServingCase) -> WorkloadSpec:
    """The traffic, without the requests in flight where they are the seats of the plan: then loads go together."""
    seats = case.plan.max_num_seqs * case.plan.replicas
    same = case.workload.concurrency == seats
    return case.workload.model_copy(update={"concurrency": None}) if same else case.workload


def _calibration(case: ServingCase) -> Hashable:
    """Refits project the same chip with other values."""
    return case.hardware.calibration.model_dump_json()


def _together(cases: Sequence[ServingCase]) -> Iterator[ServingScored | Refused]:
    """The outcomes of a batch; one at a time where the projector refuses it, to know which it is."""
    projected = or_refused(lambda: _project(cases))
    if not isinstance(projected, Refused):
        yield from (_scored(case, projected, place) for place, case in enumerate(cases))
    elif len(cases) == 1:
        yield projected
    else:
        for case in cases:
            yield from _together([case])


def _project(cases: Sequence[ServingCase]) -> ProjectionBatch:
    one, workload = cases[0], _open_load(cases[0])
    batch = PlanBatch.from_plans([case.plan for case in cases])
    seats = workload.concurrency is None
    try:
        return project_many(
            batch, workload, one.architecture, one.cluster, one.hardware, stack=one.stack, all_seats_taken=seats
        )
    except ShardwiseError as error:
        raise Refused(str(error)) from error


def _scored(case: ServingCase, projected: ProjectionBatch, place: int) -> ServingScored | Refused:
    max_concurrency = projected.metrics.max_concurrency
    assert max_concurrency is not None
    if _waits_for_seats(case) and max_concurrency[place] >= (case.workload.concurrency or 0):
        return Refused("TTFT exceeds the time of all tokens: fewer seats than requests in flight, and not printed")
    figures: dict[Metric, float] = {}
    for target in case.targets:
        column = getattr(projected.metrics, target.metric)
        if column is None or not np.isfinite(column[place]):
            return Refused("called too large for its chips: not one request fits")
        figures[target.metric] = float(column[place])
    memory = projected.memory
    moved = memory.weights_bytes[place] + memory.kv_cache_bytes[place]
    rate = ROOFLINE_FRAC * case.hardware.hbm_bytes_per_s.value / case.hardware.devices_per_chip
    return ServingScored(
        case=case,
        projected=figures,
        low_factor=float(np.broadcast_to(projected.interval.low_factor, len(projected.batch))[place]),
        high_factor=float(np.broadcast_to(projected.interval.high_factor, len(projected.batch))[place]),
        roofline_tpot_s=float(moved / rate * case.plan.pp),
        too_large=not bool(projected.fits[place]),
    )


def _waits_for_seats(case: ServingCase) -> bool:
    """Whether by the row's own figures at least half of its requests in flight waited, with seats it does not print."""
    measured, row = case.row.measured, case.row
    if row.load != "closed" or row.max_num_seqs is not None or measured.ttft_s is None or measured.tpot_s is None:
        return False
    return measured.ttft_s > measured.tpot_s * (case.workload.output_len or 0)
