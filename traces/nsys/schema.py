"""Which version of the export schema a file follows, and what its tables are called.

The version stands in META_DATA_EXPORT, in older files (schemas 2.9 and 3.0 among those seen) in EXPORT_META_DATA. A
file may call a table by its plain name or with a version behind it (NVTX_EVENTS_V2); then the newest that holds rows is
read. Tables are written only where there is something to put in them, and their columns differ from version to version,
so a reader asks for what it finds.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from projector.errors import UnsupportedTrace
from traces.nsys.database import Database

KNOWN_MAJORS: Final = (2, 3)

_META_TABLES: Final = ("META_DATA_EXPORT", "EXPORT_META_DATA")
_VERSION: Final = re.compile(r"(\d{1,4})\.(\d{1,4})(?:\.\d{1,6})?")
_SUFFIX: Final = re.compile(r"_V(\d{1,3})")
_SHOWN: Final = 40


def export_facts(db: Database) -> Mapping[str, str]:
    """What the exporter wrote of itself, by name; empty where it wrote nothing."""
    return dict(named_values(db, _META_TABLES))


def named_values(db: Database, tables: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """(name, value) of the rows of the given tables; a name may come more than once."""
    for table in tables:
        for rows in db.records(table, (), ("name", "value"), counted=False):
            yield from ((db.text(name), db.text(value)) for name, value in rows if name is not None)


def check_version(db: Database, facts: Mapping[str, str]) -> tuple[str, ...]:
    """Warnings about the version; `UnsupportedTrace` where its major number is not known here."""
    stated = facts.get("EXPORT_SCHEMA_VERSION", "")
    known = " and ".join(f"{major}.x" for major in KNOWN_MAJORS)
    match = _VERSION.match(stated)
    if match is None:
        said = f"states the schema version {stated[:_SHOWN]!r}" if stated else "states no schema version"
        return (f"the export {said}; its tables were read as those of schema {known}, by the columns they have",)
    if int(match[1]) not in KNOWN_MAJORS:
        raise UnsupportedTrace(
            f"{db.file} is an Nsight Systems export of schema {match[0]}; known here are {known}",
            hint="export the report with nsys of 2022 to 2026: nsys export --type sqlite",
        )
    return ()


def find_table(db: Database, name: str, warnings: list[str]) -> str:
    """The table to read for a plain name: the newest version of it that holds rows; the plain name where none does."""
    versions = {0: name} if name in db.tables else {}
    for table in db.tables:
        if table.startswith(name) and (match := _SUFFIX.fullmatch(table, len(name))) is not None:
            versions[int(match[1])] = table
    filled = [versions[number] for number in sorted(versions, reverse=True) if db.has_rows(versions[number])]
    if len(filled) > 1:
        warnings.append(f"tables {', '.join(filled)} all hold rows; {filled[0]} was read, the others were left out")
    return filled[0] if filled else name
