import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import httpx
import pytest
import sample_answer

from agents.request import PlanRequest
from app.main import create_app
from app.settings import Settings
from app.wiring import Planner, PlanOutcome

BASE = "http://shardwise.test"


@dataclass
class Clock:
    """A clock that moves when it is told to."""

    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **amount: float) -> None:
        self.now += timedelta(**amount)


@dataclass
class ScriptedPlanner:
    """Answers with the sample, or raises what it is told; remembers what it was asked, and can be held back."""

    kernel: str = "all_reduce"
    error: Exception | None = None
    asked: list[tuple[PlanRequest, list[bytes]]] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    names: Sequence[str] | None = None
    plan_ids: list[UUID | None] = field(default_factory=list)
    entered: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def __post_init__(self) -> None:
        self.gate.set()

    def plan(
        self,
        request: PlanRequest,
        traces: Sequence[Path],
        names: Sequence[str] | None = None,
        plan_id: UUID | None = None,
    ) -> PlanOutcome:
        self.names = names
        self.plan_ids.append(plan_id)
        self.asked.append((request, [path.read_bytes() for path in traces]))
        self.entered.release()
        assert self.gate.wait(60)
        if self.error is not None:
            raise self.error
        return PlanOutcome(sample_answer.result(self.kernel), sample_answer.summary(self.kernel) if traces else None)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def planner() -> Iterator[ScriptedPlanner]:
    planner = ScriptedPlanner()
    yield planner
    planner.gate.set()


Start = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture
def serve(tmp_path: Path, planner: ScriptedPlanner, clock: Clock) -> Start:
    """Start the app over an empty data_dir: `async with serve(max_upload_bytes=10) as client`."""

    @asynccontextmanager
    async def start(*, planner: Planner | None = planner, **settings: object) -> AsyncIterator[httpx.AsyncClient]:
        options = {"data_dir": tmp_path / "data", "warm_embedder": False} | settings
        app = create_app(Settings(**options), planner=planner, clock=clock)
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url=BASE) as client:
            yield client

    return start


@pytest.fixture
async def client(serve: Start) -> AsyncIterator[httpx.AsyncClient]:
    async with serve() as client:
        yield client
