"""/healthz and /readyz."""

import threading

from app import wiring


class Base:
    """A knowledge base that only opens and closes."""

    closed = False

    def close(self) -> None:
        self.closed = True


class Embedder:
    """An embedder that waits to be loaded."""

    def __init__(self, gate: threading.Event) -> None:
        self.gate = gate
        self.loaded = False

    def load(self) -> None:
        assert self.gate.wait(60)
        self.loaded = True


async def test_healthz_answers_at_once(client) -> None:
    answer = await client.get("/healthz")
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")


async def test_a_service_that_warms_nothing_is_ready_on_demand(client) -> None:
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["embedder"]["state"]) == (200, "on_demand")


async def test_readyz_waits_for_the_embedder(serve, monkeypatch) -> None:
    gate, base = threading.Event(), Base()
    monkeypatch.setattr(wiring, "MiniLmEmbedder", lambda: Embedder(gate))
    monkeypatch.setattr(wiring.KnowledgeOwner, "_open", lambda self: base)
    async with serve(warm_embedder=True) as client:
        starting = await client.get("/readyz")
        assert (starting.status_code, starting.json()["embedder"]["state"]) == (503, "starting")
        assert starting.json()["database"]["state"] == "ready"
        gate.set()
        while (ready := await client.get("/readyz")).status_code == 503:
            pass
        assert ready.json()["ready"]
        assert not base.closed
    assert base.closed


async def test_readyz_says_why_the_knowledge_store_cannot_be_opened(serve, tmp_path) -> None:
    from filelock import FileLock

    (tmp_path / "data").mkdir()
    with FileLock(tmp_path / "data" / "knowledge.lock"):
        async with serve(warm_embedder=True) as client:
            while (answer := (await client.get("/readyz")).json())["knowledge_store"]["state"] == "starting":
                pass
    assert answer["knowledge_store"]["state"] == "failed"
    assert answer["knowledge_store"]["detail"] == "another process owns the knowledge store data_dir/knowledge"


async def test_readyz_says_when_the_database_is_away(client, monkeypatch) -> None:
    async def away(self) -> None:
        raise OSError("gone")

    monkeypatch.setattr("app.storage.database.Database.ping", away)
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["database"]["state"]) == (503, "failed")


async def test_a_service_that_stops_closes_its_advisor(serve, monkeypatch) -> None:
    closed = []

    class Advisor:
        name = "rules"

        def close(self) -> None:
            closed.append(True)

    monkeypatch.setattr("app.service.advisor_of", lambda settings: Advisor())
    async with serve() as client:
        assert (await client.get("/healthz")).status_code == 200
        assert closed == []
    assert closed == [True]
