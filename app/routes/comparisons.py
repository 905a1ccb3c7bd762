"""POST /v1/comparisons: two traces of a job, before and after a change."""

import asyncio
from typing import Self
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import Field, model_validator
from starlette.responses import Response

from app.answers import answer_of
from app.comparing import checked_change, promised_by
from app.daemon import in_daemon_thread
from app.errors import JobTimeLimit, NotFound
from app.reading import read_job
from app.routes.documented import problems, refuse_query
from app.service import Service, service_of
from app.storage.traces import IncomingTrace
from app.uploads import received_pair
from app.validation import parse
from projector.specs.record import Record
from traces.compare.compare import compare
from traces.compare.types import Comparison
from traces.summary_types import TraceSummary

router = APIRouter(tags=["comparisons"])


class ComparisonRequest(Record):
    """What the change was promised to bring: by a plan of this service, or as the client states it."""

    plan_id: UUID | None = Field(None, description="plan whose proposal was adopted")
    proposal: int = Field(1, ge=1, description="rank of the adopted proposal of plan_id")
    predicted_change_frac: float | None = Field(
        None, description="promised change of the step time, -0.2 for a fifth less"
    )

    @model_validator(mode="after")
    def _one_promise(self) -> Self:
        if self.plan_id is not None and self.predicted_change_frac is not None:
            raise ValueError("plan_id and predicted_change_frac both state the promise")
        if self.plan_id is None and "proposal" in self.model_fields_set:
            raise ValueError("proposal needs plan_id")
        return self


FAILED = {
    "status_400": "Corrupt or empty trace, or a body that is not what its content type says",
    "status_404": "No such plan",
    "status_413": "A limit on bytes, compression ratio or events was passed",
    "status_415": "Unknown or unread trace format, or a content type that is no form",
    "status_422": "A description that is malformed or contradicts itself, or a plan that promises nothing",
    "status_500": "A fault of the service",
    "status_504": "Reading the traces took longer than the service lets it take",
}
FORM = {
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["before", "after"],
                "properties": {
                    "before": {"type": "array", "items": {"type": "string", "format": "binary"}},
                    "after": {"type": "array", "items": {"type": "string", "format": "binary"}},
                    "request": {"$ref": "#/components/schemas/ComparisonRequest"},
                },
            }
        }
    }
}
DONE = {"model": Comparison, "description": "What moved, and whether the promise was kept"}


@router.post("/v1/comparisons", responses={200: DONE, **problems(**FAILED)}, openapi_extra={"requestBody": FORM})
async def post_comparison(request: Request) -> Response:
    """Compare two runs of a job term by term, and measure a promised gain.

    A form with the parts `before` and `after` (traces, archives or written summaries; several files are the ranks of
    one job) and, where a gain was promised, `request`. Nothing of it is kept.
    """
    refuse_query(request, body_keys=ComparisonRequest.model_fields)
    service = service_of(request)
    async with received_pair(request, service.store, service.settings.max_upload_bytes) as pair:
        asked = parse(ComparisonRequest, pair.request) if pair.request.strip() else ComparisonRequest()
        predicted = await _promise(asked, service)
        before = await _summary(pair.before, "before", service)
        after = await _summary(pair.after, "after", service)
    comparison = compare(before, after, predicted_change_frac=predicted)
    return Response(comparison.model_dump_json(), media_type="application/json")


async def _promise(asked: ComparisonRequest, service: Service) -> float | None:
    if asked.plan_id is None:
        return None if asked.predicted_change_frac is None else checked_change(asked.predicted_change_frac)
    job = await service.runner.get(asked.plan_id)
    if job.state != "done":
        raise NotFound(f"plan {asked.plan_id} is {job.state}: it has no proposals", hint="name a plan that is done")
    return promised_by(answer_of(job).proposals, asked.proposal)


async def _summary(files: tuple[IncomingTrace, ...], side: str, service: Service) -> TraceSummary:
    """Read one side in a thread, within the limit of a job; one that passes it is left to itself."""
    limit_s = service.settings.job_limit_s
    names = [file.name or f"{side} {number}" for number, file in enumerate(files, 1)]

    def read() -> TraceSummary:
        paths = [file.path for file in files]
        return read_job(paths, service.settings, names=names, scratch=service.settings.scratch_dir)

    try:
        return await asyncio.wait_for(in_daemon_thread(read), limit_s)
    except TimeoutError:
        raise JobTimeLimit(
            f"reading the traces of `{side}` took longer than the limit of {limit_s:g} s",
            hint="send fewer or smaller traces, or what `shardwise summarise` writes",
        ) from None
