"""The service as an ASGI application: `uvicorn app.main:create_app --factory`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import environment, openapi, problem_handlers, service
from app.clock import utc_now
from app.jobs import Clock
from app.routes import (
    catalog,
    comparisons,
    health,
    history,
    knowledge,
    messages,
    pages,
    plans,
    rankings,
    simulations,
)
from app.settings import Settings, load_settings
from app.wiring import Planner


def create_app(settings: Settings | None = None, *, planner: Planner | None = None, clock: Clock = utc_now) -> FastAPI:
    """The application. `settings` None: those of the environment; `planner` None: the planning graph."""
    environment.settle()
    parts = service.build(settings or load_settings(), planner, clock)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with service.running(parts):
            yield

    # the documentation pages of FastAPI load scripts from elsewhere: only the document itself is served
    app = FastAPI(title="Shardwise", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.service = parts
    app.openapi = lambda: openapi.document(app)  # type: ignore[method-assign]
    for router in (
        plans.router,
        messages.router,
        comparisons.router,
        rankings.router,
        simulations.router,
        catalog.router,
        knowledge.router,
        knowledge.pages,
        history.router,
        health.router,
        pages.router,
    ):
        app.include_router(router)
    problem_handlers.install(app)
    app.add_middleware(SafeHeaders)
    return app


class SafeHeaders:
    """Headers that keep a browser from guessing types, framing pages or telling other sites where it came from."""

    HEADERS = (
        ("X-Content-Type-Options", "nosniff"),
        ("X-Frame-Options", "DENY"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
        ("Cache-Control", "no-store"),
    )

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the headers to every HTTP response."""

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self.HEADERS:
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, send_safely if scope["type"] == "http" else send)
