"""Sequences of events that cost time and that a change could remove: the records (`traces.patterns` finds them)."""

from typing import Literal

from pydantic import Field

from projector.specs.record import Record

PatternKind = Literal[
    "gather_then_slice",
    "relayout_copies",
    "reshard_round_trip",
    "tiny_collectives",
    "repeated_gathers",
    "repeated_reductions",
    "serialised_pair",
    "host_syncs",
    "tiny_kernels",
]
FigureName = Literal["events", "mean_event", "mean_message", "per_step"]


class PatternFigure(Record):
    """One number of a pattern, beside those all patterns have.

    events        what the occurrences consist of: device events, or gaps between them
    mean_event    time of one of these, in ns
    mean_message  of one collective, in bytes
    per_step      occurrences in one measured step
    """

    name: FigureName
    value: float = Field(ge=0)
    unit: str


class SequencePattern(Record):
    """All occurrences of one pattern, summed over the ranks.

    total_ns    union of the time they take on a device's time line: their events, or the idle gaps they leave
    exposed_ns  the part of it in which the device computes nothing else: the most that removing the pattern can gain
    """

    kind: PatternKind
    occurrences: int = Field(ge=1)
    total_ns: int = Field(ge=0)
    exposed_ns: int = Field(ge=0)
    exposed_frac: float = Field(
        ge=0, le=1, description="exposed_ns over the windows of all ranks: the gain is at most this"
    )
    moved_bytes: int | None = Field(None, description="None where not all occurrences state them")
    certain: bool = Field(
        description="False: no data dependency in the trace proves it; `basis` says what speaks for it"
    )
    basis: str = Field(description="what the trace shows of it, and what it does not")
    examples: tuple[str, ...] = Field((), description="names of its events, the costliest first; untrusted text")
    figures: tuple[PatternFigure, ...] = ()


class PatternUnknown(Record):
    """A pattern that was not looked for, and what the trace lacks for it."""

    kind: PatternKind
    why: str
