"""One target for each reader: bytes in, and out comes a word for what became of them.

A target returns the name of a typed error, or "read" where the file gave traces (or rules, or a summary) that are sound
in every respect `tests.fuzz.checks` knows. Anything else it raises is a defect. Nothing is shared between two calls.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from projector.errors import ShardwiseError
from tests.fuzz.archive_mutations import reshaped_archive
from tests.fuzz.checks import check_summary, checked, difference
from tests.fuzz.json_mutations import reshaped_json
from tests.fuzz.protobuf_mutations import reshaped_frames, reshaped_protobuf
from tests.fuzz.seeds import SEEDS
from tests.fuzz.sqlite_mutations import reshaped_sqlite
from tests.unit.jobs.job_examples import rank_document
from tests.unit.traces.trace_examples import kernel, op, trace_of
from traces.content import Content, Limits, open_content
from traces.execution_trace.join import join, match
from traces.execution_trace.read import read_execution_trace
from traces.reader import Reader
from traces.readers import chakra, jax_chrome, kineto, nsys, pytorch_et, xplane
from traces.rules import read_rules, rules_with
from traces.rules.rule import LONGEST_NAME
from traces.sources import find_sources
from traces.stored.document import is_summary, read_summary_document
from traces.summary import read_summary
from traces.trace import Trace

LIMITS: Final = Limits(
    max_compressed_bytes=1 << 20,
    max_decompressed_bytes=4 << 20,
    max_unpacked_bytes=8 << 20,
    max_events=20_000,
    max_files=64,
)

Reshape = Callable[[bytes, Random], bytes | None]

_NAMES: Final = ("acme_gemm_128", "nvjet_tst", "acme::sum", "", "a" * LONGEST_NAME)


@dataclass(frozen=True)
class Target:
    """run: what becomes of a file of these bytes. reshape: damages that keep the format (None where the bytes do not
    have it)."""

    name: str
    run: Callable[[bytes], str]
    reshape: Reshape | None = None

    def seeds(self) -> tuple[bytes, ...]:
        """Files to start from."""
        return SEEDS[self.name]()


class SmallBlocks(Content):
    """Content that comes in blocks of a few bytes, so that every boundary falls everywhere."""

    BLOCK_BYTES = 37

    def blocks(self) -> Iterator[bytes | bytearray]:
        for block in super().blocks():
            for at in range(0, len(block), self.BLOCK_BYTES):
                yield block[at : at + self.BLOCK_BYTES]


def outcome(run: Callable[[], object]) -> str:
    """The word "read", or the name of the typed error; everything else comes through."""
    try:
        run()
    except ShardwiseError as error:
        str(error).encode()
        error.hint.encode()
        return type(error).__name__
    return "read"


@contextmanager
def file_of(data: bytes, name: str = "file") -> Iterator[Path]:
    """A file on disk."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        yield path


def _read(reader: Reader, data: bytes) -> None:
    content = Content("file", data)
    if reader.claims(content):
        checked(reader.read(content, LIMITS))


def _run_kineto(data: bytes) -> str:
    """Three ways through the same file give the same."""
    if not kineto.READER.claims(Content("file", data)):
        return "not claimed"
    ways: list[tuple[Trace, ...]] = []

    def read(content: Content, *, careful: bool = False, chunk_bytes: int = 1 << 19) -> None:
        ways.append(kineto.read(content, LIMITS, careful=careful, chunk_bytes=chunk_bytes))

    words = [
        outcome(lambda: read(Content("file", data))),
        outcome(lambda: read(SmallBlocks("file", data), chunk_bytes=64)),
        outcome(lambda: read(Content("file", data), careful=True)),
    ]
    assert words.count(words[0]) == len(words), f"ways differ in their outcome: {words}"
    for way in ways[1:]:
        assert len(way) == len(ways[0]), "ways differ in their devices"
        for one, other in zip(ways[0], way, strict=True):
            assert not (where := difference(one, other)), f"ways differ in {where}"
    return outcome(lambda: checked(ways[0])) if ways else words[0]


def _run_reader(reader: Reader) -> Callable[[bytes], str]:
    return lambda data: outcome(lambda: _read(reader, data))


def _run_execution_trace(data: bytes) -> str:
    """Read in blocks of any size alike, then joined with a profile of the same process."""

    def run() -> None:
        content = Content("file", data)
        if not pytorch_et.READER.claims(content):
            return
        found, again = read_execution_trace(content, LIMITS), read_execution_trace(SmallBlocks("file", data), LIMITS)
        assert (found.names, found.inputs, found.collectives) == (again.names, again.inputs, again.collectives)
        assert found.record_ids.tolist() == again.record_ids.tolist()
        called = {"Record function id": 7}
        trace = trace_of(op("aten::mm", 1, 5, **called), kernel("ncclDevKernel_Generic", 9, 5))
        assert 0 <= match(trace, found) <= 1
        checked([join(trace, found)])

    return outcome(run)


def _run_archive(data: bytes) -> str:
    """Every file it holds can be read, and no more bytes lie on disk than the limits allow."""

    def run() -> None:
        with file_of(data) as path, find_sources([path], LIMITS) as sources:
            names = [source.name for source in sources.files]
            assert len(names) == len(set(names))
            assert sum(source.path.stat().st_size for source in sources.files) <= LIMITS.max_unpacked_bytes
            assert all(source.path == path or source.path.name.isdigit() for source in sources.files), (
                "a name is no path"
            )
            for text in (*names, *sources.warnings):
                text.encode()

    return outcome(run)


def _run_gzip(data: bytes) -> str:
    """Blocks and the whole are the same bytes, within the limits."""

    def run() -> None:
        with file_of(data) as path:
            content = open_content(path, LIMITS)
            pieces = b"".join(content.blocks())
            assert pieces == bytes(open_content(path, LIMITS).data)
            assert content.head == pieces[: len(content.head)]
            assert len(pieces) <= LIMITS.max_decompressed_bytes
            assert isinstance(content.truncated, bool)

    return outcome(run)


def _run_summary(data: bytes) -> str:
    def run() -> None:
        content = Content("file", data)
        if is_summary(content):
            document = read_summary_document(content)
            document.model_dump_json().encode()
            check_summary(document.summary)

    return outcome(run)


def _run_rules(data: bytes) -> str:
    def run() -> None:
        with file_of(data) as path:
            rules = rules_with(read_rules(path))
        for name in _NAMES:
            rules.of_kernel(name)
            rules.of_operator(name)

    return outcome(run)


def _run_job(data: bytes) -> str:
    """A file of unknown kind alone, and beside a rank that is whole: recognised, read, merged, compared."""

    def alone() -> None:
        with file_of(data) as path:
            check_summary(read_summary([path], limits=LIMITS, workers=1))

    def beside_another() -> None:
        with file_of(data, "b") as path:
            (path.parent / "a.json").write_bytes(rank_document(0, world=2))
            check_summary(read_summary([path.parent], limits=LIMITS, workers=1))

    return f"{outcome(alone)}, {outcome(beside_another)}"


TARGETS: Final = (
    Target("kineto", _run_kineto, reshaped_json),
    Target("jax_chrome", _run_reader(jax_chrome.READER), reshaped_json),
    Target("xplane", _run_reader(xplane.READER), reshaped_protobuf),
    Target("nsys", _run_reader(nsys.READER), reshaped_sqlite),
    Target("chakra", _run_reader(chakra.READER), reshaped_frames),
    Target("chakra_json", _run_reader(chakra.READER), reshaped_json),
    Target("execution_trace", _run_execution_trace, reshaped_json),
    Target("archive", _run_archive, reshaped_archive),
    Target("gzip", _run_gzip, reshaped_archive),
    Target("summary", _run_summary, reshaped_json),
    Target("rules", _run_rules, None),
    Target("job", _run_job, reshaped_json),
)
"""One for each reader, and one for a job of files that nobody said the kind of."""


def target(name: str) -> Target:
    """The target of this name."""
    return next(one for one in TARGETS if one.name == name)


def reshaped(one: Target, data: bytes, random: Random) -> bytes | None:
    """A damage of the target's own kind; None where the bytes do not have its format."""
    return None if one.reshape is None else one.reshape(data, random)
