"""Nsight Systems: the sqlite export is read; the raw report and exports of other kinds are recognised and refused."""

from typing import Final

from projector.errors import UnsupportedTrace
from traces.content import Content, Limits
from traces.nsys.convert import traces_of
from traces.nsys.database import MAGIC, open_database
from traces.reader import Reader
from traces.trace import Trace

_EXPORT: Final = "export the report to sqlite: nsys export --type sqlite --include-blobs true REPORT"
_NSIGHT_TABLES: Final = (b"CUPTI_ACTIVITY_KIND", b"META_DATA_EXPORT", b"EXPORT_META_DATA", b"TARGET_INFO_SYSTEM_ENV")

# Not documented by NVIDIA; seen at the start of reports of 2022 to 2025.
_REPORT_MAGIC: Final = b"NVIDIA Tegra Profiler Report"

_ARROW_MAGIC: Final = b"ARROW1\0\0"
_PARQUET_MAGIC: Final = b"PAR1"
_COLUMNS_OF_EXPORTS: Final = (b"globalTid", b"globalPid")


def claims(content: Content) -> bool:
    """An SQLite file with tables of an Nsight export, a raw report, or one table of a Parquet or Arrow export."""
    if content.head.startswith(MAGIC):
        return content.mentions(*_NSIGHT_TABLES)
    return content.head.startswith(_REPORT_MAGIC) or _is_columnar(content)


def read(content: Content, limits: Limits) -> tuple[Trace, ...]:
    """One Trace for each process and device with events.

    Raises `UnsupportedTrace` (a report, or another kind of export, an unknown schema), `CorruptTrace`, `EmptyTrace`,
    `TraceTooLarge`.
    """
    if content.head.startswith(_REPORT_MAGIC):
        raise UnsupportedTrace(f"{content.file} is a raw report of Nsight Systems (.nsys-rep)", hint=_EXPORT)
    if not content.head.startswith(MAGIC):
        raise UnsupportedTrace(
            f"{content.file} is one table of a Parquet or Arrow export of Nsight Systems, which are not read",
            hint=_EXPORT,
        )
    with open_database(content, limits) as db:
        if "StringTable" in db.tables and "StringIds" not in db.tables:
            raise UnsupportedTrace(
                f"{content.file} is a database of nvprof, which is not read",
                hint="profile with Nsight Systems, or with torch.profiler",
            )
        return traces_of(db)


def _is_columnar(content: Content) -> bool:
    is_file = content.head.startswith((_ARROW_MAGIC, _PARQUET_MAGIC))
    return is_file and content.mentions(*_COLUMNS_OF_EXPORTS)


READER = Reader("nsys", "Nsight Systems (sqlite export)", claims, read)
