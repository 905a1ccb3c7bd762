"""The processes of docker-compose.yml, started by hand: a Chroma server, and the service that keeps its notes there."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from test_knowledge import MARKDOWN, note

from app.commands.demo import local_service

ROOT = Path(__file__).parents[2]
SERVICES = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
TRACE = ROOT / "tests/data/traces/b200_vllm_eager.json.gz"
BIN = Path(sys.executable).parent


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def is_healthy(service: str, port: str) -> bool:
    """What the container engine would see: the exit code of the health check, asked on another port."""
    command = SERVICES[service]["healthcheck"]["test"][1:]
    inside = {"api": "8421", "chroma": "8000"}[service]
    assert f":{inside}/" in command[-1]
    script = command[-1].replace(f":{inside}/", f":{port}/")
    return subprocess.run([sys.executable, *command[1:-1], script], capture_output=True).returncode == 0


@contextmanager
def chroma(folder: Path) -> Iterator[str]:
    """The server as the compose file starts it, on a free port of this machine. Yields the port."""
    port = free_port()
    swapped = {"0.0.0.0": "127.0.0.1", "8000": port, "/data": str(folder)}  # noqa: S104
    name, *words = SERVICES["chroma"]["command"]
    command = [str(BIN / name), *(swapped.get(word, word) for word in words)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        # the transport retries a refused connection with growing pauses until the server listens
        with httpx.Client(transport=httpx.HTTPTransport(retries=7)) as client:
            client.get(f"http://127.0.0.1:{port}/api/v2/heartbeat").raise_for_status()
        yield port
    finally:
        process.terminate()
        process.wait(timeout=30)


def plan(url: str) -> dict[str, Any]:
    with TRACE.open("rb") as file:
        answer = httpx.post(f"{url}/v1/plans", files={"trace": file}, data={"request": '{"wait": 60}'}, timeout=120)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_plan_is_made_over_a_chroma_server(tmp_path: Path, monkeypatch) -> None:
    if not (BIN / "chroma").exists() and "CI" not in os.environ:
        pytest.skip(f"no {BIN / 'chroma'}")
    data = tmp_path / "data"
    data.mkdir()
    with chroma(tmp_path / "chroma") as port:
        assert is_healthy("chroma", port)
        monkeypatch.setenv("SHARDWISE_CHROMA_HOST", "127.0.0.1")
        monkeypatch.setenv("SHARDWISE_CHROMA_PORT", port)
        with local_service(data) as url:
            assert is_healthy("api", url.rsplit(":", 1)[1])
            cited = {c["note_id"] for proposal in plan(url)["proposals"] for c in proposal["citations"]}
            assert cited
            added = httpx.post(f"{url}/v1/knowledge", content=note(), headers=MARKDOWN, timeout=60)
            assert (added.status_code, added.json()["index"]["embedded"]) == (201, 5)
        assert not (data / "knowledge").exists()
        # the service is gone, the server still has the vectors, and the note is in the data folder
        with local_service(data) as url:
            found = httpx.get(f"{url}/v1/knowledge?query=halls%20and%20doors&causes=exposed_tp", timeout=60).json()
            assert found["notes"][0]["note_id"] == "wider-doors"
            again = httpx.post(f"{url}/v1/knowledge", content=note(), headers=MARKDOWN, timeout=60)
            assert (again.status_code, again.json()["index"]["embedded"]) == (200, 0)
    assert not is_healthy("chroma", port)
