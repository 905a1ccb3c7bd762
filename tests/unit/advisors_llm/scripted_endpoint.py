"""An OpenAI-compatible endpoint on loopback that answers from a script, and remembers what it was sent."""

import gzip
import json
import re
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SILENCE = "silence"
ENDLESS = "endless"  # bytes as fast as they are taken, without end
DRIP = "drip"  # a byte now and then, without end
PACKED = "packed"  # few bytes that are many once unpacked
BODILESS = "bodiless"
NO_COMPLETION = "no completion"
DATA = re.compile(r"^BEGIN DATA\n(.*)\nEND DATA$", re.MULTILINE)


@dataclass
class Endpoint:
    """`script`: one entry a request: text of the answer, an HTTP status, or SILENCE. `bodies`, `keys`: what arrived."""

    script: list[str | int] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    finish_reason: str = "stop"
    counts_tokens: bool = True
    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Endpoint":
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def prompt(self, request: int = -1) -> str:
        return self.bodies[request]["messages"][1]["content"]

    def data(self, request: int = -1) -> dict[str, Any]:
        return json.loads(DATA.findall(self.prompt(request))[0])

    def _handler(endpoint) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                endpoint.bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                endpoint.keys.append(self.headers["authorization"] or self.headers["api-key"])
                endpoint.arrived.release()
                step = endpoint.script.pop(0)
                if step == SILENCE:
                    endpoint.over.wait(60)
                elif step in (ENDLESS, DRIP):
                    self._pour(b"x" * 65_536 if step == ENDLESS else b" ", 0 if step == ENDLESS else 0.01)
                elif step == PACKED:
                    self._raw(gzip.compress(b" " * 50_000_000), ("content-encoding", "gzip"))
                elif step == BODILESS:
                    self._raw(b"")
                elif step == NO_COMPLETION:
                    self._raw(b'{"choices": [], "LEAKED": "BODY"}')
                elif isinstance(step, int):
                    self._send(step, {"error": {"message": "LEAKED BODY sk-secret", "type": "x", "code": step}})
                else:
                    self._send(200, endpoint._completion(step))

            def _pour(self, chunk: bytes, pause_s: float) -> None:
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.end_headers()
                with suppress(OSError):  # until the other side has had enough
                    while not endpoint.over.wait(pause_s):
                        self.wfile.write(chunk)

            def _raw(self, content: bytes, *headers: tuple[str, str]) -> None:
                self.send_response(200)
                for name, value in (("content-type", "application/json"), *headers):
                    self.send_header(name, value)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                with suppress(OSError):
                    self.wfile.write(content)

            def _send(self, status: int, body: dict[str, Any]) -> None:
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def _completion(self, text: str) -> dict[str, Any]:
        message = {"role": "assistant", "content": text}
        return {
            "id": "answer",
            "object": "chat.completion",
            "created": 1,
            "model": "scripted",
            "choices": [{"index": 0, "finish_reason": self.finish_reason, "message": message}],
        } | (
            {"usage": {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050}}
            if self.counts_tokens
            else {}
        )
