"""Which reader claims which bytes, and what the formats that are only recognised answer."""

import bz2
import gzip
import io
import json
import lzma
import sqlite3
import tarfile
import zipfile
from pathlib import Path

import pytest
from trace_examples import document, kernel

from projector.errors import CorruptTrace, EmptyTrace, TraceWithoutTimes, UnknownTraceFormat, UnsupportedTrace
from traces.content import Content
from traces.read import find_reader, read_traces
from traces.reader import all_readers


def tar_of(name: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = 4
        archive.addfile(entry, io.BytesIO(b"data"))
    return buffer.getvalue()


def zip_of(name: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, "[]")
    return buffer.getvalue()


def sqlite_of(tmp_path: Path, table: str) -> bytes:
    path = tmp_path / "export.sqlite"
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE TABLE {table} (start INT)")
    connection.commit()
    connection.close()
    return path.read_bytes()


# planes { id: 1, name: "/device:TPU:0" }
XPLANE = b"\x0a\x11\x08\x01\x12\x0d/device:TPU:0"
# a message of 16 bytes with an attribute named schema, as GlobalMetadata begins
CHAKRA = b"\x10\x12\x0e\x0a\x06schema\xea\x01\x031.0" + b"\x04\x08\x01\x12\x00"
KINETO = json.dumps(document(kernel("gemm", 1, 2))).encode()
JAX = b'{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[{"ph":"X","name":"a","ts":1,"dur":1}]}'

SAMPLES = {
    "kineto": [
        KINETO,
        b"\xef\xbb\xbf" + KINETO,
        b"  \n" + KINETO,
        json.dumps([kernel("gemm", 1, 2)]).encode(),
        b'{"deviceProperties": [], "traceEvents": [',
    ],
    "jax_chrome": [JAX, b'{"traceEvents":[{"ph":"M","pid":1,"name":"process_name","args":{"name":"/host:CPU"}}]}'],
    "xplane": [XPLANE],
    "chakra": [CHAKRA, b'{\n  "workload_graph": [\n {"Id": 216}]}'],
    "pytorch_et": [b'{"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": [{"id": 1, "name": "add", "rf_id": 2}]}'],
    "archive": [
        zip_of("trace.json"),
        tar_of("chakra.0.et"),
        bz2.compress(b"[]"),
        lzma.compress(b"[]"),
        b"\x28\xb5\x2f\xfd....",
        gzip.compress(b"[]"),
        b"7z\xbc\xaf\x27\x1c..",
    ],
}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        pytest.param(name, data, id=f"{name}-{index}")
        for name, all_data in SAMPLES.items()
        for index, data in enumerate(all_data)
    ],
)
def test_exactly_one_reader_claims_each_sample(name: str, data: bytes) -> None:
    content = Content("sample", data)
    assert [reader.name for reader in all_readers() if reader.claims(content)] == [name]


def test_readers_are_found_in_their_folder() -> None:
    assert {reader.name for reader in all_readers()} == {*SAMPLES, "nsys"}


ZSTD = b"\x28\xb5\x2f\xfd...."


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (ZSTD, "trace is a zstd file, which"),
        (gzip.compress(ZSTD), "a zstd file inside a gzip file"),
        (gzip.compress(gzip.compress(b"[]")), "a gzip file inside a gzip file"),
        (gzip.compress(zip_of("trace.json")), "a zip archive inside a gzip file"),
    ],
)
def test_compressions_that_are_not_read_are_named(tmp_path: Path, data: bytes, told: str) -> None:
    path = tmp_path / "trace"
    path.write_bytes(data)
    with pytest.raises(UnsupportedTrace, match=told) as refused:
        read_traces([path])
    assert refused.value.http_status == 415
    assert "tar.gz" in refused.value.hint


@pytest.mark.parametrize(("name", "told"), [("chakra", "a Chakra graph"), ("pytorch_et", "a PyTorch execution trace")])
def test_what_says_only_what_ran_names_what_it_needs(tmp_path: Path, name: str, told: str) -> None:
    for data in SAMPLES[name]:
        path = tmp_path / "trace"
        path.write_bytes(gzip.compress(data))
        with pytest.raises(TraceWithoutTimes, match=told) as refused:
            read_traces([path])
        assert refused.value.http_status == 422
        assert "Kineto trace" in refused.value.hint


def test_an_nsight_export_is_told_from_any_other_database(tmp_path: Path) -> None:
    export = Content("a.sqlite", sqlite_of(tmp_path, "CUPTI_ACTIVITY_KIND_KERNEL"))
    assert find_reader(export).name == "nsys"
    (tmp_path / "export.sqlite").unlink()
    with pytest.raises(UnknownTraceFormat):
        find_reader(Content("b.sqlite", sqlite_of(tmp_path, "customers")))


def test_an_xplane_that_was_converted_to_text_is_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "mangled.xplane.pb"
    path.write_bytes(XPLANE + "�".encode() * 20)
    with pytest.raises(CorruptTrace):
        read_traces([path])


@pytest.mark.parametrize(
    "data", [b"hello", b"# Notes", b"\x00\x01\x02", b"{}", b'{"a": 1}', b"[1, 2]", b"\xff\xfe{\x00}\x00"]
)
def test_unknown_bytes(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "unknown"
    path.write_bytes(data)
    with pytest.raises(UnknownTraceFormat, match="no trace format that is known here") as refused:
        read_traces([path])
    assert "PyTorch Kineto" in refused.value.hint


def test_a_chrome_trace_of_another_program_is_not_a_pytorch_trace(tmp_path: Path) -> None:
    path = tmp_path / "browser.json"
    path.write_text('{"traceEvents": [{"ph": "X", "cat": "blink", "name": "paint", "ts": 1, "dur": 2}]}')
    with pytest.raises(UnsupportedTrace, match="not PyTorch's"):
        read_traces([path])


@pytest.mark.parametrize(
    "text",
    [
        '{"traceEvents": []}',
        "[]",
        '{"traceEvents": [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}}]}',
        '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 5, "dur": -1}]}',
    ],
)
def test_a_whole_file_without_a_timed_operator_is_empty(tmp_path: Path, text: str) -> None:
    path = tmp_path / "empty.json"
    path.write_text(text)
    with pytest.raises(EmptyTrace, match="no timed operator"):
        read_traces([path])
