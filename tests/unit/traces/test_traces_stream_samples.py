"""Real files, read by the stream in chunks of several sizes and event by event: the same Trace in everything."""

import os
from pathlib import Path

import pytest
from same_trace import assert_same, outcome

from traces.content import Limits, open_content
from traces.readers import kineto
from traces.trace import Trace

ROOT = Path(__file__).parents[3]
SHIPPED = ROOT / "tests" / "data" / "traces"
SHARED = Path(os.environ.get("SHARDWISE_SHARED", ROOT.parent / "shared")) / "traces"
SMALL_CHUNK, LARGE_CHUNK = 4_096, 1 << 22


def kineto_files(folder: Path) -> list[Path]:
    """Files of the folder that the reader claims."""
    files = (path for path in sorted(folder.rglob("*.json*")) if path.is_file())
    return [path for path in files if kineto.claims(open_content(path, Limits()))]


def read(path: Path, *, careful: bool = False, chunk_bytes: int = 1 << 18) -> tuple[Trace, ...] | str:
    return outcome(
        lambda: kineto.read(open_content(path, Limits()), Limits(), careful=careful, chunk_bytes=chunk_bytes)
    )


@pytest.mark.parametrize("path", kineto_files(SHIPPED), ids=lambda path: path.name)
def test_shipped_samples(path: Path) -> None:
    streamed = read(path)
    assert_same(streamed, read(path, careful=True))
    assert_same(streamed, read(path, chunk_bytes=SMALL_CHUNK))
    assert_same(streamed, read(path, chunk_bytes=LARGE_CHUNK))


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no samples at {SHARED}; set SHARDWISE_SHARED")
def test_all_samples() -> None:
    files = kineto_files(SHARED)
    assert len(files) >= 40
    for path in files:
        streamed = read(path)
        assert_same(streamed, read(path, careful=True))
        assert_same(streamed, read(path, chunk_bytes=SMALL_CHUNK))
