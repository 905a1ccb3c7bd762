"""The files of one job: those named, those in folders, those in archives. Names are for people; paths are ours."""

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from projector.errors import EmptyTrace, InvalidDescription, TraceError
from traces.archive.members import shown
from traces.archive.unpack import Unpacking, is_hidden, kind_of, unpack
from traces.content import Limits

_SHOWN: Final = 4


@dataclass(frozen=True, slots=True)
class Source:
    """One file that may be a trace.

    name     what to call it: untrusted text, unlike the name of every other source
    number   identity within the job
    named    whether a caller named the very file; one that was found in a folder or archive may turn out to be no trace
    """

    path: Path
    name: str
    number: int
    size_bytes: int
    named: bool = True


@dataclass(frozen=True, slots=True)
class Sources:
    """The files of one job, and what was repaired, left out or not followed on the way to them."""

    files: tuple[Source, ...]
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class _Search:
    """What was found so far; `links`, `special` and `hidden` count what is not read."""

    limits: Limits
    unpacking: Unpacking
    found: list[Source] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    seen: int = 0
    links: int = 0
    special: int = 0
    hidden: int = 0
    numbers: Iterator[int] = field(default_factory=count)

    def add(self, path: Path, name: str, size_bytes: int, *, named: bool) -> None:
        """One more source."""
        self.found.append(Source(path, name, next(self.numbers), size_bytes, named))


@contextmanager
def find_sources(
    paths: Sequence[Path], limits: Limits, names: Sequence[str] | None = None, scratch: Path | None = None
) -> Iterator[Sources]:
    """The files behind `paths`: files, folders (with all below them) and archives of the ranks of one job.

    names: what to call each path; the names in the paths where None. scratch: where to make the temporary folder that
    holds what is in archives until the context ends; the system's place for such where None. Links in folders are not
    followed, hidden files not read; a file with the very bytes of another is left out. All that is told.

    Raises `InvalidDescription` (no path, or one where nothing is), `EmptyTrace` (no file in them), and of archives
    `CorruptTrace` and `TraceTooLarge`.
    """
    if not paths:
        raise InvalidDescription("no trace file was given", hint="name at least one profiler trace")
    titles = [shown(name) for name in (_titles(paths) if names is None else names)]
    assert len(titles) == len(paths), "one name a path"
    with TemporaryDirectory(prefix="shardwise-", dir=scratch, ignore_cleanup_errors=True) as folder:
        search = _Search(limits, Unpacking(Path(folder), limits))
        for path, title in zip(paths, titles, strict=True):
            if path.is_dir():
                _add_folder(search, path, f"{title}/" if len(paths) > 1 else "")
            elif path.is_file():
                _add_file(search, path, title, path.stat().st_size, named=True)
            else:
                raise InvalidDescription(f"no trace file {title!r}", hint="give the path of one profiler trace")
        files, repeated = _once(_apart(search.found))
        if not files:
            raise EmptyTrace(
                f"there is no file in {', '.join(titles[:_SHOWN])}{_not_read(search)}", hint="give profiler traces"
            )
        yield Sources(files, (*search.told, *search.unpacking.told, *_left_out(search), *repeated))


def _titles(paths: Sequence[Path]) -> list[str]:
    """The last parts of the paths; of paths that share those, the parts they do not share."""
    absolute = [path.absolute() for path in paths]
    if len({path.name for path in absolute}) == len(absolute):
        return [path.name for path in absolute]
    common = os.path.commonpath([path.parent for path in absolute])
    return [path.relative_to(common).as_posix() for path in absolute]


def _add_folder(search: _Search, folder: Path, prefix: str) -> None:
    """Every regular file below a folder, in order of name."""

    def unreadable(fault: OSError) -> None:
        search.told.append(f"a folder could not be listed: {fault.strerror}")

    for parent, folders, files in os.walk(folder, onerror=unreadable, followlinks=False):
        folders.sort()
        visible = [name for name in folders if not is_hidden(name)]
        search.links += sum(Path(parent, name).is_symlink() for name in visible)
        search.hidden += len(folders) - len(visible)
        folders[:] = [name for name in visible if not Path(parent, name).is_symlink()]
        for name in sorted(files):
            path = Path(parent, name)
            search.seen += 1
            search.limits.check("max_files", search.seen, "number of files in the folders")
            if is_hidden(name):
                search.hidden += 1
            elif path.is_symlink():
                search.links += 1
            elif not path.is_file():
                search.special += 1
            else:
                title = shown(prefix + path.relative_to(folder).as_posix())
                _add_file(search, path, title, path.stat().st_size, named=False)


def _add_file(search: _Search, path: Path, name: str, size_bytes: int, *, named: bool) -> None:
    """A file, or the files in it where it is an archive."""
    try:
        kind = kind_of(path, search.limits)
        if kind is None:
            search.add(path, name, size_bytes, named=named)
            return
        search.limits.check("max_unpacked_bytes", size_bytes, f"size of {name} in bytes")
        members = list(unpack(path, kind, name, search.unpacking))
    except (TraceError, OSError) as fault:
        error = fault if isinstance(fault, TraceError) else TraceError(f"{name} cannot be read: {fault.strerror}")
        if named:
            raise error from fault
        search.told.append(f"{error}; it was left out")
        return
    for member in members:
        search.add(member.path, member.name, member.size_bytes, named=False)
    if named and not members:
        raise EmptyTrace(f"{name} is an archive without a file that can be read", hint="pack profiler traces into it")


def _apart(found: Sequence[Source]) -> list[Source]:
    """Sources whose names are all different: a number is put behind one that was there before."""
    taken: Counter[str] = Counter()
    apart = []
    for source in found:
        taken[source.name] += 1
        times = taken[source.name]
        apart.append(source if times == 1 else replace(source, name=f"{source.name} ({times})"))
    return apart


def _once(found: Sequence[Source]) -> tuple[tuple[Source, ...], list[str]]:
    """Sources with different bytes; of equal ones the first by name stays."""
    sizes = Counter(source.size_bytes for source in found)
    first: dict[bytes, Source] = {}
    told: dict[int, str] = {}
    for source in sorted(found, key=lambda source: (not source.named, source.name)):
        if sizes[source.size_bytes] > 1 and source.size_bytes:
            known = first.setdefault(_digest(source.path), source)
            if known is not source:
                told[source.number] = f"{source.name} has the same content as {known.name}: counted once"
    return tuple(source for source in found if source.number not in told), [told[number] for number in sorted(told)]


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _left_out(search: _Search) -> list[str]:
    counts = (
        (search.hidden + search.unpacking.hidden, "hidden files and folders were not read"),
        (search.links, "symbolic links were not followed"),
        (search.special, "files that are no regular ones were not read"),
    )
    return [f"{number:,} {what}" for number, what in counts if number]


def _not_read(search: _Search) -> str:
    left_out = _left_out(search)
    return f" ({'; '.join(left_out)})" if left_out else ""
