"""All patterns of one rank."""

from collections.abc import Callable
from typing import Final, get_args

from projector.breakdown import Axis
from traces.collectives import Communication
from traces.facts import Facts
from traces.pattern_types import PatternKind
from traces.patterns.gather_slice import gather_then_slice
from traces.patterns.host_syncs import host_syncs
from traces.patterns.relayout import relayout_copies
from traces.patterns.repeats import repeated_gathers, repeated_reductions
from traces.patterns.round_trip import reshard_round_trip
from traces.patterns.scene import Found, Lacking, Scene
from traces.patterns.serialised import serialised_pair
from traces.patterns.tiny_collectives import tiny_collectives
from traces.patterns.tiny_kernels import tiny_kernels
from traces.shares import Cover
from traces.summary_types import StepShares

FINDERS: Final[tuple[Callable[[Scene], Found | Lacking | None], ...]] = (
    gather_then_slice,
    relayout_copies,
    reshard_round_trip,
    tiny_collectives,
    repeated_gathers,
    repeated_reductions,
    serialised_pair,
    host_syncs,
    tiny_kernels,
)
"""A pattern is added here, with a file of its own that says what it is, from where on, and why."""

_NO_DEVICE: Final = "the trace holds no device event"


def find_patterns(
    facts: Facts, cover: Cover, steps: tuple[StepShares, ...], axis_of: Callable[[Communication], Axis]
) -> tuple[Found | Lacking, ...]:
    """What is found in one rank, and what could not be looked for, in the order of FINDERS."""
    if not len(facts.classified.links.rows):
        return tuple(Lacking(kind, _NO_DEVICE) for kind in get_args(PatternKind))
    scene = Scene(facts.trace, facts.classified, facts.communications, cover.idle, steps, axis_of)
    return tuple(found for finder in FINDERS if (found := finder(scene)) is not None)
