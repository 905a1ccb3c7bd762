"""Evidence from sequences of events that a change could remove, each with the most it can gain and what relieves it."""

from typing import Final, NamedTuple

from agents.findings import Evidence
from agents.planning.headroom import NOISE_FRAC
from agents.wording import duration, percent, quoted
from projector.units import ns_to_s
from traces.pattern_types import PatternKind, SequencePattern
from traces.summary_types import TraceSummary


class _Words(NamedTuple):
    """What occurs (one, many), and what relieves it."""

    one: str
    many: str
    lever: str


_WORDS: Final[dict[PatternKind, _Words]] = {
    "gather_then_slice": _Words(
        "collective whose result is sliced to one rank's part",
        "collectives whose results are sliced to one rank's part",
        "a reduce-scatter in place of an all-reduce, or a layout that needs no gather, moves less",
    ),
    "relayout_copies": _Words(
        "copy that changes a layout beside a matrix kernel or a collective",
        "copies that change a layout beside a matrix kernel or a collective",
        "one layout throughout, or a kernel that takes the operand as it lies, needs none of them",
    ),
    "reshard_round_trip": _Words(
        "collective that is undone by the next with only cheap kernels between",
        "collectives that are undone by the next with only cheap kernels between",
        "the sharding of what lies between them set to that of its neighbours needs neither",
    ),
    "tiny_collectives": _Words(
        "run of small collectives back to back",
        "runs of small collectives back to back",
        "coalescing each run into one collective (larger buckets, a coalescing manager) pays its latency once",
    ),
    "repeated_reductions": _Words(
        "reduction anew of gradients that one step has reduced before",
        "reductions anew of gradients that one step has reduced before",
        "accumulating gradients on each rank and reducing after the last micro-batch alone does it once",
    ),
    "repeated_gathers": _Words(
        "gathering anew of weights that one step has gathered before",
        "gatherings anew of weights that one step has gathered before",
        "keeping gathered weights through the step (ZeRO-1 or 2), where memory allows, or fewer and larger "
        "micro-batches gather them less often",
    ),
    "serialised_pair": _Words(
        "data-parallel collective beside which no kernel runs though one is queued behind it",
        "data-parallel collectives beside which no kernel runs though one is queued behind them",
        "a stream of its own, prefetching or launching it earlier lets kernels run beside it",
    ),
    "host_syncs": _Words(
        "time that the host waits for the device and only then issues the next work",
        "times that the host waits for the device and only then issues the next work",
        "leaving out item(), blocking copies and synchronise calls in the loop lets the host run ahead",
    ),
    "tiny_kernels": _Words(
        "kernel shorter than the idle gap before it, in runs launched one by one",
        "kernels shorter than the idle gaps before them, in runs launched one by one",
        "a captured graph, or compilation that fuses them, launches a run at once",
    ),
}

_GAPS: Final[tuple[PatternKind, ...]] = ("host_syncs", "tiny_kernels")


def pattern_evidence(summary: TraceSummary) -> tuple[Evidence, ...]:
    """One claim a pattern, the one that could gain most first; the value is the most that removing it can gain."""
    return tuple(
        Evidence(
            id=f"ev-pattern-{one.kind.replace('_', '-')}",
            claim=_claim(one),
            value=one.exposed_frac,
            unit="fraction",
            source="measured",
            ref=f"summary.patterns[kind={one.kind}]",
        )
        for one in summary.patterns
    )


def _claim(one: SequencePattern) -> str:
    words = _WORDS[one.kind]
    what = f"{one.occurrences:,} {words.one if one.occurrences == 1 else words.many}"
    example = f", such as '{quoted(one.examples[0])}'," if one.examples else ""
    noise = ", within the noise of a step" if one.exposed_frac <= NOISE_FRAC else ""
    doubt = "" if one.certain else f" Only possibly: {quoted(one.basis, 300)}."
    return (
        f"{what}{example} {_taken(one)}: at most {percent(one.exposed_frac)} of the window to gain{noise}. "
        f"{words.lever[0].upper()}{words.lever[1:]}.{doubt}"
    )


def _taken(one: SequencePattern) -> str:
    """What it costs, the verb in the number of the occurrences."""
    ending = "s" if one.occurrences == 1 else ""
    taken = duration(ns_to_s(one.total_ns))
    if one.kind in _GAPS:
        return f"leave{ending} the device idle for {taken}"
    if one.exposed_ns == one.total_ns:
        return f"take{ending} {taken}"
    return f"take{ending} {taken}, {duration(ns_to_s(one.exposed_ns))} of it with no computation beside"
