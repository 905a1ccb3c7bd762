"""Job rows as answers."""

from datetime import datetime
from uuid import UUID

from pydantic import ValidationError

from app.errors import StorageMismatch
from app.schemas import JobResult, PlanAnswer, PlanLinks, PlanPending
from app.schemas_launch import ProposalLaunch
from app.storage.jobs import Job


def links_of(job_id: UUID) -> PlanLinks:
    """Where the plan is found."""
    plan = f"/v1/plans/{job_id}"
    return PlanLinks(self=plan, report=f"{plan}/report", launch=f"{plan}/launch")


def answer_of(job: Job) -> PlanAnswer:
    """The answer of a job that is done; StorageMismatch where a version with other records stored it."""
    result = result_of(job)
    return PlanAnswer(
        **{name: getattr(result.plan, name) for name in type(result.plan).model_fields},
        id=job.id,
        created_at=job.created_at,
        finished_at=_known(job.finished_at),
        links=links_of(job.id),
        files=job.traces,
        trace=result.trace,
    )


def launch_of(job: Job) -> tuple[ProposalLaunch, ...] | None:
    """The launch configurations of a job that is done; None where an older version stored it without."""
    return result_of(job).launch


def pending_of(job: Job, waited_s: float) -> PlanPending:
    """The answer of a job that is queued or running."""
    status = "running" if job.state == "running" else "queued"
    return PlanPending(
        id=job.id,
        status=status,
        created_at=job.created_at,
        started_at=job.started_at,
        waited_s=waited_s,
        links=links_of(job.id),
    )


def result_of(job: Job) -> JobResult:
    """What a job that is done stored; StorageMismatch where a version with other records stored it."""
    try:
        return JobResult.model_validate_json(job.result or "")
    except ValidationError as error:
        raise StorageMismatch(
            f"plan {job.id} was stored by a version whose records differ", hint="POST the trace again"
        ) from error


def _known(time: datetime | None) -> datetime:
    if time is None:
        raise StorageMismatch("a finished plan without the time it finished", hint="POST the trace again")
    return time
