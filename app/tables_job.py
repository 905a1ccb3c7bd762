"""What the ranks of a job show, for people: a line and a bar a rank, and what only several ranks can tell."""

from collections.abc import Sequence

from rich.console import Console

from app import wording
from app.tables_parts import LEFT, RIGHT, paragraph, section, table
from app.wording import ns_as_ms, number, percent, plain, words
from projector.units import ns_to_s
from traces.job_types import JobRanks, LinkRate, RankLateness
from traces.measure_types import ClassWork, CopyTime, IdleSplit, ServingPhase
from traces.summary_types import RankSummary, TimeShares

RANKS_SHOWN = 32
BAR_CHARACTERS = 50
_PARTS = (("compute_ns", "#", "compute"), ("exposed_communication_ns", "=", "exposed communication"))
_REST = (("exposed_copy_ns", "~", "exposed copies"), ("idle_ns", ".", "idle"))
_FILE_CHARACTERS = 36
_NUMBERS_SHOWN = 12


def show_ranks(out: Console, ranks: Sequence[RankSummary], job: JobRanks) -> None:
    """A table and a chart with one line a rank; of many ranks the first, and what the others are."""
    if not ranks:
        return
    shown = ranks[:RANKS_SHOWN]
    section(out, f"Ranks ({len(ranks)})")
    rows = [
        (
            wording.UNKNOWN if rank.rank is None else str(rank.rank),
            wording.UNKNOWN if rank.device is None else str(rank.device),
            ns_as_ms(rank.window_ns),
            *(_share(getattr(rank, field), rank) for field, _, _ in (*_PARTS, *_REST)),
            f"{len(rank.steps)}",
            _short(rank.file),
        )
        for rank in shown
    ]
    headers = ("rank", "device", "window [ms]", "compute", "exp. comm.", "exp. copies", "idle", "steps", "file")
    out.print(table(headers, rows, (RIGHT, RIGHT, RIGHT, RIGHT, RIGHT, RIGHT, RIGHT, RIGHT, LEFT)))
    if len(ranks) > len(shown):
        paragraph(out, f"{len(ranks) - len(shown)} more ranks are in the document (--json)")
    section(
        out, "Where each rank's window went: " + ", ".join(f"{sign} {title}" for _, sign, title in (*_PARTS, *_REST))
    )
    for rank in shown:
        name = wording.UNKNOWN if rank.rank is None else f"rank {rank.rank}"
        out.print(f"  {name:>9} |{bar(rank)}|")
    for told in _job_lines(job):
        paragraph(out, told)


def bar(shares: TimeShares) -> str:
    """The window as a line of BAR_CHARACTERS signs, the rounding spread so that they always add up."""
    if not shares.window_ns:
        return " " * BAR_CHARACTERS
    drawn, covered_ns = "", 0
    for field, sign, _ in (*_PARTS, *_REST):
        covered_ns += getattr(shares, field)
        drawn += sign * (round(BAR_CHARACTERS * covered_ns / shares.window_ns) - len(drawn))
    return drawn


def show_idle(out: Console, idle: IdleSplit | None, idle_ns: int) -> None:
    """Why the device was idle."""
    if idle is None or not idle_ns:
        return
    section(out, "Idle time by what ended it")
    lines = (
        ("the host had not issued the next event", idle.host_bound_ns),
        ("launch latency, short gaps between queued events", idle.launch_gap_ns),
        ("the next event was queued and waited for another", idle.dependency_ns),
        ("the trace does not show when it was issued", idle.unknown_ns),
    )
    rows = [(title, ns_as_ms(time_ns), percent(time_ns / idle_ns)) for title, time_ns in lines]
    out.print(table(("reason", "time [ms]", "of idle"), rows, (LEFT, RIGHT, RIGHT)))


def show_work(out: Console, work: Sequence[ClassWork]) -> None:
    """How near the roofline the kernels came whose work is known."""
    known = [one for one in work if one.known_ns]
    if not known:
        return
    section(out, "Achieved rates, of the kernels whose work is known")
    rows = [
        (
            words(one.kind),
            percent(one.known_ns / one.total_ns if one.total_ns else None),
            number(None if one.flop_per_s is None else one.flop_per_s / 1e12),
            number(None if one.bytes_per_s is None else one.bytes_per_s / 1e12),
            number(one.intensity_flop_per_byte),
            percent(one.peak_flop_frac),
            percent(one.peak_bytes_frac),
            "implausible" if one.implausible else one.bound,
        )
        for one in known
    ]
    headers = ("kind", "known", "TFLOP/s", "TB/s", "FLOP/byte", "of peak FLOP/s", "of peak HBM", "bound")
    out.print(table(headers, rows, (LEFT, *(RIGHT,) * 6, LEFT)))
    for one in known:
        if one.implausible:
            paragraph(out, f"{words(one.kind)}: {one.implausible}")


def show_copies(out: Console, copies: Sequence[CopyTime]) -> None:
    """Copies by direction."""
    if not copies:
        return
    section(out, "Copies")
    rows = [
        (
            words(one.direction),
            f"{one.count:,}",
            ns_as_ms(one.total_ns),
            ns_as_ms(one.exposed_ns),
            wording.gb(one.copied_bytes),
            number(None if one.copied_bytes is None or not one.total_ns else _gb_per_s(one.copied_bytes, one.total_ns)),
        )
        for one in copies
    ]
    headers = ("direction", "count", "sum [ms]", "exposed [ms]", "GB", "GB/s")
    out.print(table(headers, rows, (LEFT, *(RIGHT,) * 5)))


def show_serving(out: Console, phases: Sequence[ServingPhase]) -> None:
    """Serving steps by phase."""
    if not phases:
        return
    section(out, "Serving steps")
    rows = [
        (
            words(one.phase),
            f"{one.steps:,}",
            ns_as_ms(one.median_ns),
            ns_as_ms(one.total_ns),
            _requests(one),
            number(one.prefill_tokens),
            number(one.decode_tokens),
        )
        for one in phases
    ]
    headers = ("phase", "steps", "median [ms]", "sum [ms]", "requests", "prompt tokens", "generated tokens")
    out.print(table(headers, rows, (LEFT, *(RIGHT,) * 6)))


def show_links(out: Console, links: Sequence[LinkRate], lateness: Sequence[RankLateness], job: JobRanks) -> None:
    """Bus bandwidth by process group, and who of the ranks in the files keeps the others waiting."""
    if links:
        section(out, "Links: bus bandwidth of large messages")
        rows = [
            (
                plain(one.group),
                one.axis,
                str(one.group_size),
                words(one.tier),
                number(one.bus_bytes_per_s / 1e9),
                number(None if one.peak_bytes_per_s is None else one.peak_bytes_per_s / 1e9),
                percent(one.peak_frac),
                _finding(one),
            )
            for one in sorted(links, key=lambda one: not one.degraded)[:RANKS_SHOWN]
        ]
        headers = ("group", "axis", "ranks", "tier", "GB/s", "peak GB/s", "of peak", "finding")
        out.print(table(headers, rows, (LEFT, LEFT, RIGHT, LEFT, RIGHT, RIGHT, RIGHT, LEFT)))
    late = [one for one in lateness if one.straggler]
    if lateness:
        section(out, "Stragglers")
        for one in late[:RANKS_SHOWN]:
            paragraph(out, f"rank {one.rank}: {one.why}")
        if not late:
            whose = "no rank" if not job.missing_count else "none of the ranks in these files"
            paragraph(out, f"{whose} keeps the others waiting more often than chance")


def _finding(link: LinkRate) -> str:
    if link.degraded:
        return "degraded: " + plain(link.why)
    return plain(link.why) or ("" if link.waiting_removed else "at least: time includes waiting for other ranks")


def _job_lines(job: JobRanks) -> list[str]:
    told = []
    if job.missing_count:
        more = ", ..." if job.missing_count > len(job.missing[:_NUMBERS_SHOWN]) else ""
        listed = ", ".join(map(str, job.missing[:_NUMBERS_SHOWN]))
        told.append(f"{job.missing_count} of {job.expected} ranks are not in these files: {listed}{more}")
    if job.duplicated:
        told.append(f"more than one file claims rank {', '.join(map(str, job.duplicated[:_NUMBERS_SHOWN]))}")
    if job.unnumbered:
        told.append(f"{job.unnumbered} files or devices do not state their rank")
    return told


def _share(time_ns: int, shares: TimeShares) -> str:
    return percent(time_ns / shares.window_ns) if shares.window_ns else wording.UNKNOWN


def _requests(one: ServingPhase) -> str:
    if one.requests_min is None or one.requests_max is None:
        return wording.UNKNOWN
    low, high = one.requests_min, one.requests_max
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _gb_per_s(size_bytes: int, time_ns: int) -> float:
    return size_bytes / ns_to_s(time_ns) / 1e9


def _short(name: str) -> str:
    text = plain(name)
    return text if len(text) <= _FILE_CHARACTERS else "..." + text[3 - _FILE_CHARACTERS :]
