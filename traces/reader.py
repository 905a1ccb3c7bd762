"""A trace format: how it is recognised by content, and how it is read. One format is one module in `traces.readers`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Literal, NoReturn

from projector.errors import UnknownTraceFormat, UnsupportedTrace
from traces import readers
from traces.content import Content, Limits
from traces.trace import Trace


@dataclass(frozen=True, slots=True)
class Reader:
    """One format. `claims` looks at content only; exactly one reader claims a known file.

    role: a companion says more of a trace it is joined with and has no times of its own; read alone it is refused.
    """

    name: str
    title: str
    claims: Callable[[Content], bool]
    read: Callable[[Content, Limits], tuple[Trace, ...]]
    role: Literal["trace", "companion"] = "trace"


@cache
def all_readers() -> tuple[Reader, ...]:
    """Every `READER` found in the folder `traces/readers`, by name."""
    modules = (import_module(f"{readers.__name__}.{info.name}") for info in iter_modules(readers.__path__))
    return tuple(sorted((module.READER for module in modules), key=lambda reader: reader.name))


def find_reader(content: Content) -> Reader:
    """The one reader that claims the content; `UnknownTraceFormat` where none does, or several do."""
    claimants = [reader for reader in all_readers() if reader.claims(content)]
    if not claimants:
        known = ", ".join(reader.title for reader in all_readers())
        raise UnknownTraceFormat(
            f"{content.file} is no trace format that is known here (it starts with {content.head[:16]!r})",
            hint=f"recognised: {known}",
        )
    if len(claimants) > 1:
        marks = ", ".join(reader.title for reader in claimants)
        raise UnknownTraceFormat(
            f"{content.file} has the marks of several formats: {marks}", hint="give the file as the profiler wrote it"
        )
    return claimants[0]


def unsupported(content: Content, title: str, hint: str) -> NoReturn:
    """Refuse a format that is recognised and not read yet."""
    raise UnsupportedTrace(f"{content.file} is {title}, which is not read yet", hint=hint)
