"""Who is there: ranks found in the content of the files, those that come twice, and those that are missing."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby, islice
from typing import Final

from traces.job_types import JobRanks
from traces.kernel_table import unpacked
from traces.rank import RankParts
from traces.summary_types import Implied

_STATED: Final = 1.0
_MISSING_SHOWN = 64
_SHOWN = 4
_LONGEST_FILE_NAME = 512
_LARGEST_RANK = 999_999

# Formats that number the devices of one host, each host from 0: equal numbers in two files are two ranks.
_NUMBERED_BY_HOST: Final = frozenset({"xplane", "jax_chrome"})
# So may this one, unless the file states the size of the world its numbers are of.
_NUMBERED_BY_GROUP: Final = "nsys"

# "rank3", "rank-3", "rank_3", "worker3"; else a bare number before the ending: "trace_3.pt.trace.json.gz"
_RANK_IN_NAME: Final = re.compile(r"(?<![a-z])(?:rank|worker)[-_.]?(\d{1,6})(?!\d)", re.IGNORECASE)
_NUMBER_AT_END: Final = re.compile(r"(?<=[-_])(\d{1,6})(?:\.pt)?(?:\.trace)?\.json(?:\.gz)?\Z", re.IGNORECASE)


def in_order(parts: Iterable[RankParts]) -> list[RankParts]:
    """By rank, device, name of the file and start, and where all are equal by all that they say; no rank comes last.

    Of profiles that say the same the file decides by all of its devices, so that one file goes before the other on each
    of them. Files that are alike throughout stay in their order, which then changes nothing.
    """
    parts = list(parts)
    files: dict[int, list[RankParts]] = {}
    for part in parts:
        files.setdefault(part.source, []).append(part)
    ordered: list[RankParts] = []
    for _, alike in groupby(sorted(parts, key=_place), key=_place):
        same = list(alike)
        if len(same) > 1:
            same.sort(key=lambda part: (_all_said(part), _all_said_by(files[part.source]), part.source))
        ordered += same
    return ordered


def _all_said(part: RankParts) -> tuple[str, str, str]:
    """What a profile says, as a sort key: figures, what they imply, and its kernels by name."""
    kernels = sorted(
        (name, kind, one.count, one.total_ns) for (name, kind), one in unpacked(part.table).by_name.items()
    )
    return (
        part.summary.model_dump_json(),
        part.implied.model_dump_json(),
        repr((part.event_count, part.event_counts, part.base_time_ns, part.warnings, kernels)),
    )


def _all_said_by(file: Sequence[RankParts]) -> list[tuple[str, str, str]]:
    return sorted(_all_said(part) for part in file)


def numbered(parts: Sequence[RankParts]) -> tuple[list[RankParts], tuple[str, ...]]:
    """Give a rank to files that state none and bear in their name one that nobody else claims, and say so.

    A weak fallback, where several files are given and the file is of one device.
    """
    devices = Counter(part.source for part in parts)
    silent = [part for part in parts if part.summary.rank is None and devices[part.source] == 1]
    guesses = {part.source: rank_in_name(part.summary.file, largest_bare=len(devices)) for part in silent}
    claims = Counter([part.summary.rank for part in parts] + list(guesses.values()))
    sure = {source: rank for source, rank in guesses.items() if rank is not None and claims[rank] == 1}
    if len(devices) < 2 or not sure:
        return list(parts), ()
    given = [
        replace(part, summary=part.summary.model_copy(update={"rank": sure[part.source]}))
        if part.source in sure
        else part
        for part in parts
    ]
    listed = _some(sorted((part.summary.rank or 0, part.summary.file) for part in given if part.source in sure))
    return given, (f"the rank of {len(sure)} files was taken from their names, as nothing inside states it: {listed}",)


def rank_in_name(file: str, largest_bare: int = _LARGEST_RANK) -> int | None:
    """The rank the last part of a file name bears; None where it bears none or several.

    largest_bare: a number without the word rank or worker may be a process or a date; larger ones are none.
    """
    name = file.rpartition("/")[2][-_LONGEST_FILE_NAME:]
    named, bare = set(_RANK_IN_NAME.findall(name)), set(_NUMBER_AT_END.findall(name))
    found = {int(digits) for digits in named} or {int(digits) for digits in bare if int(digits) <= largest_bare}
    return found.pop() if len(found) == 1 else None


def distinct_parts(parts: Sequence[RankParts]) -> tuple[list[RankParts], tuple[str, ...]]:
    """Without those that would count the same time of the same rank twice; what was left out, and what was not.

    Of profiles of one rank and device whose windows overlap the one with the most events is kept, a profile of the host
    alone giving way to one with device events; windows that do not overlap are different times and all count. Where no
    rank is stated, profiles are one and the same if every figure of theirs is.
    """
    counted: dict[object, list[RankParts]] = {}
    left_out: dict[int, str] = {}
    for place in sorted(range(len(parts)), key=lambda place: _weight(parts[place])):
        part = parts[place]
        rivals = counted.setdefault(_claim(part), [])
        rival = next((one for one in rivals if _repeats(one, part)), None)
        if rival is None:
            rivals.append(part)
        else:
            left_out[place] = _left_out(part, rival)
    kept = [part for place, part in enumerate(parts) if place not in left_out]
    return kept, (*(left_out[place] for place in sorted(left_out)), *_other_times(kept))


def job_ranks(given: Sequence[RankParts], counted: Sequence[RankParts], implied: Implied) -> JobRanks:
    """Which ranks the files hold; `given` with the profiles that come twice, `counted` without them.

    The world size counts only where a file states it.
    """
    present = sorted({part.summary.rank for part in counted if part.summary.rank is not None})
    world = implied.world_size
    expected = world.value if world is not None and world.confidence >= _STATED else None
    missing_count = expected - sum(rank < expected for rank in present) if expected is not None and present else 0
    there = frozenset(present)
    missing = (rank for rank in range(expected or 0) if rank not in there)
    return JobRanks(
        expected=expected,
        present=tuple(present),
        missing_count=missing_count,
        missing=tuple(islice(missing, min(missing_count, _MISSING_SHOWN))),
        duplicated=_claimed_twice(given),
        unnumbered=sum(part.summary.rank is None for part in counted),
    )


def gaps_told(job: JobRanks) -> tuple[str, ...]:
    """Warnings of ranks that are absent, or too many. One rank's profile alone is a usual thing to send, and no gap."""
    told: list[str] = []
    if job.missing_count and len(job.present) > 1:
        listed = ", ".join(map(str, job.missing[:_SHOWN])) + (", ..." if job.missing_count > _SHOWN else "")
        told.append(f"{job.missing_count:,} of {job.expected:,} ranks are not among the files: {listed}")
    if job.expected is not None and job.present and job.present[-1] >= job.expected:
        told.append(f"rank {job.present[-1]:,} is beyond the world size the files state, {job.expected:,}")
    return tuple(told)


def _place(part: RankParts) -> tuple[bool, int, bool, int, str, int, int]:
    rank = part.summary
    return (
        rank.rank is None,
        rank.rank or 0,
        rank.device is None,
        rank.device or 0,
        rank.file,
        rank.window.start_ns,
        rank.window.end_ns,
    )


def _weight(part: RankParts) -> tuple[bool, int, str]:
    """Sort key of what is rather kept: device events before host ones, more events before fewer."""
    return not part.summary.window.device, -part.event_count, part.summary.file


def _claim(part: RankParts) -> object:
    """What a profile says it is: its rank, or, where it does not say, nothing but its figures."""
    return part.summary.rank if _states_rank(part) else part.summary.model_copy(update={"file": ""})


def _states_rank(part: RankParts) -> bool:
    """Whether it has a rank, and one in the job."""
    if part.summary.rank is None:
        return False
    world = part.implied.world_size
    stated = world is not None and world.confidence >= _STATED
    return part.format not in _NUMBERED_BY_HOST and (part.format != _NUMBERED_BY_GROUP or stated)


def _repeats(one: RankParts, other: RankParts) -> bool:
    """Whether two profiles of one claim are of the same device at the same time."""
    same_device = one.summary.device == other.summary.device
    if not same_device and one.summary.window.device and other.summary.window.device:
        return False
    (start, end), (other_start, other_end) = _window(one), _window(other)
    return (start, end) == (other_start, other_end) or (start < other_end and other_start < end)


def _window(part: RankParts) -> tuple[int, int]:
    base = part.base_time_ns or 0
    return part.summary.window.start_ns + base, part.summary.window.end_ns + base


def _left_out(part: RankParts, counted: RankParts) -> str:
    rank, file, kept = part.summary.rank, part.summary.file, counted.summary.file
    if not _states_rank(part):
        return f"{file} says the same as {kept} to the nanosecond: counted once"
    if counted.summary.window.device and not part.summary.window.device:
        reason = "no device events"
    else:
        reason = "fewer events" if part.event_count < counted.event_count else "no more events"
    return f"rank {rank} comes twice at the same time: {kept} is counted, {file} ({reason}) is not"


def _other_times(kept: Sequence[RankParts]) -> list[str]:
    profiles = Counter((part.summary.rank, part.summary.device) for part in kept if _states_rank(part))
    return [
        f"rank {rank} has {count} profiles of different times: each is counted"
        for (rank, _), count in profiles.items()
        if count > 1
    ]


def _claimed_twice(parts: Sequence[RankParts]) -> tuple[int, ...]:
    files: dict[int, set[int]] = {}
    for part in parts:
        if part.summary.rank is not None and _states_rank(part):
            files.setdefault(part.summary.rank, set()).add(part.source)
    return tuple(sorted(rank for rank, sources in files.items() if len(sources) > 1))


def _some(ranks: Sequence[tuple[int, str]]) -> str:
    listed = ", ".join(f"{rank} of {file}" for rank, file in ranks[:_SHOWN])
    return listed + (", ..." if len(ranks) > _SHOWN else "")
