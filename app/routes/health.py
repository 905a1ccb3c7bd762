"""GET /healthz and /readyz."""

from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, Request, Response
from sqlalchemy.exc import SQLAlchemyError

from app.routes.documented import problems
from app.schemas import Liveness, Part, Readiness
from app.service import service_of

NOT_READY: dict[str, Any] = {"model": Readiness, "description": "A part is not ready yet"}
FAULT = problems(status_500="A fault of the service")

router = APIRouter(tags=["health"])


@router.get("/healthz", responses=FAULT)
async def healthz() -> Liveness:
    """Whether the process serves requests."""
    return Liveness(version=version("shardwise"))


@router.get("/readyz", responses={503: NOT_READY, **FAULT})
async def readyz(request: Request, response: Response) -> Readiness:
    """Whether a plan would be answered now: database, knowledge store, embedder, history."""
    service = service_of(request)
    store, embedder, history = service.knowledge.parts()
    parts = (await _database(request), store, embedder, history)
    ready = all(part.state in ("ready", "on_demand") for part in parts)
    response.status_code = 200 if ready else 503
    return Readiness(ready=ready, database=parts[0], knowledge_store=store, embedder=embedder, history=history)


async def _database(request: Request) -> Part:
    try:
        await service_of(request).database.ping()
    except (SQLAlchemyError, OSError) as error:
        return Part(state="failed", detail=type(error).__name__)
    return Part(state="ready")
