"""A trace format: how it is recognised by content, and how it is read. One format is one module in `traces.readers`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import NoReturn

from projector.errors import UnsupportedTrace
from traces import readers
from traces.content import Content, Limits
from traces.trace import Trace


@dataclass(frozen=True, slots=True)
class Reader:
    """One format. `claims` looks at content only; exactly one reader claims a known file."""

    name: str
    title: str
    claims: Callable[[Content], bool]
    read: Callable[[Content, Limits], tuple[Trace, ...]]


@cache
def all_readers() -> tuple[Reader, ...]:
    """Every `READER` found in the folder `traces/readers`, by name."""
    modules = (import_module(f"{readers.__name__}.{info.name}") for info in iter_modules(readers.__path__))
    return tuple(sorted((module.READER for module in modules), key=lambda reader: reader.name))


def unsupported(content: Content, title: str, hint: str) -> NoReturn:
    """Refuse a format that is recognised and not read yet."""
    raise UnsupportedTrace(f"{content.file} is {title}, which is not read yet", hint=hint)
