"""Practice beside a job: the layouts published runs suggest for it, as a share of each candidate and as reasons."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from agents.advisors.protocol import Adoption, Candidate
from agents.planning.job import Job
from agents.planning.scores import Scores
from agents.practice.model import PracticeModel
from agents.practice.practice import Practice, practice_of
from agents.practice.table import LayoutTable, Setting, layout_table
from knowledge_base.past import PastMatch
from projector.batch_projection import ProjectionBatch
from projector.specs.objective import DEFAULT_OBJECTIVE

# objectives for which what was adopted elsewhere says something: those a faster step serves
FAST = frozenset({DEFAULT_OBJECTIVE["training"], "step_time_s", "mfu_frac"})
MOST_PAST = 50
MOST_PROPOSED = 8


def job_table(job: Job, scores: Scores, passing: NDArray[np.bool_]) -> LayoutTable | None:
    """The layouts of a training job whose model and chip are known and whose steps nothing measured; else None: there
    is nothing published to hold it against, or there is something better. None too where values are fixed or bounded:
    published runs chose from the whole space, and no chance was calibrated on a part of it."""
    projected, hardware = scores.projections, job.hardware
    known = isinstance(projected, ProjectionBatch) and job.architecture is not None and hardware is not None
    if not known or job.phase != "training" or job.anchor is not None or job.objective not in FAST:
        return None
    if job.constraints.fixed or job.constraints.bounds:
        return None
    assert isinstance(projected, ProjectionBatch)
    assert job.architecture is not None
    assert hardware is not None
    if not (passing & (scores.good > 0)).any():
        return None
    devices = int(projected.batch.devices[0])
    return layout_table(projected, scores.good, passing, Setting(job.workload, job.architecture, hardware, devices))


def job_practice(
    job: Job, scores: Scores, passing: NDArray[np.bool_], past: Sequence[PastMatch], model: PracticeModel
) -> Practice | None:
    """The posterior over the job's layouts; None where practice says nothing of it (`job_table`)."""
    table = job_table(job, scores, passing)
    return None if table is None else practice_of(table, past, job.framework, model)


def proposed_rows(practice: Practice | None) -> list[int]:
    """Rows of the scored batch: the best plan of each layout that practice puts first."""
    return [] if practice is None else practice.table.rows[practice.order()[:MOST_PROPOSED]].tolist()


def with_practice(candidates: Iterable[Candidate], practice: Practice | None) -> tuple[Candidate, ...]:
    """The candidates with the share of their layout and what speaks for it."""
    return tuple(one if practice is None else _with_adoption(one, practice) for one in candidates)


def _with_adoption(candidate: Candidate, practice: Practice) -> Candidate:
    place = practice.place(candidate.plan)
    if place is None:
        return candidate
    calibration = practice.weights.calibration
    share = float(practice.share[place])
    adoption = Adoption(
        share=share,
        chance=None if calibration is None else calibration.chance(share),
        cases=0 if calibration is None else calibration.cases,
        ece=0.0 if calibration is None else calibration.ece,
        reasons=practice.reasons(place),
    )
    return candidate.model_copy(update={"adoption": adoption})
