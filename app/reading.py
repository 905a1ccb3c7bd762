"""Traces of one job to their summary, as the settings say: limits, processes, Ray; with a progress bar for people."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agents.planning.placing import beside_chip
from app.settings import Settings
from app.wording import plain
from traces.content import Limits
from traces.rules import BUILT_IN, KernelRules, read_rules, rules_with
from traces.summary import read_summary
from traces.summary_types import TraceSummary

OnProgress = Callable[[int, int, int, str], None]
_NAME_CHARACTERS = 50


def limits_of(settings: Settings) -> Limits:
    """What the trace readers refuse."""
    return Limits(
        max_compressed_bytes=settings.max_upload_bytes,
        max_decompressed_bytes=settings.max_decompressed_bytes,
        max_events=settings.max_events,
    )


def rules_of(settings: Settings) -> KernelRules:
    """What names of kernels say: the built-in rules, before them those of the file the settings name.

    Raises `InvalidDescription` naming file, entry and reason where a rule is not accepted.
    """
    return BUILT_IN if settings.kernel_rules is None else rules_with(read_rules(settings.kernel_rules))


def read_job(
    paths: Sequence[Path],
    settings: Settings,
    *,
    names: Sequence[str] | None = None,
    scratch: Path | None = None,
    show_progress: bool = False,
) -> TraceSummary:
    """Summary of the files, folders and archives of one job, or of one written summary, beside the peaks of its chip.

    Errors as of `read_summary`. scratch: folder that archives are unpacked in; None: the system's own.

    show_progress: draw a bar on stderr while several files are read, where stderr is a terminal.
    """
    with _bar(show_progress) as on_progress:
        summary = read_summary(
            paths,
            limits=limits_of(settings),
            names=names,
            rules=rules_of(settings),
            workers=settings.trace_workers,
            ray_address=settings.ray_address,
            on_progress=on_progress,
            scratch=scratch,
        )
    return beside_chip(summary)


@contextmanager
def _bar(wanted: bool) -> Iterator[OnProgress | None]:
    if not wanted or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(file=sys.stderr, markup=False, highlight=False, emoji=False)
    columns = (TextColumn("reading {task.fields[name]}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task("", total=None, name="")

        def on_progress(done: int, total: int, _bytes: int, name: str) -> None:
            progress.update(task, completed=done, total=total, name=plain(name)[-_NAME_CHARACTERS:])

        yield on_progress
