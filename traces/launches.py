"""When the host issued what ends each idle gap of a device, and whether the launches in a trace have their kernels."""

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.intervals import Intervals
from traces.linking import NONE, Links
from traces.trace import ABSENT, Category, Ints, Mask, Trace

LONGEST_LATENCY_NS: Final = 30_000
"""What an event that could run at once may take to begin: from its issue on an idle device, or from the end of the one
queued before it. Measured over the sample traces (V100, A100, H100, B200, H800): 1 to 6 us after the launching call, 1
to 5 us between queued kernels. MI210 to MI300: 3 to 25 us, where a kernel waits for a signal or a fence. Almost nothing
lies between 30 and 100 us; real waits begin there."""

_LEAST_KNOWN_SHARE = 0.5
_FEW_LAUNCHES = 50
_FEW_GRAPHS = 8
_FEW_CALLS = 500
_ONE_IN = 100
_LAUNCH: Final = re.compile(r"(?:cuda|cu|hip)(?:Ext)?(?:Module)?Launch(?:Cooperative)?Kernel")
_GRAPH_LAUNCH: Final = re.compile(r"(?:cuda|cu|hip)GraphLaunch")


@dataclass(frozen=True, slots=True, eq=False)
class GapCauses:
    """Idle gaps of a device in order of time, shape (n, 2), and what each is charged to, shape (n,), in nanoseconds.

    host_bound + launch_gap + dependency + unknown is the length of the gap, exactly.
    """

    gaps: Intervals
    host_bound_ns: Ints
    launch_gap_ns: Ints
    dependency_ns: Ints
    unknown_ns: Ints


def gap_causes(trace: Trace, links: Links, idle: Intervals, *, latency_ns: int = LONGEST_LATENCY_NS) -> GapCauses:
    """Charge every idle gap of a device to what the event that ends it waited for.

    With gap [g, h), the launching call of the event at its end [c, r), and i = min(r, h) the moment it is issued at the
    latest (a call that is still running when its event begins has issued it):

      host_bound  [g, i) where the call began after the device had drained (c >= g), or was under way then and took
                  longer than `latency_ns` from there
      launch_gap  [g, i) of a call under way that took no longer: the host was just behind; and [max(g, i), h) where
                  that is at most `latency_ns`
      dependency  [max(g, i), h) where it is longer: the event was issued, the device was idle, and it waited
      unknown     the whole gap, where no call is known (it lies before the profile began, or nothing was recorded on
                  the host), where the call begins after its event (the clocks disagree), and throughout a trace that
                  lacks most kernels or was thinned

    A call that launches many events (a graph) is done with the host once its first event runs: gaps before the others
    are launch_gap or dependency. A gap is of the whole device: no stream runs anything.
    """
    start, end = idle[:, 0], idle[:, 1]
    length = end - start
    none = np.zeros(len(idle), dtype=np.int64)
    if not len(idle) or lacks_kernels(trace, links) is not None or is_thinned(trace, links):
        return GapCauses(idle, none, none, none, length)
    ends_it = np.searchsorted(trace.start_ns[links.rows], end, side="left")
    launch = links.launch[ends_it]
    begun, returned = trace.start_ns[launch], trace.end_ns[launch]
    known = (launch != NONE) & (begun <= end)
    issuing = np.clip(np.minimum(returned, end) - start, 0, None)
    issuing[_launched_with_an_earlier_one(links)[ends_it]] = 0
    waiting = length - issuing
    just_behind = (begun < start) & (issuing <= latency_ns)
    soon = waiting <= latency_ns
    return GapCauses(
        gaps=idle,
        host_bound_ns=np.where(known & ~just_behind, issuing, 0),
        launch_gap_ns=np.where(known, np.where(just_behind, issuing, 0) + np.where(soon, waiting, 0), 0),
        dependency_ns=np.where(known & ~soon, waiting, 0),
        unknown_ns=np.where(known, 0, length),
    )


def launch_bound_frac(causes: GapCauses) -> float | None:
    """Share (0 to 1) of idle time of known cause in which the host was late: the device had drained, and the next event
    was not issued yet (host_bound), or had just been (the launch_gap behind that).

    None where there is no gap, or the cause of most idle time is unknown.
    """
    late = causes.host_bound_ns > 0
    whole_ns = int((causes.gaps[:, 1] - causes.gaps[:, 0]).sum())
    known_ns = whole_ns - int(causes.unknown_ns.sum())
    if known_ns == 0 or known_ns < _LEAST_KNOWN_SHARE * whole_ns:
        return None
    return int((causes.host_bound_ns + causes.launch_gap_ns)[late].sum()) / known_ns


def lacks_kernels(trace: Trace, links: Links) -> tuple[int, int] | None:
    """(launches of kernels, or of graphs, without a kernel in the trace, all of them) where most are; None elsewhere.

    So it is while a graph is captured, in thinned files, and where the profiler lost device events. Launches behind the
    last one that has a kernel count only where none has: their kernels may have run after the profile ended.
    """
    for pattern, few in ((_LAUNCH, _FEW_LAUNCHES), (_GRAPH_LAUNCH, _FEW_GRAPHS)):
        is_launch = np.fromiter((pattern.match(name) is not None for name in trace.names), np.bool_, len(trace.names))
        launches = trace.named(trace.rows(Category.RUNTIME), is_launch)
        with_kernel = np.isin(launches, links.launch)
        if with_kernel.any():
            launches = launches[: int(np.flatnonzero(with_kernel)[-1]) + 1]
        missing = len(launches) - int(with_kernel.sum())
        if len(launches) >= few and 2 * missing > len(launches):
            return missing, len(launches)
    return None


def is_thinned(trace: Trace, links: Links) -> bool:
    """Whether somebody removed most events of the file, so that what lies between two of them says nothing.

    A profiler numbers all calls and records many that launch nothing (waits, events, queries): of its files here the
    recorded calls are 2 to 100 % of their range of numbers. Thinned to calls that launched something, and of these to
    fewer than one in a hundred of the range, a file is a sample.
    """
    calls = trace.rows(Category.RUNTIME)
    calls = calls[trace.correlation[calls] != ABSENT]
    if len(calls) < _FEW_CALLS:
        return False
    numbers = trace.correlation[calls]
    spread = int(numbers.max()) - int(numbers.min()) + 1
    return len(calls) * _ONE_IN < spread and bool(np.isin(calls, links.launch).all())


def thinned_told(trace: Trace, links: Links) -> tuple[str, ...]:
    """A warning where the file is thinned."""
    if not is_thinned(trace, links):
        return ()
    return (
        "most events were removed from the file, as the numbers of its calls show: idle time is overstated, and its "
        "cause is not known",
    )


def _launched_with_an_earlier_one(links: Links) -> Mask:
    """For each device event whether its launching call launched one that began before it."""
    _, first = np.unique(links.launch, return_index=True)
    later: Mask = links.launch != NONE
    later[first] = False
    return later
