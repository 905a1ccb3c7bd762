"""The window by sort of operator: what takes how much of it, what holds that up, and how much of it all sorts cover.

A flat list of the costliest operators can cover a few per cent of a step; sorts cover all that was identified.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from agents.diagnosis_parts import Category, CollectiveShare, Limiter
from agents.planning.idle_causes import IdleCauses
from agents.planning.kernel_limits import kind_limits
from agents.planning.op_level import OpGroup, OpLevel
from agents.planning.signals import Signals
from agents.planning.verdict import Verdict
from agents.wording import percent, quoted
from traces.summary_types import TraceSummary

LEAST_SHARE: Final = 0.0005  # would read 0.0 %
UNIDENTIFIED: Final = frozenset({"other", "unidentified operators"})


def categories_of(
    summary: TraceSummary | None, signals: Signals, verdict: Verdict, collectives: tuple[CollectiveShare, ...]
) -> tuple[Category, ...]:
    """Sorts of operators, the largest share first; their shares sum to the window where kernels do not overlap.

    summary None: a projected step, of which nothing is counted.
    """
    if not signals.device:
        return ()
    if verdict.by_rows and signals.ops is not None:
        found = [*_of_rows(signals.ops), *_idle(signals)]
    else:
        counts = _counts(summary)
        found = [
            *_kernels(signals, verdict, counts),
            *_collectives(collectives),
            *_copies(summary, signals),
            *_idle(signals),
        ]
    told = (one for one in found if one.share_frac >= LEAST_SHARE)
    return tuple(sorted(told, key=lambda one: (-one.share_frac, one.name)))


def covered(categories: tuple[Category, ...]) -> float:
    """Part of the window in sorts that name what runs or whose limit is known, idle time among them."""
    told = [one for one in categories if one.name not in UNIDENTIFIED or one.limiter != "unknown"]
    return min(1.0, sum(one.share_frac for one in told))


def _of_rows(ops: OpLevel) -> Iterator[Category]:
    for group in ops.categories:
        yield _category(quoted(group.name), group.share, group.count, group.limiters, _row_basis(group))
    basis = "counted by the headline, in no row of the table"
    yield _category("unlisted communication", ops.unlisted, None, {"link": ops.unlisted}, basis)
    rest = ops.limits.get("unattributed")
    share, count = (rest.share, rest.count) if rest is not None else (0.0, None)
    basis = "the profile does not identify these operators, or its table does not list them"
    yield _category("unidentified operators", share + ops.missing, count, {}, basis)


def _row_basis(group: OpGroup) -> str:
    at = "" if group.efficiency is None else f", at {percent(group.efficiency)} of the roofline"
    return f"operator table: mostly labelled {group.bound}{at}"


def _kernels(signals: Signals, verdict: Verdict, counts: Mapping[str, int]) -> Iterator[Category]:
    for kind, share in signals.kinds.items():
        limits = kind_limits(signals, kind, verdict.matrix, verdict.experts)
        found: dict[Limiter, float] = {"arithmetic": share * limits.arithmetic, "hbm": share * limits.memory}
        yield _category(kind, share, counts.get(kind), found, limits.basis)


def _counts(summary: TraceSummary | None) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for entry in summary.kernel_classes if summary is not None else ():
        counts[entry.kind] += entry.count
    return counts


def _collectives(collectives: tuple[CollectiveShare, ...]) -> Iterator[Category]:
    for one in collectives:
        limiter: Limiter = one.limiter
        axis = "" if one.axis == "unknown" else f" ({one.axis})"
        yield Category(
            name=f"{one.collective}{axis}",
            share_frac=one.exposed_frac,
            count=one.count or None,
            limiter=limiter,
            limited_frac=0.0 if limiter == "unknown" else 1.0,
            basis=one.basis,
        )


def _copies(summary: TraceSummary | None, signals: Signals) -> Iterator[Category]:
    """Exposed copies, split by direction in proportion to each one's own exposed time."""
    share = signals.shares.exposed_copy
    copies = [one for one in summary.copies if one.exposed_ns > 0] if summary is not None else []
    whole = sum(one.exposed_ns for one in copies)
    if not whole:
        yield _category("copies", share, None, {}, "nothing tells their direction")
    for one in copies:
        on_device = one.direction in ("device_to_device", "memset")
        found: dict[Limiter, float] = {"hbm": 1.0} if on_device else {}
        basis = "stays inside device memory" if on_device else "crosses a link to the host or a peer, rate not judged"
        words = "memset" if one.direction == "memset" else f"copies {one.direction.replace('_', ' ')}"
        part = share * (one.exposed_ns / whole)
        yield _category(words, part, one.count, {name: part * frac for name, frac in found.items()}, basis)


def _idle(signals: Signals) -> Iterator[Category]:
    idle = signals.shares.idle
    causes = signals.idle
    if signals.bubble:
        part = min(signals.bubble, idle)
        yield _waiting("idle: pipeline bubble", part, "between a stage's first and last work of a step")
        idle -= part
        causes = None
    if causes is None:
        yield _waiting("idle", idle, "no event of any kind runs")
        return
    for words, frac, basis in _idle_terms(causes):
        yield _waiting(f"idle: {words}", idle * frac, basis)


def _idle_terms(causes: IdleCauses) -> tuple[tuple[str, float, str], ...]:
    return (
        ("host late", causes.host_bound, "the host had not issued the next work"),
        ("launch gaps", causes.launch_gap, "between a launch and its start, or between queued kernels"),
        ("queued work waits", causes.dependency, "for another stream, copy or device"),
        ("cause not shown", causes.unknown, "the trace does not show when the next work was issued"),
    )


def _waiting(name: str, share: float, basis: str) -> Category:
    return Category(name=name, share_frac=max(0.0, share), count=None, limiter="waiting", limited_frac=1.0, basis=basis)


def _category(name: str, share: float, count: int | None, limiters: Mapping[Limiter, float], basis: str) -> Category:
    """The limiter is the one of most of the sort's time, unknown where none is known for the larger part."""
    known = {limiter: part for limiter, part in limiters.items() if limiter != "unknown"}
    leading = max(known, key=lambda limiter: known[limiter], default=None)
    unknown = share - sum(known.values())
    if leading is None or share <= 0 or known[leading] < unknown:
        return Category(
            name=name, share_frac=max(0.0, share), count=count, limiter="unknown", limited_frac=0.0, basis=basis
        )
    frac = min(1.0, known[leading] / share)
    return Category(name=name, share_frac=share, count=count, limiter=leading, limited_frac=frac, basis=basis)
