"""Stragglers: ranks the others wait for because of what these ranks do themselves.

Who comes last to a collective need not be the cause: ranks that waited for a straggler in one group come late to the
next, and a slow link delays everybody behind it. So ranks are judged by their own time, all that is not exposed
communication: kernels, copies, idle. The collectives of a group cut the window into spans; with own(r, b) the own time
of rank r in span b, and bar(r, b) the third quartile of the same over the other ranks of the group,

  d(r, b) = own(r, b) - bar(r, b)        excess(r) = sum over b of d(r, b)

and r is a straggler where in one of its groups
  it matters      excess >= 5 % of the time from the first collective to the last
  it is often     (sum of d)^2 >= 2.5 sum of d^2: the excess is spread over three occasions or more, not one hiccup
  it is no noise  excess >= z times the standard deviation such a sum has by chance: from the median deviation among the
                  ranks (z = 5), or from how d(r, b) varies in time beside its proportion of bar(r, b) (z = 5, and for
                  few spans the value a Student's t of as many exceeds once in a thousand), whichever it passes
  others wait     the rank comes later than the third quartile of the others by at least half the excess, summed

The two in the middle are judged over spans from one collective to the next, and over fewer, longer ones: ranks that
reduce gradients beside their compute run ahead of the straggler and fall back to it within a step. The quartile keeps
two or three stragglers of a group from hiding one another, and keeps half of the ranks from being called stragglers
because the other half has less to do. Pipeline stages have different work by design: ranks are compared with those of
the same stage only.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from projector.units import ns_to_ms
from traces.cross_rank.clocks import Aligned
from traces.cross_rank.matching import Logs
from traces.trace import Ints, Mask

MATTERS_FRAC: Final = 0.05
OFTEN_OCCASIONS: Final = 2.5
NOISE_DEVIATIONS: Final = 5.0
OTHERS_WAIT_FRAC: Final = 0.5

_QUARTILE = 0.75
_NORMAL_DEVIATION = 1.4826  # standard deviation of a normal distribution over its median deviation
_MOSTLY = 0.6
_LEAST_FIGURES = 24
_SPANS: Final = {3: 22.3, 4: 10.2, 6: 5.9, 8: NOISE_DEVIATIONS, 16: NOISE_DEVIATIONS, 64: NOISE_DEVIATIONS}
"""Numbers of spans a window is cut into, and the deviations asked for: Student's t of one less at 0.001, or 5."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Straggler:
    """What one straggler costs. frac: its excess over the time considered."""

    rank: int
    frac: float
    why: str


def stragglers(aligned: Iterable[Aligned], logs: Logs) -> dict[int, Straggler]:
    """The stragglers among the ranks of the given matches, each by the group in which it costs most."""
    matches = [one for one in aligned if one.match.party.pair is None]
    stage = _stages(logs)
    found: dict[int, Straggler] = {}
    for one in matches:
        for places in _same_stage(one.match.ranks, stage):
            for straggler in _in_group(one, places, logs):
                known = found.get(straggler.rank)
                if known is None or straggler.frac > known.frac:
                    found[straggler.rank] = straggler
    return found


def _stages(logs: Logs) -> dict[int, int]:
    """Pipeline stage of each rank: its place in the pipeline group that lists it."""
    return {
        rank: stage
        for log in logs.values()
        for group, axis in zip(log.groups, log.axes, strict=True)
        if axis == "pp"
        for stage, rank in enumerate(sorted(group.ranks))
    }


def _same_stage(ranks: Sequence[int], stage: Mapping[int, int]) -> list[list[int]]:
    """Places of the ranks of each stage, where there are at least two."""
    places: dict[int, list[int]] = {}
    for place, rank in enumerate(ranks):
        places.setdefault(stage.get(rank, 0), []).append(place)
    return [members for members in places.values() if len(members) > 1]


def _in_group(one: Aligned, places: Sequence[int], logs: Logs) -> list[Straggler]:
    """Stragglers among some ranks of one match."""
    order = np.argsort(one.end_ns, kind="stable")
    elapsed_ns = int(one.end_ns[order[-1]] - one.end_ns[order[0]])
    if len(order) <= min(_SPANS) or elapsed_ns <= 0:
        return []
    own = _between(one, "own_before_ns", places, order, logs)
    total = (own - _quartile_of_others(own)).sum(axis=1)
    starts = (one.starts_ns - one.end_ns)[list(places)][:, order[1:]].astype(np.float64)
    late = np.maximum(starts - _quartile_of_others(starts), 0).sum(axis=1)
    found = (total >= max(MATTERS_FRAC * elapsed_ns, 1)) & (late >= OTHERS_WAIT_FRAC * total) & _steady(own)
    if not found.any():
        return []
    compute = _between(one, "compute_before_ns", places, order, logs)
    return [
        Straggler(
            rank=one.match.ranks[places[index]],
            frac=float(total[index] / elapsed_ns),
            why=_why(one, index, own, compute, float(total[index]), elapsed_ns),
        )
        for index in np.flatnonzero(found).tolist()
    ]


def _between(one: Aligned, column: str, places: Sequence[int], order: Ints, logs: Logs) -> Floats:
    """What a cumulative column grows by from one collective to the next, shape [places, collectives - 1]."""
    growth: Floats = np.diff(one.match.column(logs, column)[list(places)][:, order], axis=1).astype(np.float64)
    return growth


def _steady(own: Floats) -> Mask:
    """For each rank whether its excess comes often and is no noise, over spans of some length."""
    found = np.zeros(len(own), dtype=np.bool_)
    count = own.shape[1]
    for spans in (*(few for few in _SPANS if few < count), count):
        deviations = _SPANS[max(few for few in _SPANS if few <= spans)]
        of_span = np.add.reduceat(own, np.linspace(0, count, spans, endpoint=False).astype(np.int64), axis=1)
        bar = _quartile_of_others(of_span)
        excess = of_span - bar
        total = excess.sum(axis=1)
        often = total**2 >= OFTEN_OCCASIONS * (excess**2).sum(axis=1)
        among_ranks = NOISE_DEVIATIONS * _scatter_among_ranks(of_span)
        found |= often & (total > 0) & (total >= np.minimum(among_ranks, deviations * _scatter_in_time(excess, bar)))
    return found


def _quartile_of_others(values: Floats) -> Floats:
    """For each entry the third quartile of the others of its column, the upper entry where it falls between two."""
    count = len(values)
    order = np.argsort(values, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.arange(count)[:, None], axis=0)
    above = math.ceil(_QUARTILE * (count - 2))
    quartile: Floats = np.where(above < place, ordered[above], ordered[above + 1])
    return quartile


def _scatter_among_ranks(own: Floats) -> float:
    """Standard deviation of a sum of own times over even ranks, from the median deviation among the ranks.

    Infinite where there are too few figures to estimate it from.
    """
    if (len(own) - 1) * own.shape[1] < _LEAST_FIGURES:
        return math.inf
    deviation = np.median(np.abs(own - np.median(own, axis=0)), axis=0) * _NORMAL_DEVIATION
    return float(np.sqrt((deviation**2).sum()))


def _scatter_in_time(excess: Floats, bar: Floats) -> Floats:
    """The same for each rank from its own course: deviations from being slower by one factor throughout."""
    total = np.maximum(bar.sum(axis=1, keepdims=True), 1.0)
    rest = excess - excess.sum(axis=1, keepdims=True) * bar / total
    freedom = excess.shape[1] - 1
    scatter: Floats = np.sqrt((rest**2).sum(axis=1) * excess.shape[1] / freedom)
    return scatter


def _why(one: Aligned, index: int, own: Floats, compute: Floats, excess_ns: float, elapsed_ns: int) -> str:
    """Both figures, and whether kernels or the time between them make the difference."""
    others = np.delete(np.arange(len(own)), index)
    more_own = float((own[index] - np.median(own[others], axis=0)).sum())
    more_compute = float((compute[index] - np.median(compute[others], axis=0)).sum())
    share = more_compute / more_own if more_own > 0 else 0.0
    if share >= _MOSTLY:
        cause = "its kernels take longer (more work, or a slower chip)"
    elif share <= 1 - _MOSTLY:
        cause = "its device idles or copies longer between kernels (a late host or input)"
    else:
        cause = "its kernels take longer and its device idles longer"
    excess_ms, elapsed_ms = ns_to_ms(excess_ns), ns_to_ms(elapsed_ns)
    return (
        f"between the {one.match.party.subject} it needs {excess_ms:,.3g} ms more of its own than "
        f"three quarters of the others, {excess_ms / elapsed_ms:.0%} of {elapsed_ms:,.3g} ms; against their median "
        f"{ns_to_ms(more_compute):,.3g} ms of compute and {ns_to_ms(more_own - more_compute):,.3g} ms of idle time and "
        f"copies: {cause}"
    )
