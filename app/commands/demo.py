"""`shardwise demo`: start the service, send it a trace, show what comes back."""

import argparse
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.commands.files import existing, say
from app.errors import ServiceFailed

HELP = "start the service, send it the trace bundled with the source, print the diagnosis and the proposals"
BUNDLED = Path("tests/data/traces/b200_vllm_eager.json.gz")
READY_WITHIN_S = 300.0
STOP_WITHIN_S = 20.0
POLL_S = 0.25
LOG_TAIL_LINES = 15


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """TRACE, --data-dir, --keep, --once."""
    parser.add_argument("trace", type=Path, nargs="?", default=BUNDLED, metavar="TRACE", help=f"default: {BUNDLED}")
    parser.add_argument("--data-dir", type=Path, default=Path(".shardwise/demo"), help="default: .shardwise/demo")
    end = parser.add_mutually_exclusive_group()
    end.add_argument("--keep", action="store_true", help="serve until Ctrl-C (the default in a terminal)")
    end.add_argument("--once", action="store_true", help="save the report page and stop (the default without one)")


def run(arguments: argparse.Namespace) -> int:
    """The whole way from a trace to proposals."""
    from agents.request import PlanRequest
    from app.client import post_trace
    from app.tables import show_plan

    trace = existing([arguments.trace])[0]
    data_dir: Path = arguments.data_dir
    data_dir.mkdir(parents=True, exist_ok=True)
    with local_service(data_dir) as url:
        say(f"POST {url}/v1/plans with {trace}")
        started = time.monotonic()
        answer = post_trace(url, trace, PlanRequest(wait=60))
        say(f"answered in {time.monotonic() - started:.2f} s\n")
        show_plan(answer, answer.trace)
        print(f"\nReport page: {url}{answer.links.report}")
        if arguments.keep or (sys.stdout.isatty() and not arguments.once):
            say("serving until Ctrl-C")
            _until_interrupted()
        else:
            print(f"Saved to: {_save_report(url + answer.links.report, data_dir / f'report-{answer.id}.html')}")
    return 0


@contextmanager
def local_service(data_dir: Path) -> Iterator[str]:
    """A service on a free loopback port, ready to plan; stopped at the end. Yields its URL."""
    port = _free_port()
    log = data_dir / "service.log"
    command = [sys.executable, "-m", "app.cli", "serve", "--host", "127.0.0.1", "--port", str(port)]
    say(f"starting the service on port {port} (log: {log})")
    with log.open("wb") as output:
        process = subprocess.Popen([*command, "--data-dir", str(data_dir)], stdout=output, stderr=output)  # noqa: S603
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_ready(url, process, log)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    import httpx

    deadline = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise ServiceFailed(f"the service stopped with code {process.returncode}", hint=_tail(log))
        try:
            ready = httpx.get(f"{url}/readyz", timeout=5)
        except httpx.TransportError:
            time.sleep(POLL_S)
            continue
        if ready.status_code == httpx.codes.OK:
            return
        if '"failed"' in ready.text:
            raise ServiceFailed(f"the service cannot become ready: {ready.text}", hint=_tail(log))
        time.sleep(POLL_S)
    raise ServiceFailed(f"the service was not ready within {READY_WITHIN_S:.0f} s", hint=_tail(log))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _tail(log: Path) -> str:
    return "\n".join(log.read_text("utf-8", "replace").splitlines()[-LOG_TAIL_LINES:])


def _save_report(url: str, path: Path) -> Path:
    import httpx

    path.write_text(httpx.get(url, timeout=30).text, "utf-8")
    return path


def _until_interrupted() -> None:
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        say("stopping")
