"""A read-only look into an SQLite file that may be hostile: stored tables and their columns, whole numbers and texts.

What a file can make SQLite do is narrowed down before the first row is read:
  - the file is opened read-only and immutable; nothing is written, no journal is replayed
  - the schema is not trusted (no functions with side effects in it), and an authorizer lets pass nothing but reads of
    stored tables, so that views, virtual tables and triggers cannot run
  - identifiers come from a list of known names, and are quoted; values never become part of a statement
  - a value counts as a number only where it is stored as one, whatever its column is declared as
  - rows are counted while they are read (`max_events`), never taken from a header, and the steps the engine may take
    are bounded by the size of the file, so that pages that refer to each other in circles end in an error
  - no text or blob may be longer than 64 MiB

https://www.sqlite.org/security.html
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from projector.errors import CorruptTrace, TraceTooLarge
from traces.content import Content, Limits
from traces.trace import Ints

MAGIC: Final = b"SQLite format 3\0"
NO_NUMBER: Final = -(2**63)
"""Stands for a value that is absent, NULL or not stored as a whole number."""

LONGEST_VALUE_BYTES: Final = 65_536
"""So much of a text or blob is read; the rest of a longer one is left."""

Row = tuple[Any, ...]

_NO_NUMBER_SQL: Final = f"({NO_NUMBER + 1} - 1)"  # written out in full it would be read as a float
_ROWS_AT_ONCE: Final = 32_768
_LARGEST_STORED_BYTES: Final = 64 << 20
_STEPS_PER_BYTE: Final = 64
_STEPS_AT_LEAST: Final = 50_000_000
_STEPS_BETWEEN_LOOKS: Final = 1_000_000
_KEYS_AT_ONCE: Final = 500
_FUNCTIONS: Final = frozenset({"typeof", "substr"})


@dataclass(slots=True)
class Database:
    """One open file.

    tables    the stored tables by name, each with its stored columns in order
    keys      tables whose rows are filed by a column that is a whole number -> that column
    encoding  of texts
    warnings  what was odd about the file itself
    """

    file: str
    limits: Limits
    connection: sqlite3.Connection
    tables: Mapping[str, tuple[str, ...]]
    keys: Mapping[str, str]
    encoding: str
    warnings: tuple[str, ...] = ()
    rows_read: int = 0

    def numbers(self, table: str, columns: Sequence[str]) -> Ints:
        """Columns of whole numbers, shape (rows, len(columns)); NO_NUMBER where a row, or the table, has none."""
        blocks = [
            np.array(rows, dtype=np.int64)
            for rows in self._blocks(table, [self._number(table, column) for column in columns])
        ]
        return np.concatenate(blocks) if blocks else np.empty((0, len(columns)), dtype=np.int64)

    def records(
        self, table: str, numbers: Sequence[str], values: Sequence[str] = (), *, counted: bool = True
    ) -> Iterator[list[Row]]:
        """Rows in blocks, as tuples: whole numbers or NO_NUMBER, then the bytes of texts and blobs, or None.

        `text` makes a text of bytes. counted: whether the rows are events, of which there may be `max_events`.
        """
        yield from self._blocks(
            table,
            [self._number(table, column) for column in numbers] + [self._bytes(table, column) for column in values],
            counted=counted,
        )

    def text(self, value: bytes | None) -> str:
        """A text as it is meant; what is no text becomes replacement characters, None becomes ""."""
        return (value or b"").decode(self.encoding, "replace")

    def texts(self, table: str, key: str, value: str, wanted: Sequence[int]) -> dict[int, str]:
        """The texts filed in `table` under the wanted keys; a key that is not there is not in the answer."""
        if key not in self.tables.get(table, ()):
            return {}
        keys = list(dict.fromkeys(wanted))
        shown = [self._number(table, key), self._bytes(table, value)]
        if self.keys.get(table) != key:
            sought = set(keys)
            blocks: Iterator[list[Row]] = self._blocks(table, shown, counted=False)
        else:
            sought = set()
            blocks = (
                self._filed(table, shown, keys[at : at + _KEYS_AT_ONCE]) for at in range(0, len(keys), _KEYS_AT_ONCE)
            )
        return {
            row[0]: self.text(row[1])
            for rows in blocks
            for row in rows
            if row[1] is not None and (not sought or row[0] in sought)
        }

    def _filed(self, table: str, shown: Sequence[str], keys: Sequence[int]) -> list[Row]:
        places = ", ".join("?" * len(keys))
        query = f"SELECT {', '.join(shown)} FROM {quoted(table)} WHERE {quoted(self.keys[table])} IN ({places})"  # noqa: S608
        return self.connection.execute(query, keys).fetchall()

    def has_rows(self, table: str) -> bool:
        """Whether the table is there and holds a row."""
        if table not in self.tables:
            return False
        return self.connection.execute(f"SELECT 1 FROM {quoted(table)} LIMIT 1").fetchone() is not None  # noqa: S608

    def count(self, table: str) -> int:
        """Rows of a table, found by walking it; 0 where it is not there."""
        return sum(len(rows) for rows in self._blocks(table, ["1"], counted=False))

    def _blocks(self, table: str, expressions: Sequence[str], *, counted: bool = True) -> Iterator[list[Row]]:
        if table not in self.tables:
            return
        cursor = self.connection.execute(f"SELECT {', '.join(expressions)} FROM {quoted(table)}")  # noqa: S608
        while rows := cursor.fetchmany(_ROWS_AT_ONCE):
            if counted:
                self.rows_read += len(rows)
                self.limits.check("max_events", self.rows_read, f"number of events in {self.file}")
            yield rows

    def _number(self, table: str, column: str) -> str:
        if column not in self.tables.get(table, ()):
            return _NO_NUMBER_SQL
        return f"CASE typeof({quoted(column)}) WHEN 'integer' THEN {quoted(column)} ELSE {_NO_NUMBER_SQL} END"

    def _bytes(self, table: str, column: str) -> str:
        if column not in self.tables.get(table, ()):
            return "NULL"
        return f"substr(CAST({quoted(column)} AS BLOB), 1, {LONGEST_VALUE_BYTES})"


def quoted(name: str) -> str:
    """An identifier as SQL text."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def open_database(content: Content, limits: Limits) -> Iterator[Database]:
    """Open the database a content holds, for the time of a `with` block.

    A plain file is read where it lies; other content (inflated, out of an archive) is first written to a temporary
    file, which is gone afterwards.

    Raises `CorruptTrace` where SQLite finds the file damaged, or the compressed file ended early, also from within the
    block; `TraceTooLarge` where a limit is passed.
    """
    with _on_disk(content) as (path, warnings):
        connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None)
        try:
            encoding = _guard(connection, path.stat().st_size)
            tables, keys = _stored_tables(connection)
            yield Database(content.file, limits, connection, tables, keys, encoding, warnings)
        except sqlite3.ProgrammingError:
            raise
        except sqlite3.DataError as fault:
            raise TraceTooLarge(
                f"{content.file} holds a text or blob of more than {_LARGEST_STORED_BYTES:,} bytes ({fault})",
                hint="export the report again",
            ) from fault
        except (sqlite3.Error, UnicodeDecodeError) as fault:  # the latter: a message that quotes noise
            raise CorruptTrace(
                f"{content.file} is a damaged SQLite file: {_reason(fault)}",
                hint="copy the file again, or export the report again: nsys export --type sqlite",
            ) from fault
        finally:
            connection.close()


def _reason(fault: Exception) -> str:
    if str(fault) == "interrupted":
        return "reading it takes more steps than a file of its size can need"
    return "its schema is no text" if isinstance(fault, UnicodeDecodeError) else str(fault)


@contextmanager
def _on_disk(content: Content) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Where SQLite finds the bytes, and what was odd about them."""
    if content.path is not None:
        with content.path.open("rb") as file:
            plain = file.read(len(MAGIC)) == MAGIC
        if plain:
            yield content.path.resolve(), ()
            return
    with TemporaryDirectory(prefix="shardwise-") as folder:
        path = Path(folder) / "export.sqlite"
        try:
            with path.open("wb") as file:
                file.writelines(content.blocks())
        except OSError as fault:
            raise TraceTooLarge(
                f"there is no room to unpack {content.file}: {fault.strerror}", hint="unpack it yourself, and give that"
            ) from fault
        if content.truncated:
            raise CorruptTrace(f"{content.file}: the gzip stream ends early", hint="copy the file again")
        yield path.resolve(), content.warnings


def _guard(connection: sqlite3.Connection, size_bytes: int) -> str:
    """Narrow down what the connection can do; the encoding of the file's texts."""
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_STORED_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0", "query_only = ON"):
        connection.execute(f"PRAGMA {pragma}").close()
    (encoding,) = connection.execute("PRAGMA encoding").fetchone()
    steps_left = _STEPS_AT_LEAST + _STEPS_PER_BYTE * size_bytes

    def out_of_steps() -> bool:
        nonlocal steps_left
        steps_left -= _STEPS_BETWEEN_LOOKS
        return steps_left < 0

    connection.set_progress_handler(out_of_steps, _STEPS_BETWEEN_LOOKS)
    connection.set_authorizer(_allowed)
    return str(encoding)


def _allowed(action: int, first: str | None, second: str | None, _base: str | None, inside: str | None) -> int:
    """The authorizer: reads of tables and of their columns' names, with two functions, outside any view or trigger."""
    harmless = (
        action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)
        or (action == sqlite3.SQLITE_PRAGMA and first == "table_info")
        or (action == sqlite3.SQLITE_FUNCTION and second in _FUNCTIONS)
    )
    return sqlite3.SQLITE_OK if harmless and inside is None else sqlite3.SQLITE_DENY


def _stored_tables(connection: sqlite3.Connection) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Tables with their stored columns, and the column of each that its rows are filed by.

    A view and a virtual table have no root page; computed columns are not listed by `table_info`.
    """
    rows = connection.execute("SELECT name, type, rootpage FROM sqlite_master").fetchall()
    tables: dict[str, tuple[str, ...]] = {}
    keys: dict[str, str] = {}
    for name, kind, root in rows:
        if kind != "table" or not isinstance(name, str) or not isinstance(root, int) or root <= 0:
            continue
        columns = connection.execute(f"PRAGMA table_info({quoted(name)})").fetchall()
        tables[name] = tuple(str(column[1]) for column in columns)
        marked = [column for column in columns if column[5]]
        if len(marked) == 1 and str(marked[0][2]).upper() == "INTEGER":
            keys[name] = str(marked[0][1])
    return tables, keys
