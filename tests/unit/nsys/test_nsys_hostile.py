"""Nsight exports that are of another version, damaged, not what they seem, or made to do harm."""

import gzip
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from nsys_builder import KERNEL, NVTX, RUNTIME, Export, names, read_file

from projector.errors import CorruptTrace, EmptyTrace, TraceError, TraceTooLarge, UnsupportedTrace
from traces.content import Content, Limits
from traces.nsys.database import open_database
from traces.read import DEFAULT_LIMITS, find_reader
from traces.readers.nsys import READER


def one_kernel() -> Export:
    export = Export()
    export.kernel("sgemm_kernel", 0, 10)
    return export


@pytest.mark.parametrize("version", ["2.9.1", "3.0.0", "3.25.0", "3.99"])
def test_known_versions_pass(tmp_path: Path, version: str) -> None:
    export = one_kernel()
    export.version = version
    assert export.trace(tmp_path).warnings == ()


@pytest.mark.parametrize("version", ["1.4.0", "4.0.0", "25.1"])
def test_an_unknown_version_is_refused_with_those_that_are_known(tmp_path: Path, version: str) -> None:
    export = one_kernel()
    export.version = version
    with pytest.raises(UnsupportedTrace, match=f"export of schema {version}; known here are 2.x and 3.x") as refused:
        export.read(tmp_path)
    assert "nsys export" in refused.value.hint


def test_in_older_files_the_version_stands_in_another_table(tmp_path: Path) -> None:
    export = one_kernel()
    export.renamed["META_DATA_EXPORT"] = "EXPORT_META_DATA"
    assert export.trace(tmp_path).warnings == ()
    export.version = "9.0.0"
    folder = tmp_path / "new"
    folder.mkdir()
    with pytest.raises(UnsupportedTrace, match=r"9\.0\.0"):
        export.read(folder)


@pytest.mark.parametrize(("version", "said"), [(None, "no schema version"), ("soon", "the schema version 'soon'")])
def test_an_export_without_a_version_is_read_aloud(tmp_path: Path, version: str | None, said: str) -> None:
    export = one_kernel()
    export.version = version
    (told,) = export.trace(tmp_path).warnings
    assert told.startswith(f"the export states {said}; its tables were read as those of schema 2.x and 3.x")


def test_gzipped_and_in_memory(tmp_path: Path) -> None:
    path = one_kernel().write(tmp_path / "a.sqlite")
    packed = tmp_path / "a.sqlite.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert [names(trace) for trace in read_file(packed)] == [["sgemm_kernel"]]
    content = Content("memory", path.read_bytes())
    assert READER.claims(content)
    assert [names(trace) for trace in READER.read(content, DEFAULT_LIMITS)] == [["sgemm_kernel"]]


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    data = one_kernel().write(tmp_path / "a.sqlite").read_bytes()
    READER.read(Content("memory", data), DEFAULT_LIMITS)
    with pytest.raises(CorruptTrace):
        READER.read(Content("memory", data[:5000]), DEFAULT_LIMITS)
    assert [path.name for path in tmp_path.iterdir()] == ["a.sqlite"]


def test_a_gzip_stream_that_ends_early(tmp_path: Path) -> None:
    packed = tmp_path / "a.sqlite.gz"
    packed.write_bytes(gzip.compress(one_kernel().write(tmp_path / "a.sqlite").read_bytes())[:-40])
    with pytest.raises(CorruptTrace, match="ends early"):
        read_file(packed)


@pytest.mark.parametrize(
    "name", ["a b?.sqlite", "100%20.sqlite", "x#y?mode=rwc&vfs=z.sqlite", "ünï.sqlite", "'\".sqlite"]
)
def test_a_file_name_is_no_part_of_an_address(tmp_path: Path, name: str) -> None:
    path = one_kernel().write(tmp_path / "plain.sqlite").rename(tmp_path / name)
    assert len(read_file(path)) == 1
    assert [one.name for one in tmp_path.iterdir()] == [name]


def test_a_file_is_opened_to_be_read_only(tmp_path: Path) -> None:
    path = one_kernel().write(tmp_path / "a.sqlite")
    before = path.read_bytes()
    with open_database(Content.on_disk(path, DEFAULT_LIMITS, "a", compressed=False), DEFAULT_LIMITS) as db:
        for statement in (
            "DELETE FROM StringIds",
            "CREATE TABLE more (a)",
            "ATTACH ':memory:' AS other",
            "PRAGMA writable_schema = ON",
            "SELECT load_extension('x')",
            "SELECT readfile('/etc/hostname')",
            "SELECT * FROM pragma_database_list",
            "SELECT random()",
        ):
            with pytest.raises(sqlite3.Error):
                db.connection.execute(statement)
    assert path.read_bytes() == before


def test_views_triggers_virtual_and_computed_columns_do_not_run(tmp_path: Path) -> None:
    export = one_kernel()
    endless = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT"
    export.statements += [
        f"CREATE VIEW {NVTX} AS {endless} n AS start, n AS end, 59 AS eventType FROM t",
        f"CREATE VIEW CUPTI_ACTIVITY_KIND_MEMCPY AS {endless} n AS start FROM t",
        f"CREATE TABLE {RUNTIME} (start INT, nameId INT, end INT GENERATED ALWAYS AS (start + length(hex(start))))",
        f"INSERT INTO {RUNTIME} VALUES (1, 2)",  # noqa: S608
        f"CREATE TRIGGER watch AFTER INSERT ON {KERNEL} BEGIN DELETE FROM StringIds; END",  # noqa: S608
        "CREATE VIRTUAL TABLE CUPTI_ACTIVITY_KIND_MEMSET USING fts5(start)",
    ]
    trace = export.trace(tmp_path)
    assert names(trace) == ["sgemm_kernel"]
    assert "1 CUDA API calls have no usable start or end and were dropped" in trace.warnings


def test_a_view_in_place_of_the_kernels_is_no_table(tmp_path: Path) -> None:
    export = one_kernel()
    export.renamed[KERNEL] = "hidden"
    export.statements.append(f"CREATE VIEW {KERNEL} AS SELECT * FROM hidden")  # noqa: S608
    with pytest.raises(EmptyTrace):
        export.read(tmp_path)


def many_kernels(folder: Path) -> Path:
    export = Export()
    for index in range(3_000):
        export.kernel("sgemm_kernel", 10 * index, 10 * index + 5)
    return export.write(folder / "many.sqlite")


def test_more_events_than_the_limit(tmp_path: Path) -> None:
    with pytest.raises(TraceTooLarge, match=r"number of events in many\.sqlite is at least 3,000"):
        read_file(many_kernels(tmp_path), Limits(max_events=2_999))


def test_a_database_that_is_cut_off_is_corrupt(tmp_path: Path) -> None:
    path = many_kernels(tmp_path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(CorruptTrace, match="damaged SQLite file") as refused:
        read_file(path)
    assert "copy the file again" in refused.value.hint


def root_page(path: Path, table: str) -> tuple[int, int]:
    """Number of a table's first page, and bytes of a page."""
    with closing(sqlite3.connect(path)) as database:
        (root,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
    return root, size


def test_a_page_of_noise_is_corrupt(tmp_path: Path) -> None:
    path = many_kernels(tmp_path)
    root, size = root_page(path, KERNEL)
    data = bytearray(path.read_bytes())
    data[(root - 1) * size : root * size] = random.Random(3).randbytes(size)  # noqa: S311
    path.write_bytes(data)
    with pytest.raises(CorruptTrace):
        read_file(path)


def test_pages_that_refer_to_one_page_over_and_over_end(tmp_path: Path) -> None:
    path = many_kernels(tmp_path)
    root, size = root_page(path, KERNEL)
    data = bytearray(path.read_bytes())
    page = (root - 1) * size
    cells = int.from_bytes(data[page + 3 : page + 5], "big")
    pointers = [int.from_bytes(data[page + 12 + 2 * index : page + 14 + 2 * index], "big") for index in range(cells)]
    first_child = data[page + pointers[0] : page + pointers[0] + 4]
    for pointer in pointers:
        data[page + pointer : page + pointer + 4] = first_child
    path.write_bytes(data)
    with pytest.raises((TraceTooLarge, CorruptTrace)):
        read_file(path, Limits(max_events=2_000))
    data[page + pointers[0] : page + pointers[0] + 4] = root.to_bytes(4, "big")
    path.write_bytes(data)
    with pytest.raises((TraceTooLarge, CorruptTrace)):
        read_file(path)


def test_a_file_that_needs_more_steps_than_its_size_allows_is_corrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traces.nsys.database._STEPS_AT_LEAST", 0)
    monkeypatch.setattr("traces.nsys.database._STEPS_PER_BYTE", 0)
    monkeypatch.setattr("traces.nsys.database._STEPS_BETWEEN_LOOKS", 1_000)
    with pytest.raises(CorruptTrace, match="more steps than a file of its size can need"):
        read_file(many_kernels(tmp_path))


def test_changed_bytes_end_in_traces_or_typed_errors(tmp_path: Path) -> None:
    export = Export()
    for index in range(40):
        export.launched(f"kernel_{index}", 100 * index, 100 * index + 50, index + 1, at=100 * index - 20)
        export.span(f"aten::mm, op_id = {index}, sizes = [[2, 4]]", 100 * index - 30, 100 * index)
    whole = export.write(tmp_path / "whole.sqlite").read_bytes()
    chance = random.Random(7)  # noqa: S311
    outcomes = set()
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 6)):
            data[chance.randrange(16, len(data))] = chance.randrange(256)
        try:
            outcomes.add(bool(READER.read(Content("changed", bytes(data)), DEFAULT_LIMITS)))
        except TraceError as refused:
            outcomes.add(type(refused))
    assert CorruptTrace in outcomes
    assert True in outcomes


def test_other_databases_are_not_claimed_and_nvprof_s_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "nvprof.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (start INT)")
        database.execute("CREATE TABLE StringTable (_id_ INT, value TEXT)")
        database.commit()
    with pytest.raises(UnsupportedTrace, match="database of nvprof"):
        read_file(path)
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as database:
        database.execute("CREATE TABLE customers (name TEXT)")
        database.commit()
    assert not READER.claims(Content("other", (tmp_path / "other.sqlite").read_bytes()))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"NVIDIA Tegra Profiler Report\x00\x01\x02", "raw report of Nsight Systems"),
        (b"PAR1" + b"\0" * 40 + b"globalTid" + b"PAR1", "table of a Parquet or Arrow export"),
        (b"ARROW1\0\0" + b"\0" * 40 + b"globalPid", "table of a Parquet or Arrow export"),
    ],
)
def test_what_nsight_writes_otherwise_is_refused_with_the_way_to_export_it(data: bytes, told: str) -> None:
    content = Content("report", data)
    assert find_reader(content) is READER
    with pytest.raises(UnsupportedTrace, match=told) as refused:
        READER.read(content, DEFAULT_LIMITS)
    assert "nsys export --type sqlite" in refused.value.hint


def test_tables_of_other_parquet_files_are_not_claimed() -> None:
    assert not READER.claims(Content("sales", b"PAR1" + b"price" * 100 + b"PAR1"))


def test_hostile_names_stay_data(tmp_path: Path) -> None:
    export = Export()
    export.kernel("<script>alert(1)</script>\n{0.__class__}%s'; DROP TABLE StringIds; --", 0, 10)
    assert names(export.trace(tmp_path)) == ["<script>alert(1)</script>\n{0.__class__}%s'; DROP TABLE StringIds; --"]


def test_texts_that_are_none_become_replacement_characters(tmp_path: Path) -> None:
    export = one_kernel()
    export.statements.append("UPDATE StringIds SET value = CAST(x'ff00fe41' AS TEXT)")
    assert names(export.trace(tmp_path)) == ["\ufffd\0\ufffdA"]


def test_a_long_name_is_cut(tmp_path: Path) -> None:
    export = Export()
    export.kernel("k" * 100_000, 0, 10)
    assert names(export.trace(tmp_path)) == ["k" * 65_536]


def test_a_value_of_more_than_64_mib_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traces.nsys.database._LARGEST_STORED_BYTES", 30_000)
    export = Export()
    export.kernel("k" * 100_000, 0, 10)
    with pytest.raises(TraceTooLarge, match="more than 30,000 bytes"):
        export.read(tmp_path)


def test_strings_need_no_key(tmp_path: Path) -> None:
    export = one_kernel()
    export.statements += [
        "CREATE TABLE plain AS SELECT * FROM StringIds",
        "DROP TABLE StringIds",
        "ALTER TABLE plain RENAME TO StringIds",
    ]
    assert names(export.trace(tmp_path)) == ["sgemm_kernel"]


def test_a_database_of_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "wide.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA encoding = 'UTF-16le'")
        database.execute(f"CREATE TABLE {KERNEL} (start INT, end INT, shortName INT)")
        database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        database.execute("CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)")
        database.execute(f"INSERT INTO {KERNEL} VALUES (1, 2, 3)")  # noqa: S608
        database.execute("INSERT INTO StringIds VALUES (3, 'sgemm')")
        database.execute("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.1.0')")
        database.commit()
    (trace,) = READER.read(Content.on_disk(path, DEFAULT_LIMITS, "wide", compressed=False), DEFAULT_LIMITS)
    assert (names(trace), trace.warnings) == (["sgemm"], ())
