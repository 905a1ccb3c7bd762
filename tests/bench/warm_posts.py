"""How long a warm service takes for POST /v1/plans: `python -m tests.bench.warm_posts [POSTS]`.

The bundled traces are posted in turn, each time with all times shifted by another offset, so that no two bodies are
equal. Prints median and 95th percentile in milliseconds, for all posts and for each trace.
"""

import gzip
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import httpx

from app.commands.demo import local_service

TRACES = Path(__file__).parents[1] / "data" / "traces"
BUNDLED = ("b200_vllm_eager.json.gz", "a100_ddp_resnet.json.gz")
POSTS = 50
WARM_UP_POSTS = 2
SHIFT_US = 1_000_003


def shifted(document: dict[str, Any], shift_us: int) -> bytes:
    """The trace with every event `shift_us` microseconds later, as gzip."""
    events = [event | {"ts": event["ts"] + shift_us} if "ts" in event else event for event in document["traceEvents"]]
    return gzip.compress(json.dumps({**document, "traceEvents": events}).encode(), 1)


def bodies(posts: int) -> Iterator[tuple[str, bytes]]:
    """(name of the bundled trace, body) of every post."""
    documents = {name: json.loads(gzip.decompress((TRACES / name).read_bytes())) for name in BUNDLED}
    for number in range(posts):
        name = BUNDLED[number % len(BUNDLED)]
        yield name, shifted(documents[name], number * SHIFT_US)


def post(client: httpx.Client, body: bytes) -> float:
    """Seconds until the whole answer is there."""
    started = time.perf_counter()
    answer = client.post("/v1/plans", files={"trace": ("trace.json.gz", body)}, data={"request": '{"wait": 60}'})
    elapsed_s = time.perf_counter() - started
    if answer.status_code != httpx.codes.OK:
        raise SystemExit(f"{answer.status_code}: {answer.text}")
    return elapsed_s


def line(name: str, times_s: Sequence[float]) -> str:
    """One row of the result."""
    p95_s = quantiles(times_s, n=20, method="inclusive")[-1]
    return f"{name:28} {len(times_s):5} {1e3 * median(times_s):12.0f} {1e3 * p95_s:9.0f}"


def main(posts: int = POSTS) -> None:
    """Run and print."""
    sent = list(bodies(posts + WARM_UP_POSTS))
    with (
        tempfile.TemporaryDirectory() as folder,
        local_service(Path(folder)) as url,
        httpx.Client(base_url=url, timeout=120) as client,
    ):
        times_s = [(name, post(client, body)) for name, body in sent][WARM_UP_POSTS:]
    print(f"{'trace':28} {'posts':>5} {'median [ms]':>12} {'p95 [ms]':>9}")
    for wanted in BUNDLED:
        print(line(wanted, [elapsed_s for name, elapsed_s in times_s if name == wanted]))
    print(line("all", [elapsed_s for _, elapsed_s in times_s]))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
