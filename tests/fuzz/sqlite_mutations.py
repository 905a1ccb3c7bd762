"""Ways to change a database that leave it one: cells, rows, columns, tables."""

import sqlite3
from random import Random
from typing import Final

_CELLS: Final = (
    None,
    0,
    1,
    -1,
    7,
    18,
    34,
    59,
    60,
    75,
    2**31,
    2**53,
    2**62,
    2**63 - 1,
    -(2**63),
    1.5,
    float("inf"),
    "",
    "7",
    "kernel",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
    "3.25.0",
    "aten::mm, op_id = 4",
    b"",
    b"\xff\xfe",
    b"\x00" * 40,
)
_MOST_EDITS: Final = 4


def reshaped_sqlite(data: bytes, random: Random) -> bytes | None:
    """The database after one to four changes; None where SQLite cannot open or change it."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        connection.deserialize(data)
        connection.execute("PRAGMA journal_mode = OFF")
        for _ in range(random.randint(1, _MOST_EDITS)):
            _change(connection, random)
        return connection.serialize()
    except (sqlite3.Error, UnicodeDecodeError, MemoryError):
        return None
    finally:
        connection.close()


def _change(connection: sqlite3.Connection, random: Random) -> None:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    if not rows:
        return
    table = _quoted(random.choice(rows)[0])
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})").fetchall()]
    if not columns:
        return
    column, other = _quoted(random.choice(columns)), _quoted(random.choice(columns))
    what = random.randrange(9)
    if what == 0:
        connection.execute(f"DELETE FROM {table} WHERE rowid % 2 = {random.randrange(2)}")  # noqa: S608
    elif what == 1:
        connection.execute(f"INSERT INTO {table} SELECT * FROM {table}")  # noqa: S608
    elif what == 2 and len(columns) > 1:
        connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    elif what == 3:
        connection.execute(f"DROP TABLE {table}")
    elif what == 4:
        name = random.choice(("CUPTI_ACTIVITY_KIND_KERNEL_V2", "NVTX_EVENTS", "StringIds", "x"))
        connection.execute(f"ALTER TABLE {table} RENAME TO {_quoted(name)}")
    elif what == 5:
        connection.execute(f"UPDATE {table} SET {column} = {other}")  # noqa: S608
    else:
        place = random.randrange(4)
        chosen = f"rowid = (SELECT rowid FROM {table} ORDER BY rowid LIMIT 1 OFFSET {place})"  # noqa: S608
        where = "1" if random.random() < 0.3 else chosen
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (random.choice(_CELLS),))  # noqa: S608


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
