"""`shardwise serve` as a process: one owner of a data folder, a free port, a clean end."""

import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from app.cli import main
from app.errors import DataDirBusy
from app.storage.owner import LOCK_NAME, DataDirLock

PLANNER = """
import sys, threading
from app import service, wiring
class Stuck:
    def plan(self, request, traces, names=None, plan_id=None):
        print("planning", flush=True)
        threading.Event().wait()
service.TracePlanner = lambda *_, **__: Stuck()
wiring.KnowledgeOwner.warm = lambda self: None
from app.cli import main
sys.exit(main(sys.argv[1:]))
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def stuck_service(data_dir: Path):
    """A service whose plans never end. Yields (process, URL) once it answers."""
    port = free_port()
    command = [sys.executable, "-c", PLANNER, "serve", "--port", str(port), "--data-dir", str(data_dir)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        url = f"http://127.0.0.1:{port}"
        with httpx.Client(transport=httpx.HTTPTransport(retries=8)) as client:
            client.get(f"{url}/healthz", timeout=60).raise_for_status()
        yield process, url
    finally:
        process.kill()
        process.communicate()


def test_ctrl_c_ends_a_service_whose_plan_and_whose_client_still_wait(tmp_path: Path) -> None:
    with stuck_service(tmp_path) as (process, url):
        accepted = httpx.post(f"{url}/v1/plans", json={"wait": 0})
        assert process.stdout.readline() == "planning\n"
        process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "Traceback" not in log
    with stuck_service(tmp_path) as (process, url):
        # the cut-off plan was put back and is taken again
        assert process.stdout.readline() == "planning\n"
        assert httpx.get(url + accepted.headers["Location"]).json()["status"] == "running"


def test_a_second_service_on_one_data_folder_leaves_it_alone(tmp_path: Path, capsys) -> None:
    with stuck_service(tmp_path) as (process, url):
        accepted = httpx.post(f"{url}/v1/plans", json={"wait": 0})
        assert process.stdout.readline() == "planning\n"
        half = tmp_path / "traces" / "incoming" / "half"
        half.write_bytes(b"still coming")
        assert main(["serve", "--port", str(free_port()), "--data-dir", str(tmp_path)]) == 2
        told = capsys.readouterr().err
        assert "another service owns this data folder" in told
        assert "--data-dir" in told
        assert half.exists()
        assert httpx.get(url + accepted.headers["Location"]).json()["status"] == "running"


def test_a_data_folder_that_is_a_file_is_exit_2(tmp_path: Path, capsys) -> None:
    (tmp_path / "data").write_text("")
    assert main(["serve", "--port", str(free_port()), "--data-dir", str(tmp_path / "data")]) == 2
    assert "data_dir cannot be used: File exists" in capsys.readouterr().err


async def test_an_app_that_is_not_alone_does_not_start(serve, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with DataDirLock(tmp_path / "data").held():
        with pytest.raises(DataDirBusy):
            async with serve():
                pass
        assert [path.name for path in (tmp_path / "data").iterdir()] == [LOCK_NAME]
        async with serve(chroma_host="chroma") as client:
            assert (await client.get("/healthz")).status_code == 200


@pytest.mark.parametrize(
    ("host", "told"), [("127.0.0.1", "Address already in use"), ("no.such.host.invalid", "no address of this machine")]
)
def test_a_port_or_host_that_cannot_be_had_is_exit_2(tmp_path: Path, capsys, host, told) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["serve", "--host", host, "--port", str(port), "--data-dir", str(tmp_path / "data")]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "data" / "shardwise.db").exists()
