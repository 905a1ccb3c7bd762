"""Small files that ask for much: memory stays within a stated bound, and the answer is a typed error or the right one.

Each is read in a process of its own (`tests.fuzz.measured`) whose peak of resident memory is taken around it. No time
is looked at.
"""

import gzip
import io
import sqlite3
import struct
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.bomb_examples import FLAT, MIB, WHOLE, packed, refused, written
from tests.fuzz.measured import STATUS, Reader
from tests.unit.chakra import chakra_examples as chakra
from tests.unit.jobs.archive_examples import tar_of, zip_of
from tests.unit.nsys.nsys_builder import Export
from tests.unit.xplane.xplane_builder import number_field, space, tpu_plane, varint

pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="the peak of resident memory is read from /proc")

CLAIMED = 10 << 30


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    with Reader() as process:
        yield process


# --- compressed ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "behind", [b"", b'{"ph": "X", "cat": "kernel", "ts": 1, "dur": 1, "name": "'], ids=["blanks", "a name"]
)
def test_a_gzip_bomb_ends_while_it_is_inflated(reader: Reader, tmp_path: Path, behind: bytes) -> None:
    """A thousand to one: 100 MiB are inside, 32 come out before the ratio is looked at."""
    filler = b" " if not behind else b"a"
    path = packed(tmp_path / "bomb.json.gz", [b'{"traceEvents": [', behind, *[filler * MIB] * 100])
    refused(reader.read(path), "TraceTooLarge", "compression ratio")


def test_a_gzip_file_of_ten_thousand_members_is_one_file(reader: Reader, tmp_path: Path) -> None:
    text = b'{"traceEvents": [' + WHOLE + b"]}"
    members = [gzip.compress(text[at : at + 1]) for at in range(len(text))]
    nothing = gzip.compress(b"") * 10_000
    reading = reader.read(written(tmp_path / "members.json.gz", nothing + b"".join(members)))
    assert (reading.outcome, reading.facts["window_ns"]) == ("read", 2_000)
    assert reading.rise_bytes <= FLAT


def test_a_zip_whose_entries_are_all_one_member(reader: Reader, tmp_path: Path) -> None:
    """A few kilobytes that unpack to ten gigabytes: entries of the directory that overlap."""
    path = written(tmp_path / "overlap.zip", overlapping(entries=1_000, size=10 * MIB))
    assert path.stat().st_size < MIB
    refused(reader.read(path), "TraceTooLarge", "compression ratio of all that was unpacked")


def overlapping(entries: int, size: int) -> bytes:
    """A zip with one member of zeros, just small enough not to be a bomb on its own, and many entries for it."""
    one = zip_of({"m": bytes(size)})
    directory = one.index(b"PK\x01\x02")
    end = one.index(b"PK\x05\x06")
    listed = one[directory:end] * entries
    tail = bytearray(one[end:])
    struct.pack_into("<HHII", tail, 8, entries, entries, len(listed), directory)
    return one[:directory] + listed + bytes(tail)


def test_archives_in_archives_in_archives(reader: Reader, tmp_path: Path) -> None:
    """Sixteen zips in each of sixteen zips, and so on: what is nested deeper than two is left out unopened."""
    data = zip_of({"a.json": bytes(MIB)})
    for _ in range(4):
        data = zip_of({f"{number}.zip": data for number in range(16)})
    refused(reader.read(written(tmp_path / "nested.zip", data)), "EmptyTrace", "without a file that can be read")


@pytest.mark.parametrize("claim", [CLAIMED, 1 << 62])
def test_a_tar_whose_member_claims_more_than_there_is(reader: Reader, tmp_path: Path, claim: int) -> None:
    header = tarfile.TarInfo("rank0.json")
    header.size = claim
    path = written(tmp_path / "claims.tar", header.tobuf(tarfile.GNU_FORMAT) + b'{"traceEvents": [' + WHOLE + b"]}")
    reading = reader.read(path)
    assert (reading.outcome, reading.facts["window_ns"]) == ("read", 2_000)
    assert "claims.tar is cut short: what is before that was read" in reading.facts["warnings"]
    assert reading.rise_bytes <= FLAT


def test_a_tar_with_a_sparse_member(reader: Reader, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        entry = tarfile.TarInfo("GNUSparseFile.0/rank0.json")
        entry.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(CLAIMED)}
        entry.size = 512
        archive.addfile(entry, io.BytesIO(b"1\n0\n512\n".ljust(512, b"\0")))
    path = written(tmp_path / "sparse.tar", buffer.getvalue())
    refused(reader.read(path), "EmptyTrace", "without a file that can be read")


def test_a_hundred_tars_in_a_folder_that_each_claim_a_header_of_gigabytes(reader: Reader, tmp_path: Path) -> None:
    longname = tarfile.TarInfo("././@LongLink")
    longname.type, longname.size = tarfile.GNUTYPE_LONGNAME, CLAIMED
    folder = tmp_path / "job"
    folder.mkdir()
    for number in range(100):
        written(folder / f"{number}.tar", longname.tobuf(tarfile.GNU_FORMAT) + b"x" * number)
    written(folder / "rank0.json", b'{"traceEvents": [' + WHOLE + b"]}")
    written(folder / "more.tar", tar_of({"rank1.json": b"[" + WHOLE + b"]"}))
    reading = reader.read(folder)
    assert (reading.outcome, reading.facts["ranks"]) == ("read", 2)
    assert reading.rise_bytes <= FLAT


# --- lengths and counts that a header claims -------------------------------------------------------------------------


@pytest.mark.parametrize("claim", [CLAIMED, 1 << 63])
def test_protobuf_lengths_that_no_file_has(reader: Reader, tmp_path: Path, claim: int) -> None:
    plane = b"\x0a" + varint(claim) + b"\x12\x09/host:CPU"
    refused(reader.read(written(tmp_path / "a.xplane.pb", plane)), "CorruptTrace", "a length beyond the end")
    graph = chakra.et(chakra.node(1, "a", chakra.COMP, start=1, duration=1)) + varint(claim) + b"\x08\x01"
    refused(reader.read(written(tmp_path / "a.et", graph)), "CorruptTrace", f"claims a message of {claim:,} bytes")


def test_an_event_that_says_it_occurred_quintillions_of_times(reader: Reader, tmp_path: Path) -> None:
    plane = tpu_plane(0)
    line, kind = plane.line("XLA Ops"), plane.kind("%f", "f", hlo_category="loop fusion")
    line.event(kind, 0, 5_000)
    line.events.append(number_field(1, kind) + number_field(5, 2**63 - 1) + number_field(3, 5_000))
    reading = reader.read(written(tmp_path / "a.xplane.pb", space(plane)))
    assert (reading.outcome, reading.facts["compute_ns"]) == ("read", 5)
    assert any("1 events on line 'XLA Ops'" in warning for warning in reading.facts["warnings"])
    assert reading.rise_bytes <= FLAT


@pytest.mark.parametrize(("place", "value"), [(28, CLAIMED // 4096), (28, 2**32 - 1), (32, 2**31), (36, 2**32 - 1)])
def test_a_database_whose_header_counts_pages_it_does_not_have(
    reader: Reader, tmp_path: Path, place: int, value: int
) -> None:
    """Bytes 28, 32 and 36 of an SQLite header: pages in all, the first free one, how many are free."""
    export = Export()
    export.kernel("gemm_kernel", 0, 5)
    path = export.write(tmp_path / "export.sqlite")
    data = bytearray(path.read_bytes())
    struct.pack_into(">I", data, place, value)
    reading = reader.read(written(path, bytes(data)))
    assert reading.outcome in ("CorruptTrace", "read")
    assert reading.rise_bytes <= FLAT


def test_a_blob_that_a_cell_claims_to_have(reader: Reader, tmp_path: Path) -> None:
    """`zeroblob` takes no room until it is read: 900 MB in a row, of which a text is read to its first 64 KiB."""
    export = Export()
    export.kernel("gemm_kernel", 0, 5)
    path = export.write(tmp_path / "export.sqlite")
    with sqlite3.connect(path) as database:
        database.execute("UPDATE StringIds SET value = zeroblob(70000000)")
    database.close()
    refused(reader.read(path), "TraceTooLarge", "a text or blob of more than", rise=FLAT + 70 * MIB)
