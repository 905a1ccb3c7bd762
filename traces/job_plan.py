"""From the files of a job to what is to be read together: formats recognised, companions and copies assigned."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from projector.errors import ShardwiseError, TraceError, UnknownTraceFormat, UnsupportedTrace
from traces.content import Limits, open_content
from traces.job_ranks import rank_in_name
from traces.naming import Evidence
from traces.reader import Reader, find_reader
from traces.rules.kernel_rules import BUILT_IN, KernelRules
from traces.sources import Source, Sources
from traces.stored.document import is_summary
from traces.task import RankTask, Unread
from traces.xplane.prefer import stem

_FEW_COMPANIONS: Final = 4
_SHOWN: Final = 4
_LONGEST_ENDING: Final = 12


@dataclass(frozen=True, slots=True)
class JobPlan:
    """What to read. `summary`: the file is no trace but a summary that was written before."""

    tasks: tuple[RankTask, ...] = ()
    companions: tuple[Source, ...] = ()
    unread: tuple[Unread, ...] = ()
    warnings: tuple[str, ...] = ()
    summary: Source | None = None


def plan_job(
    sources: Sources, limits: Limits, evidence: Evidence = "provenance", rules: KernelRules = BUILT_IN
) -> JobPlan:
    """Look at the beginning of every file and say what is to be read together.

    Raises the error of a file that was named and is of no known format; `UnsupportedTrace` for a stored summary beside
    other files, and where only companions are given.
    """
    files = sources.files
    if len(files) > 1:
        return _sorted_out(sources, limits, evidence, rules)
    try:
        if _is_summary(files[0], limits):
            return JobPlan(summary=files[0], warnings=sources.warnings)
    except ShardwiseError as fault:
        return JobPlan(unread=(Unread(files[0], fault),), warnings=sources.warnings)
    return JobPlan(tasks=(RankTask(files, (), limits, evidence, rules),), warnings=sources.warnings)


def no_summary(plan: JobPlan) -> None:
    """Raise `UnsupportedTrace` where the only file is a stored summary: it has no events to read."""
    if plan.summary is not None:
        raise UnsupportedTrace(
            f"{plan.summary.name} is a stored summary, and holds no events", hint="give the trace it was made of"
        )


def told_of(unread: Sequence[Unread], *, read: int) -> tuple[str, ...]:
    """Warnings of the files that were left out; where nothing could be read, or a named file could not, its error.

    Files of no known format that lie beside traces are told by their endings alone.
    """
    each_once = {one.source.number: one for one in unread}.values()
    in_order = sorted(each_once, key=lambda one: (not one.source.named, one.source.name))
    strange = [one.source for one in in_order if isinstance(one.error, UnknownTraceFormat)]
    broken = [one for one in in_order if not isinstance(one.error, UnknownTraceFormat)]
    if in_order and (in_order[0].source.named or not read):
        raise _error(strange, broken, in_order)
    told = [f"{one.error}; it was left out" for one in broken]
    return (*told, *_strange(strange))


def unmatched(companions: Sequence[Source], accounted_for: Sequence[str]) -> tuple[str, ...]:
    """Warnings of execution traces that no trace was joined with, and that were not found to be broken either."""
    used = frozenset(accounted_for)
    alone = sorted(one.name for one in companions if one.name not in used)
    if not alone:
        return ()
    return (f"{len(alone):,} execution traces match no trace of the job and were not used: {_some(alone)}",)


def _sorted_out(sources: Sources, limits: Limits, evidence: Evidence, rules: KernelRules) -> JobPlan:
    readers: dict[int, Reader] = {}
    unread: list[Unread] = []
    for source in sources.files:
        try:
            if _is_summary(source, limits):
                raise UnsupportedTrace(
                    f"{source.name} is a stored summary, which is read alone", hint="give it without other files"
                )
            readers[source.number] = find_reader(open_content(source.path, limits, source.name))
        except ShardwiseError as fault:
            if source.named:
                raise
            unread.append(Unread(source, fault))
    known = [source for source in sources.files if source.number in readers]
    companions = [source for source in known if readers[source.number].role == "companion"]
    traces = [source for source in known if readers[source.number].role == "trace"]
    if companions and not traces:
        # its reader says why it cannot stand alone
        open_alone = open_content(companions[0].path, limits, companions[0].name)
        readers[companions[0].number].read(open_alone, limits)
    candidates = _candidates(companions)
    tasks = tuple(
        RankTask(files, candidates(files[0]), limits, evidence, rules) for files in _together(traces, readers)
    )
    formats = Counter(readers[source.number].name for source in traces)
    return JobPlan(tasks, tuple(companions), tuple(unread), (*sources.warnings, *_mixed(formats)))


def _is_summary(source: Source, limits: Limits) -> bool:
    return is_summary(open_content(source.path, limits, source.name))


def _together(traces: Sequence[Source], readers: dict[int, Reader]) -> list[tuple[Source, ...]]:
    """Files by task: a JAX profile and the viewer's copy of it go together, every other file alone."""
    profiles = {stem(one.name): one for one in traces if readers[one.number].name == "xplane"}
    copies = {
        stem(one.name): one for one in traces if readers[one.number].name == "jax_chrome" and stem(one.name) in profiles
    }
    taken = {one.number for one in copies.values()}
    tasks: list[tuple[Source, ...]] = []
    for one in traces:
        copy = copies.get(stem(one.name)) if profiles.get(stem(one.name)) is one else None
        if one.number not in taken:
            tasks.append((one, copy) if copy is not None else (one,))
    return tasks


def _candidates(companions: Sequence[Source]) -> Callable[[Source], tuple[Source, ...]]:
    """Execution traces that may be of the process of a trace, by what their names say; all where there are few."""
    if len(companions) <= _FEW_COMPANIONS:
        return lambda _trace: tuple(companions)
    by_rank: dict[int | None, list[Source]] = {}
    for one in companions:
        by_rank.setdefault(rank_in_name(one.name), []).append(one)
    by_rank.pop(None, None)
    return lambda trace: tuple(by_rank.get(rank_in_name(trace.name), ()))


def _mixed(formats: Counter[str]) -> tuple[str, ...]:
    """A warning where profiles of several kinds are put together; a JAX profile and its copies are of one kind."""
    kinds = formats.keys() - {"jax_chrome"} if "xplane" in formats else formats.keys()
    if len(kinds) < 2:
        return ()
    listed = ", ".join(f"{formats[kind]:,} x {kind}" for kind in sorted(kinds))
    return (f"the files are of several formats ({listed}); what they measure is not quite alike, and was put together",)


def _error(strange: Sequence[Source], broken: Sequence[Unread], in_order: Sequence[Unread]) -> ShardwiseError:
    """The error of a named file; else of the first that is a trace at all; else that there is none."""
    if in_order[0].source.named or len(in_order) == 1:
        return in_order[0].error
    if not broken:
        return UnknownTraceFormat(f"none of the files is a trace: {_by_ending(strange)}", hint=in_order[0].error.hint)
    first = broken[0].error
    if len(broken) == 1:
        return first
    kind = type(first) if isinstance(first, TraceError) else TraceError
    return kind(f"none of {len(broken):,} traces can be read; the first: {first}", hint=first.hint)


def _strange(files: Sequence[Source]) -> tuple[str, ...]:
    if not files:
        return ()
    return (f"{len(files):,} files are no traces and were not read: {_by_ending(files)}",)


def _by_ending(files: Sequence[Source]) -> str:
    endings = Counter(PurePath(file.name).suffix[:_LONGEST_ENDING].lower() or "no ending" for file in files)
    return ", ".join(f"{count:,} x {ascii(ending)[1:-1]}" for ending, count in sorted(endings.items()))


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
