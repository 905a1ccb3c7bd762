"""Opening files: compression by content, limits, damage."""

import gzip
from pathlib import Path

import pytest

from projector.errors import CorruptTrace, EmptyTrace, InvalidDescription, TraceTooLarge
from traces.content import Limits, open_content
from traces.read import read_traces

MIB = 1 << 20


def file_with(tmp_path: Path, data: bytes, name: str = "trace.json") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def test_gzip_is_recognised_by_its_bytes_not_by_the_name(tmp_path: Path) -> None:
    assert open_content(file_with(tmp_path, gzip.compress(b"[]"), "plain.json"), Limits()).data == b"[]"
    assert open_content(file_with(tmp_path, b"[]", "looks.json.gz"), Limits()).data == b"[]"


def test_members_of_a_gzip_file_follow_one_another(tmp_path: Path) -> None:
    path = file_with(tmp_path, gzip.compress(b"ab" * 100) + gzip.compress(b"cd") + b"\0" * 512)
    content = open_content(path, Limits())
    assert content.data == b"ab" * 100 + b"cd"
    assert not content.truncated
    assert content.warnings == ()


def test_bytes_after_the_gzip_stream_are_told(tmp_path: Path) -> None:
    content = open_content(file_with(tmp_path, gzip.compress(b"[]") + b"tail"), Limits())
    assert content.data == b"[]"
    assert content.warnings == ("bytes after the end of the gzip stream were ignored",)


@pytest.mark.parametrize("size", [8 * MIB - 1, 8 * MIB, 8 * MIB + 1, 17 * MIB])
def test_pieces_of_any_size_come_out_whole(tmp_path: Path, size: int) -> None:
    body = b"x" * size
    content = open_content(file_with(tmp_path, gzip.compress(body, 1)), Limits(max_ratio=1e9))
    assert content.data == body
    assert not content.truncated


def test_a_truncated_gzip_stream_is_marked(tmp_path: Path) -> None:
    whole = gzip.compress(bytes(range(256)) * 4000, 1)
    content = open_content(file_with(tmp_path, whole[:-100]), Limits())
    assert content.truncated
    assert 0 < len(content.data) <= 256 * 4000


def test_a_bomb_stops_while_it_is_inflated(tmp_path: Path) -> None:
    bomb = file_with(tmp_path, gzip.compress(b"\0" * (64 * MIB)))
    with pytest.raises(TraceTooLarge, match=r"compression ratio of trace.json is at least .* over the limit of 200"):
        open_content(bomb, Limits())


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (Limits(max_compressed_bytes=10), r"size of trace.json in bytes is at least .*, .* over the limit of 10"),
        (Limits(max_decompressed_bytes=1000), r"decompressed size of trace.json in bytes .* over the limit of 1,000"),
    ],
)
def test_sizes_have_limits_and_the_message_names_the_overshoot(tmp_path: Path, limits: Limits, told: str) -> None:
    path = file_with(tmp_path, gzip.compress(b"abc" * 1000))
    with pytest.raises(TraceTooLarge, match=told) as refused:
        open_content(path, limits)
    assert refused.value.http_status == 413
    assert "limit max_" in refused.value.hint


def test_an_uncompressed_file_has_the_decompressed_limit(tmp_path: Path) -> None:
    path = file_with(tmp_path, b"[" + b" " * 2000 + b"]")
    assert open_content(path, Limits(max_compressed_bytes=10)).data.startswith(b"[")
    with pytest.raises(TraceTooLarge):
        open_content(path, Limits(max_decompressed_bytes=1000))


def test_damaged_and_empty_files(tmp_path: Path) -> None:
    damaged = bytearray(gzip.compress(bytes(range(256)) * 100))
    damaged[30] ^= 0xFF
    with pytest.raises(CorruptTrace, match="damaged gzip"):
        open_content(file_with(tmp_path, bytes(damaged)), Limits())
    checksum = bytearray(gzip.compress(b"[]"))
    checksum[-6] ^= 1
    with pytest.raises(CorruptTrace, match="damaged gzip"):
        open_content(file_with(tmp_path, bytes(checksum)), Limits())
    with pytest.raises(CorruptTrace, match="ends inside the gzip header"):
        open_content(file_with(tmp_path, gzip.compress(b"[]")[:5]), Limits())
    with pytest.raises(EmptyTrace):
        open_content(file_with(tmp_path, b""), Limits())
    with pytest.raises(EmptyTrace):
        open_content(file_with(tmp_path, gzip.compress(b"")), Limits())


def test_a_path_that_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidDescription, match="no trace file"):
        open_content(tmp_path / "absent.json", Limits())
    with pytest.raises(InvalidDescription, match="no trace file"):
        open_content(tmp_path, Limits())
    with pytest.raises(InvalidDescription, match="no trace file was given"):
        read_traces([])
