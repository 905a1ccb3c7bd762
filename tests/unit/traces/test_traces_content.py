"""Opening files: compression by content, limits, damage."""

import gzip
import random
from pathlib import Path

import pytest

from projector.errors import CorruptTrace, EmptyTrace, InvalidDescription, TraceTooLarge
from traces import inflate
from traces.content import Content, Limits, open_content
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


@pytest.mark.parametrize("read_bytes", range(2, 40))
def test_members_are_found_wherever_a_read_ends(
    read_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inflate, "_READ_BYTES", read_bytes)
    path = file_with(tmp_path, b"".join(gzip.compress(b"%d" % number) for number in range(9)))
    content = open_content(path, Limits())
    assert (content.data, content.warnings) == (b"012345678", ())


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
        _ = open_content(bomb, Limits()).data


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


def test_a_large_file_is_read_in_blocks_and_again_from_the_start(tmp_path: Path) -> None:
    body = bytes(range(256)) * 8192
    for path in (file_with(tmp_path, body, "plain"), file_with(tmp_path, gzip.compress(body, 1), "packed")):
        content = open_content(path, Limits())
        assert content.path == path
        assert max(map(len, content.blocks())) < MIB
        assert b"".join(content.blocks()) == b"".join(content.blocks()) == content.data == body
        assert content.head == body[:65_536]


def test_bytes_in_memory_are_one_block() -> None:
    content = Content("a.json", b"[1]")
    assert (content.path, list(content.blocks()), content.data, content.truncated) == (None, [b"[1]"], b"[1]", False)


def test_what_stands_in_the_head_is_found_without_reading_on(tmp_path: Path) -> None:
    broken = bytearray(gzip.compress(b'{"key": 1}' + random.Random(1).randbytes(MIB), 1))  # noqa: S311
    broken[-6] ^= 1  # of the checksum
    content = open_content(file_with(tmp_path, bytes(broken)), Limits())
    assert content.mentions(b"absent", b'"key"')
    with pytest.raises(CorruptTrace, match="damaged gzip"):
        content.mentions(b"absent")


@pytest.mark.parametrize("at", [1 << 18, (1 << 18) - 3, 3 << 18])
def test_a_text_is_found_where_two_blocks_meet(tmp_path: Path, at: int) -> None:
    body = b" " * at + b"needle" + b" " * MIB
    for data in (body, gzip.compress(body, 1)):
        content = open_content(file_with(tmp_path, data), Limits(max_ratio=1e9))
        assert content.mentions(b"pin", b"needle")
        assert not content.mentions(b"pin")
        assert not content.mentions(b"pin")


def test_how_a_file_ends_is_known_without_asking_for_its_data(tmp_path: Path) -> None:
    packed = gzip.compress(bytes(range(256)) * 16384, 1)
    whole, cut = (file_with(tmp_path, data, str(len(data))) for data in (packed + b"tail", packed[:-99]))
    assert open_content(whole, Limits()).warnings == ("bytes after the end of the gzip stream were ignored",)
    assert not open_content(whole, Limits()).truncated
    assert open_content(cut, Limits()).truncated


def test_a_path_that_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidDescription, match="no trace file"):
        open_content(tmp_path / "absent.json", Limits())
    with pytest.raises(InvalidDescription, match="no trace file"):
        open_content(tmp_path, Limits())
    with pytest.raises(InvalidDescription, match="no trace file was given"):
        read_traces([])
