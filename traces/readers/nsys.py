"""Nsight Systems: the sqlite export and the raw report: recognised, not read."""

from traces.content import Content, Limits
from traces.reader import Reader, unsupported
from traces.trace import Trace


def claims(content: Content) -> bool:
    """An SQLite file with the tables of an Nsight export."""
    return content.head.startswith(b"SQLite format 3\0") and content.mentions(
        b"CUPTI_ACTIVITY_KIND", b"META_DATA_EXPORT", b"TARGET_INFO_SYSTEM_ENV"
    )


def read(content: Content, _limits: Limits) -> tuple[Trace, ...]:
    """Always `UnsupportedTrace`."""
    unsupported(content, "an Nsight Systems sqlite export", "profile the same steps with torch.profiler")


READER = Reader("nsys", "Nsight Systems (sqlite)", claims, read)
