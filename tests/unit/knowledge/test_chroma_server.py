"""The same code against a real `chroma run` on loopback."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from knowledge_base.index import rebuild, sync
from knowledge_base.note import parse_note
from knowledge_base.retrieve import KnowledgeBase
from knowledge_base.store import open_server
from projector.errors import KnowledgeUnavailable

CHROMA = Path(sys.executable).parent / "chroma"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A running server; `args[-1]` is its port."""
    if not CHROMA.exists() and "CI" not in os.environ:
        pytest.skip(f"no {CHROMA}")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    command = [str(CHROMA), "run", "--host", "127.0.0.1", "--path", str(tmp_path / "server"), "--port", port]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        # the transport retries a refused connection with growing pauses until the server listens
        with httpx.Client(transport=httpx.HTTPTransport(retries=7)) as client:
            client.get(f"http://127.0.0.1:{port}/api/v2/heartbeat").raise_for_status()
        yield process
    finally:
        process.terminate()
        process.wait(timeout=30)


def test_two_clients_share_a_server(
    server: subprocess.Popen[bytes], embedder: Any, other_embedder: Any, note_text: Callable[..., str]
) -> None:
    port = int(server.args[-1])  # type: ignore[index,arg-type]
    note = parse_note(note_text(), origin="n.md")
    with open_server("127.0.0.1", port, embedder) as store, open_server("127.0.0.1", port, embedder) as second:
        assert sync(store, embedder, [note]).embedded == 5
        assert sync(second, embedder, [note]).unchanged == 5
        knowledge = KnowledgeBase(second, embedder)
        (found,) = knowledge.search("Doors cost wall", phase="training", causes=["exposed_tp"], hardware_kind="gpu")
        assert found.note_id == "wider-doors"
        assert knowledge.get_chunk(found.chunk_id).text == found.quote
        assert knowledge.search("Doors cost wall", phase="serving") == ()
        report = rebuild(store, embedder, [note])
        assert (report.embedded, report.rebuilt_because) == (5, "it was asked for")
    with open_server("127.0.0.1", port, other_embedder) as store:
        assert store.reset_reason is not None
        assert store.count() == 0
        server.terminate()
        server.wait(timeout=30)
        with pytest.raises(KnowledgeUnavailable, match="knowledge store failed"):
            store.count()
