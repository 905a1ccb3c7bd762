"""Which files a job has: folders and archives walked, what is passed over told, names apart, equal bytes once."""

import os
from pathlib import Path

import pytest

from projector.errors import CorruptTrace, EmptyTrace, InvalidDescription, TraceError, TraceTooLarge
from tests.unit.jobs.archive_examples import gz, tar_of, zip_of
from tests.unit.jobs.job_examples import written
from traces.content import Limits
from traces.sources import Sources, find_sources


def sources_of(*paths: Path, limits: Limits | None = None, names: list[str] | None = None) -> Sources:
    with find_sources(paths, limits or Limits(), names) as sources:
        return sources


def names_of(*paths: Path, names: list[str] | None = None) -> list[str]:
    return [source.name for source in sources_of(*paths, names=names).files]


def test_files_stay_in_the_order_given(tmp_path: Path) -> None:
    written(tmp_path, {"b.json": b"1", "a.json": b"22"})
    sources = sources_of(tmp_path / "b.json", tmp_path / "a.json")
    assert [(one.name, one.size_bytes, one.named) for one in sources.files] == [
        ("b.json", 1, True),
        ("a.json", 2, True),
    ]
    assert sources.warnings == ()


def test_given_names_stand_for_the_paths(tmp_path: Path) -> None:
    written(tmp_path, {"0001": b"1", "0002": zip_of({"x/t.json": b"2"})})
    assert names_of(tmp_path / "0001", tmp_path / "0002", names=["rank0.json", "up.zip"]) == [
        "rank0.json",
        "up.zip/x/t.json",
    ]


def test_a_folder_is_walked_in_order_of_name(tmp_path: Path) -> None:
    written(
        tmp_path / "job", {"rank1/t.json": b"1", "rank0/t.json": b"2", "rank0/deep/er/t.json": b"3", "z.json": b"4"}
    )
    assert names_of(tmp_path / "job") == ["z.json", "rank0/t.json", "rank0/deep/er/t.json", "rank1/t.json"]


def test_several_folders_keep_their_names(tmp_path: Path) -> None:
    written(tmp_path, {"a/t.json": b"1", "b/t.json": b"2"})
    assert names_of(tmp_path / "a", tmp_path / "b") == ["a/t.json", "b/t.json"]


def test_files_of_one_name_in_several_folders_are_told_apart(tmp_path: Path) -> None:
    written(tmp_path, {"r0/t.json": b"1", "r1/t.json": b"2"})
    assert names_of(tmp_path / "r0/t.json", tmp_path / "r1/t.json") == ["r0/t.json", "r1/t.json"]
    assert names_of(tmp_path / "r0/t.json", tmp_path / "r1/t.json", names=["t.json", "t.json"]) == [
        "t.json",
        "t.json (2)",
    ]


def test_hidden_files_and_links_are_passed_over_and_told(tmp_path: Path) -> None:
    outside = written(tmp_path / "outside", {"secret.json": b"no"})
    job = written(tmp_path / "job", {"t.json": b"1", ".hidden": b"2", ".git/config": b"3"})
    (job / "link.json").symlink_to(outside / "secret.json")
    (job / "inside.json").symlink_to(job / "t.json")
    (job / "folder").symlink_to(outside)
    os.mkfifo(job / "pipe")
    sources = sources_of(job)
    assert [source.name for source in sources.files] == ["t.json"]
    assert sources.warnings == (
        "2 hidden files and folders were not read",
        "3 symbolic links were not followed",
        "1 files that are no regular ones were not read",
    )


def test_a_link_that_was_named_is_followed(tmp_path: Path) -> None:
    written(tmp_path, {"t.json": b"1"})
    (tmp_path / "link.json").symlink_to(tmp_path / "t.json")
    assert names_of(tmp_path / "link.json") == ["link.json"]


def test_names_are_such_as_can_be_shown(tmp_path: Path) -> None:
    written(tmp_path / "job", {"rank\x1b[2J.json": b"1"})
    (tmp_path / "job" / os.fsdecode(b"caf\xe9.json")).write_bytes(b"2")
    names = names_of(tmp_path / "job")
    assert sorted(names) == ["caf\ufffd.json", "rank\ufffd[2J.json"]
    assert "".join(names).encode()


def test_archives_are_unpacked_where_wanted(tmp_path: Path) -> None:
    written(tmp_path, {"job.zip": zip_of({"t.json": b"[]"}), "scratch/x": b""})
    with find_sources([tmp_path / "job.zip"], Limits(), scratch=tmp_path / "scratch") as sources:
        assert sources.files[0].path.is_relative_to(tmp_path / "scratch")


def test_archives_in_a_folder_are_opened_and_gone_afterwards(tmp_path: Path) -> None:
    written(tmp_path, {"job/ranks.tar.gz": tar_of({"rank0.json.gz": gz(b"{}"), "rank1.json": b"[]"}, "w:gz")})
    with find_sources([tmp_path / "job"], Limits()) as sources:
        assert [(one.name, one.named) for one in sources.files] == [
            ("ranks.tar.gz/rank0.json.gz", False),
            ("ranks.tar.gz/rank1.json", False),
        ]
        kept = [source.path for source in sources.files]
        assert [path.read_bytes() for path in kept] == [gz(b"{}"), b"[]"]
        assert all(path.name.isdigit() for path in kept)
    assert not any(path.exists() for path in kept)


def test_what_archives_hold_is_gone_after_an_error_too(tmp_path: Path) -> None:
    written(tmp_path, {"job.zip": zip_of({"t.json": b"[]"})})
    seen: list[Path] = []

    def fail_with_it() -> None:
        with find_sources([tmp_path / "job.zip"], Limits()) as sources:
            seen.extend(source.path for source in sources.files)
            raise KeyError

    with pytest.raises(KeyError):
        fail_with_it()
    assert not seen[0].parent.exists()


def test_the_same_bytes_count_once_whatever_their_order(tmp_path: Path) -> None:
    written(tmp_path, {"a.json": b"same", "b.json": b"same", "c.json": b"else", "x.zip": zip_of({"t.json": b"same"})})
    paths = [tmp_path / name for name in ("b.json", "x.zip", "a.json", "c.json")]
    for order in (paths, paths[::-1]):
        sources = sources_of(*order)
        assert {source.name for source in sources.files} == {"a.json", "c.json"}
        assert set(sources.warnings) == {
            "b.json has the same content as a.json: counted once",
            "x.zip/t.json has the same content as a.json: counted once",
        }


def test_a_broken_archive_sinks_the_job_only_if_it_was_named(tmp_path: Path) -> None:
    job = written(tmp_path / "job", {"broken.zip": zip_of({"t.json": b"[]"})[:-9], "t.json": b"[]"})
    with pytest.raises(CorruptTrace, match=r"broken.zip is a zip archive without"):
        sources_of(job / "broken.zip")
    sources = sources_of(job)
    assert [source.name for source in sources.files] == ["t.json"]
    assert sources.warnings[0].startswith("broken.zip is a zip archive without a readable directory")
    assert sources.warnings[0].endswith("; it was left out")


def test_limits_are_those_of_the_whole_job(tmp_path: Path) -> None:
    job = written(
        tmp_path / "job", {f"{number}.zip": zip_of({"t": bytes(600) + bytes([number])}) for number in range(3)}
    )
    with pytest.raises(TraceTooLarge, match=r"unpacked size in bytes is at least 1,803, 3 over the limit of 1,800"):
        sources_of(*(job / f"{number}.zip" for number in range(3)), limits=Limits(max_unpacked_bytes=1800))
    with pytest.raises(TraceTooLarge, match="number of files in the folders is at least 3"):
        sources_of(job, limits=Limits(max_files=2))


def test_a_bomb_in_a_folder_is_left_out_and_told(tmp_path: Path) -> None:
    job = written(tmp_path / "job", {"bomb.zip": zip_of({"t": bytes(64 << 20)}), "t.json": b"[]"})
    sources = sources_of(job)
    assert [source.name for source in sources.files] == ["t.json"]
    assert "compression ratio of bomb.zip/t is at least" in sources.warnings[0]


def test_where_nothing_is(tmp_path: Path) -> None:
    with pytest.raises(InvalidDescription, match="no trace file was given"):
        sources_of()
    with pytest.raises(InvalidDescription, match=r"no trace file 'absent.json'"):
        sources_of(tmp_path / "absent.json")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidDescription, match="no trace file 'pipe'"):
        sources_of(tmp_path / "pipe")
    job = written(tmp_path / "job", {".hidden": b"1"})
    with pytest.raises(EmptyTrace, match=r"there is no file in job \(1 hidden files and folders were not read\)"):
        sources_of(job)
    written(tmp_path, {"empty.zip": zip_of({})})
    with pytest.raises(EmptyTrace, match=r"empty.zip is an archive without a file that can be read"):
        sources_of(tmp_path / "empty.zip")


def test_a_file_that_may_not_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = written(tmp_path / "job", {"t.json": b"[]", "u.json": b"{}"})
    open_path = Path.open

    def refuse(path: Path, *how: str) -> object:
        if path.name == "t.json":
            raise PermissionError(13, "Permission denied")
        return open_path(path, *how)

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(TraceError, match=r"t.json cannot be read: Permission denied"):
        sources_of(job / "t.json")
    sources = sources_of(job)
    assert [source.name for source in sources.files] == ["u.json"]
    assert sources.warnings == ("t.json cannot be read: Permission denied; it was left out",)
