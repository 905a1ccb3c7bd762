"""Archives member by member: every kind, names that are no paths, damage, and sizes nobody believes."""

import bz2
import errno
import io
import lzma
import struct
import tarfile
import tracemalloc
import zipfile
from pathlib import Path
from random import Random

import pytest

from projector.errors import CorruptTrace, TraceError, TraceTooLarge
from tests.unit.jobs.archive_examples import gz, tar_of, tar_with, zip_of
from traces.archive.unpack import Unpacking, kind_of, unpack
from traces.content import Limits

FILES = {"run/rank0.json": b'{"a": 1}' * 300, "run/rank1.json": b"", "run/readme": bytes(range(256)) * 9}

ARCHIVES = {
    "zip": zip_of(FILES),
    "zip stored": zip_of(FILES, zipfile.ZIP_STORED),
    "tar pax": tar_of(FILES),
    "tar gnu": tar_of(FILES, form=tarfile.GNU_FORMAT),
    "tar ustar": tar_of(FILES, form=tarfile.USTAR_FORMAT),
    "tar gz": tar_of(FILES, "w:gz"),
    "tar bz2": tar_of(FILES, "w:bz2"),
    "tar xz": tar_of(FILES, "w:xz"),
}


class Found:
    """What came out of an archive: (name, bytes) in order, and what was told."""

    def __init__(self, tmp_path: Path, data: bytes, limits: Limits = Limits(), name: str = "job") -> None:  # noqa: B008
        archive = tmp_path / "archive"
        archive.write_bytes(data)
        folder = tmp_path / "unpacked"
        folder.mkdir()
        kind = kind_of(archive, limits)
        assert kind is not None, "no archive"
        self.folder = folder
        self.unpacking = Unpacking(folder, limits)
        members = list(unpack(archive, kind, name, self.unpacking))
        self.files = [(member.name, member.path.read_bytes()) for member in members]
        self.told = self.unpacking.told
        self.sizes = [member.size_bytes for member in members]


@pytest.mark.parametrize("kind", ARCHIVES)
def test_every_kind_gives_the_bytes_of_its_members(tmp_path: Path, kind: str) -> None:
    found = Found(tmp_path, ARCHIVES[kind])
    assert found.files == [(f"job/{name}", data) for name, data in FILES.items()]
    assert found.sizes == [len(data) for data in FILES.values()]
    assert found.told == []


def test_one_compressed_file_is_an_archive_of_itself(tmp_path: Path) -> None:
    for number, data in enumerate((bz2.compress(b"[]") + bz2.compress(b" "), lzma.compress(b"[] "))):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert Found(folder, data, name="t.json.xz").files == [("t.json.xz", b"[] ")]


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"PK", gz(b"{}"), gz(b""), b"\x1f\x8b\x08", bytes(1024), b"\x28\xb5\x2f\xfd"]
)
def test_what_is_no_archive(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    assert kind_of(path, Limits()) is None


@pytest.mark.parametrize(
    "name", ["../../evil.json", "/etc/evil.json", "..\\evil.json", "a\x00b", "C:\\evil", "x" * 5000]
)
def test_a_name_is_never_a_path(tmp_path: Path, name: str) -> None:
    archives = [zip_of({name: b"data"})]
    if "\x00" not in name:
        archives += [tar_of({name: b"data"}), tar_of({name: b"data"}, form=tarfile.GNU_FORMAT)]
    for number, data in enumerate(archives):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = Found(folder, data)
        ((title, content),) = found.files
        assert content == b"data"
        assert title.startswith("job/")
        assert title.isprintable()
        assert len(title) < 500
        assert sorted(path.name for path in found.folder.iterdir()) == ["0"]
        assert sorted(path.name for path in folder.iterdir()) == ["archive", "unpacked"]


def test_names_of_any_bytes(tmp_path: Path) -> None:
    name = "rank\x1b[31m\u202e0.json"
    assert Found(tmp_path, tar_of({name: b"1"})).files == [("job/rank\ufffd[31m\ufffd0.json", b"1")]


def test_two_members_of_one_name_are_two_files(tmp_path: Path) -> None:
    data = tar_with(("a.json", tarfile.REGTYPE, b"1"), ("a.json", tarfile.REGTYPE, b"2"))
    assert [content for _, content in Found(tmp_path, data).files] == [b"1", b"2"]


def test_what_is_no_file_is_left_out_and_told(tmp_path: Path) -> None:
    kinds = (
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.CHRTYPE,
        tarfile.BLKTYPE,
        tarfile.FIFOTYPE,
        tarfile.DIRTYPE,
        b"Z",
    )
    entries = [(f"m{number}", kind, b"") for number, kind in enumerate(kinds)]
    found = Found(tmp_path, tar_with(*entries, ("t.json", tarfile.REGTYPE, b"[]")))
    assert found.files == [("job/t.json", b"[]")]
    assert found.told == [
        "job: 2 members were left out, being a device: 'm2', 'm3'",
        "job: 2 members were left out, being a link: 'm0', 'm1'",
        "job: 1 members were left out, being a pipe: 'm4'",
        "job: 1 members were left out, being of a kind that is not known: 'm6'",
    ]


def test_a_sparse_file_is_left_out(tmp_path: Path) -> None:
    data = tar_of({"t.json": b"[]"})
    sparse = tarfile.TarInfo("holes")
    sparse.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.realsize": str(1 << 40)}
    header = sparse.tobuf(tarfile.PAX_FORMAT)
    old = bytearray(tarfile.TarInfo("old").tobuf(tarfile.GNU_FORMAT))
    old[156:157], old[482] = b"S", 1
    old[148:156] = b"%06o\0 " % (sum(old) - sum(old[148:156]) + 8 * 32)
    found = Found(tmp_path, header + bytes(old) + bytes(512) + data)
    assert found.files == [("job/t.json", b"[]")]
    assert found.told == ["job: 2 members were left out, being a sparse file: 'holes', 'old'"]


def test_hidden_members_are_counted(tmp_path: Path) -> None:
    found = Found(tmp_path, zip_of({"__MACOSX/._a.json": b"1", ".git/x": b"2", "./a.json": b"3"}))
    assert found.files == [("job/a.json", b"3")]
    assert found.unpacking.hidden == 2


def test_links_and_encrypted_members_of_a_zip(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("secret.json", b"12345")
        archive.writestr("t.json", b"[]")
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_LZMA) as archive:
        archive.writestr("lzma.json", b"[]")
    data = bytearray(buffer.getvalue())
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = [place for place in range(len(data)) if data.startswith(signature, place)][1]
        data[at + flags] |= 1
    found = Found(tmp_path, bytes(data))
    assert found.files == [("job/t.json", b"[]")]
    assert found.told == [
        "job: 1 members were left out, being a link: 'link'",
        "job: 1 members were left out, being encrypted: 'secret.json'",
        "job: 1 members were left out, being packed in a way that is not read (lzma): 'lzma.json'",
    ]


def test_a_damaged_member_is_left_out_and_the_others_are_not(tmp_path: Path) -> None:
    data = bytearray(zip_of({"a.json": b"abc" * 50, "b.json": b"[]"}, zipfile.ZIP_STORED))
    data[data.index(b"abcabc")] ^= 1
    found = Found(tmp_path, bytes(data))
    assert found.files == [("job/b.json", b"[]")]
    assert found.told == ["job/a.json is damaged: Bad CRC-32 for file 'a.json'; it was left out"]
    assert [path.name for path in found.folder.iterdir()] == ["1"]


def test_an_archive_of_nothing_but_damage(tmp_path: Path) -> None:
    data = bytearray(zip_of({"a.json": b"abc" * 50}, zipfile.ZIP_STORED))
    data[data.index(b"abcabc")] ^= 1
    with pytest.raises(CorruptTrace, match="job holds no file that can be unpacked"):
        Found(tmp_path, bytes(data))


def test_a_zip_cut_short_has_no_directory(tmp_path: Path) -> None:
    with pytest.raises(CorruptTrace, match="job is a zip archive without a readable directory") as refused:
        Found(tmp_path, ARCHIVES["zip"][:-30])
    assert "cut short" in refused.value.hint


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_tar_cut_short_gives_what_is_before(tmp_path: Path, mode: str) -> None:
    noise = {f"{number}.bin": Random(number).randbytes(1_500_000) for number in (1, 3)}  # noqa: S311
    data = tar_of(noise, mode)
    found = Found(tmp_path, data[: 3 * len(data) // 4])
    assert found.files[0] == ("job/1.bin", noise["1.bin"])
    assert set(found.told) == {"job is cut short: what is before that was read"}
    if len(found.files) > 1:
        assert noise["3.bin"].startswith(found.files[1][1])


def test_a_compressed_file_cut_short_before_anything_comes_out(tmp_path: Path) -> None:
    with pytest.raises(CorruptTrace, match="job holds no file that can be unpacked"):
        Found(tmp_path, ARCHIVES["tar bz2"][:100])


def test_a_damaged_tar_gives_what_is_before(tmp_path: Path) -> None:
    data = bytearray(tar_of({"a": b"1" * 512, "b": b"2"}, form=tarfile.USTAR_FORMAT))
    data[1024:1030] = b"broken"
    found = Found(tmp_path, bytes(data))
    assert found.files == [("job/a", b"1" * 512)]
    assert found.told == ["job is damaged: what is before that was read"]


def test_archives_in_archives(tmp_path: Path) -> None:
    inner = tar_of({"rank0.json.gz": gz(b"[]")}, "w:gz")
    found = Found(
        tmp_path, zip_of({"artifact.tar.gz": inner, "deeper.zip": zip_of({"deep.zip": zip_of({"t": b"[]"})})})
    )
    assert found.files == [("job/artifact.tar.gz/rank0.json.gz", gz(b"[]"))]
    assert found.told == ["job/deeper.zip/deep.zip is an archive inside 2 others: left out"]


SMALL = Limits(max_unpacked_bytes=1 << 20, max_decompressed_bytes=1 << 19, max_files=20)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (zip_of({"a": bytes(1 << 20)}), "size of job/a in bytes is at least .* over the limit of 524,288"),
        (zip_of({name: bytes(1 << 18) for name in "abcdef"}), "unpacked size in bytes is at least"),
        (tar_of({name: bytes(1 << 18) for name in "abcdef"}, "w:gz"), "size .*in bytes is at least"),
        (tar_of({name: bytes(1 << 18) for name in "abcdef"}, "w:xz"), "size .*in bytes is at least"),
        (lzma.compress(bytes(4 << 20)), "size .*in bytes is at least"),
        (bz2.compress(bytes(4 << 20)), "size .*in bytes is at least"),
        (zip_of({str(number): b"" for number in range(21)}), "number of files .* is at least 21"),
        (tar_of({str(number): b"" for number in range(21)}), "number of files .* is at least 21"),
        (tar_of({f"{number}/": b"" for number in range(100)}), "job holds more than 80 headers"),
        (zip_of({f"{number}.zip": zip_of({"a": b"", "b": b""}) for number in range(9)}), "number of files"),
    ],
)
def test_limits_hold_for_all_of_a_job(tmp_path: Path, data: bytes, told: str) -> None:
    with pytest.raises(TraceTooLarge, match=told):
        Found(tmp_path, data, SMALL)


def test_a_bomb_ends_early_and_in_little_memory(tmp_path: Path) -> None:
    zeros = bytes(64 << 20)
    bombs = [zip_of({"a": zeros}), tar_of({"a": zeros}, "w:gz"), bz2.compress(zeros), lzma.compress(zeros)]
    for number, data in enumerate(bombs):
        folder = tmp_path / str(number)
        folder.mkdir()
        tracemalloc.start()
        with pytest.raises(TraceTooLarge, match="compression ratio"):
            Found(folder, data)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 16 << 20


def test_a_header_that_claims_gigabytes_allocates_nothing(tmp_path: Path) -> None:
    huge = tarfile.TarInfo("big")
    huge.size = 10 << 30
    longname = tarfile.TarInfo("././@LongLink")
    longname.type, longname.size = tarfile.GNUTYPE_LONGNAME, 10 << 30
    for number, (data, error) in enumerate(
        (
            (huge.tobuf(tarfile.GNU_FORMAT) + b"x" * 100, None),
            (longname.tobuf(tarfile.GNU_FORMAT) + b"x" * 100, CorruptTrace),
            (_zip_with_directory_of(3 << 30), TraceError),
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        tracemalloc.start()
        if error is None:
            assert Found(folder, data).told == ["job is cut short: what is before that was read"]
        else:
            with pytest.raises(error):
                Found(folder, data)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
        tracemalloc.stop()


def _zip_with_directory_of(size: int) -> bytes:
    """A zip whose end record claims a directory of that many bytes, in a file that has them as a hole."""
    data = bytearray(zip_of({"a": b"1"}))
    end = data.rindex(b"PK\x05\x06")
    struct.pack_into("<I", data, end + 12, size)
    return bytes(data)


def test_damaged_numbers_in_a_header(tmp_path: Path) -> None:
    header = bytearray(tarfile.TarInfo("a").tobuf(tarfile.USTAR_FORMAT))
    header[124:136] = b"-0000000001\0"
    header[148:156] = b"%06o\0 " % (sum(header) - sum(header[148:156]) + 8 * 32)
    assert Found(tmp_path, bytes(header)).told == ["job states a size that is none: what is before that was read"]


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, data: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    open_path = Path.open
    monkeypatch.setattr(Path, "open", lambda path, mode="r": Full() if "x" in mode else open_path(path, mode))
    with pytest.raises(TraceTooLarge, match="no room on disk to unpack job/a"):
        Found(tmp_path, zip_of({"a": b"1" * 100_000}))
