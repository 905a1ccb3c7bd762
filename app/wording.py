"""Numbers, plans and untrusted text as people read them: shared by the report page and the command line."""

import math
from collections.abc import Sequence
from itertools import groupby

from agents.causes import CAUSE_PHRASE
from agents.findings import Change, Proposal
from agents.planning.titles import DEGREES
from agents.proposal_parts import RESOURCE_WORDS
from agents.remedies.remedy import Remedy
from projector.breakdown import Projection
from projector.specs.bottleneck import Bottleneck, Cause
from projector.specs.plan import ParallelismPlan
from projector.units import bytes_to_gb, ns_to_ms, s_to_ms

UNKNOWN = "unknown"
WAITING: frozenset[Cause] = frozenset({"launch_bound", "host_idle", "pipeline_bubble", "imbalance"})
ALWAYS_SHOWN = ("dp", "tp", "pp")
DIGITS = 4


def number(value: float | None) -> str:
    """Up to four significant digits, thousands apart; "unknown" for None."""
    if value is None:
        return UNKNOWN
    if value == 0:
        return "0"
    decimals = max(0, DIGITS - 1 - math.floor(math.log10(abs(value))))
    if decimals > 6:
        return f"{value:.{DIGITS - 1}g}"
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def ms(seconds: float | None) -> str:
    """Seconds as milliseconds, without the unit."""
    return number(None if seconds is None else s_to_ms(seconds))


def ns_as_ms(nanoseconds: int) -> str:
    """Nanoseconds as milliseconds, without the unit."""
    return number(ns_to_ms(nanoseconds))


def aim_text(proposal: Proposal) -> str:
    """What a proposal relieves and enlarges, in words: "relieves exposed communication, enlarges data parallelism"."""
    axis = proposal.enlarges
    grown = "enlarges no axis" if axis is None else f"enlarges {DEGREES.get(axis, axis.replace('_', ' '))}"
    return f"relieves {RESOURCE_WORDS[proposal.relieves]}, {grown}"


def gb(size_bytes: float | None) -> str:
    """Bytes as decimal gigabytes, without the unit."""
    return number(None if size_bytes is None else bytes_to_gb(size_bytes))


def percent(frac: float | None) -> str:
    """A fraction as "12.3 %"."""
    return UNKNOWN if frac is None else f"{100 * frac:.1f} %"


def change(frac: float | None) -> str:
    """A relative change with its sign: "-12.3 %"."""
    return UNKNOWN if frac is None else f"{100 * frac:+.1f} %"


def gain_text(remedy: Remedy) -> str:
    """The expected gain of throughput with its bound and what they rest on."""
    if remedy.gain_expected_frac is None:
        return "not known"
    bound = f", at most {change(remedy.gain_bound_frac)}" if remedy.gain_bound_frac is not None else ""
    return f"{change(remedy.gain_expected_frac)}{bound} of throughput ({plain(remedy.gain_basis)})"


def figure(value: float | None, unit: str) -> str:
    """A value with its unit, fractions as percent; "" for None."""
    if value is None:
        return ""
    return percent(value) if unit == "fraction" else f"{number(value)} {unit}".strip()


def headline(bottleneck: Bottleneck, cause: Cause) -> str:
    """The verdict in a line."""
    if cause == "unknown":
        return "Bottleneck unknown"
    if cause in WAITING:
        return f"The device waits: {CAUSE_PHRASE[cause]} (class {bottleneck} by convention)"
    return f"{bottleneck.capitalize()} bound: {CAUSE_PHRASE[cause]}"


def words(name: str) -> str:
    """A name of the vocabulary as words: "exposed_tp" is "exposed tp"."""
    return name.replace("_", " ")


def plain(text: str) -> str:
    """Untrusted text on one line without control characters: it can neither steer a terminal nor reorder a line."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(text.split()))


def plan_text(plan: ParallelismPlan) -> str:
    """The degrees of a plan and every field that is not at its default: "dp 8, tp 4, pp 1, recompute full"."""
    defaults = ParallelismPlan()
    parts = []
    for name in ParallelismPlan.model_fields:
        value = getattr(plan, name)
        if name != "phase" and (name in ALWAYS_SHOWN or value != getattr(defaults, name)):
            parts.append(f"{name} {_value(value)}")
    return ", ".join(parts)


def grouped_changes(changes: Sequence[Change]) -> list[tuple[tuple[Change, ...], str]]:
    """Changes that are made for the same reason, together with it."""
    return [(tuple(group), why) for why, group in groupby(changes, key=lambda change: change.why)]


def split_source(source: str) -> tuple[str, str]:
    """A source as (text, web address); the address is "" where the source does not end in one."""
    text, _, last = source.rpartition(" ")
    return (text, last) if last.startswith(("https://", "http://")) else (source, "")


def _value(value: object) -> str:
    return ("off", "on")[value] if isinstance(value, bool) else str(value)


def memory_text(projection: Projection) -> str:
    """Memory of the fullest device against its capacity, or the direction where it could not be modelled."""
    if projection.memory is None:
        direction = projection.memory_direction
        return UNKNOWN if direction == "unknown" else f"{UNKNOWN} ({direction} than now)"
    return f"{gb(projection.memory.total_bytes)} of {gb(projection.memory.capacity_bytes)}"


def verdict(projection: Projection) -> str:
    """Why a projection is refused, or how it fits."""
    if projection.rejections:
        return "; ".join(rejection.text for rejection in projection.rejections)
    return words(projection.fit) if projection.memory is not None else "memory unknown"


def figures(projection: Projection) -> Sequence[tuple[str, str]]:
    """(label with unit, value) of what the phase of a projection is judged by; only what was modelled."""
    rows = (
        ("tokens/s/chip", projection.tokens_per_s_per_chip, number),
        ("MFU", projection.mfu_frac, percent),
        ("TTFT [ms]", projection.ttft_s, ms),
        ("TPOT [ms]", projection.tpot_s, ms),
        ("request [ms]", projection.request_latency_s, ms),
        ("decode tokens/s/chip", projection.decode_tokens_per_s_per_chip, number),
        ("all tokens/s/chip", projection.total_tokens_per_s_per_chip, number),
        ("max requests", projection.max_concurrency, number),
    )
    return [(label, shown(value)) for label, value, shown in rows if value is not None]
