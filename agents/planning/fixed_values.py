"""Fixed values that leave nothing to choose: refused with the rule that forbids them and with what would do."""

import numpy as np

from agents.planning.job import Job
from agents.planning.numerics import NUMERIC_FIELDS
from agents.planning.reference import Reference
from projector.errors import InvalidDescription
from projector.forbidden import forbidden
from projector.specs.plan_batch import PlanBatch


def require_possible(job: Job) -> None:
    """InvalidDescription where the constraints' fixed values are why no legal plan exists."""
    found = forbidden(job.workload, job.architecture, job.cluster, job.hardware, job.constraints, job.current)
    if found is not None:
        raise InvalidDescription(found.text, hint=found.hint)


def require_numerics_kept(batch: PlanBatch, job: Job, reference: Reference) -> None:
    """InvalidDescription where a fixed value changes what the current plan computes in, and nobody allowed that."""
    if job.constraints.allow_numerics_changes:
        return
    for field in NUMERIC_FIELDS:
        runs = getattr(reference.plan, field)
        if field in job.constraints.fixed and not np.any(batch.columns[field] == runs):
            raise InvalidDescription(
                f"constraints.fixed sets {field} = {job.constraints.fixed[field]}, {reference.label} has {runs}: "
                "numerics would change",
                hint="set constraints.allow_numerics_changes, or leave the field as it is",
            )
