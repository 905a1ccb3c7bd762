"""What is measured on one rank beside the window identity: idle time, steps, copies, serving phases, work, bubble."""

from typing import Literal

from pydantic import Field

from projector.breakdown import OperatorKind
from projector.specs.record import Record
from traces.work_types import Bound, BoundTime, FormatWork, OperatorWork

CopyDirection = Literal["host_to_device", "device_to_host", "device_to_device", "peer", "memset", "unknown"]
ServingPhaseName = Literal["prefill", "decode", "mixed", "idle", "unknown"]
StepRole = Literal["measured", "warm_up", "incomplete"]


class IdleSplit(Record):
    """Why a device was idle, gap by gap; the four terms sum to the idle time exactly.

    host_bound  the device had drained before the host issued the next event
    launch_gap  the next event was issued and the device had not begun it: launch latency, and gaps between queued
                events too short to be a wait
    dependency  the next event was queued and waited: for another stream, an event, a copy, another device
    unknown     the trace does not show when the next event was issued
    """

    host_bound_ns: int = Field(ge=0)
    launch_gap_ns: int = Field(ge=0)
    dependency_ns: int = Field(ge=0)
    unknown_ns: int = Field(ge=0)
    input_ns: int = Field(0, ge=0, description="part of host_bound in which the host loaded input, as its marks say")
    pause_ns: int = Field(
        0, ge=0, description="part of host_bound in gaps longer than issuing work takes; may overlap input_ns"
    )


class StepStatistics(Record):
    """Spread of the steps that count as measured. Times are of whole steps, in nanoseconds."""

    marks: str = Field(description="what marks a step, e.g. 'profiler steps', 'serving iterations'")
    measured: int = Field(ge=1)
    warm_up: int = Field(0, ge=0, description="left out: the first steps, much longer than the later ones")
    incomplete: int = Field(0, ge=0, description="left out: cut off by the start or the end of the profile")
    mean_ns: float
    median_ns: float
    deviation_ns: float | None = Field(None, description="sample standard deviation; None for one step")
    shortest_ns: int
    longest_ns: int
    conclusive: bool = Field(description="False: too few or too uneven steps for a statement about the job")
    why: str = Field("", description="what makes the window inconclusive")
    window: str = Field("", description="the measured steps by name, e.g. 'ProfilerStep#4 to #6 (3 steps)'")


class CopyTime(Record):
    """Copies and memsets of one direction.

    exposed_ns: the part of their union that neither compute nor communication covers.
    """

    direction: CopyDirection
    count: int
    total_ns: int
    exposed_ns: int
    copied_bytes: int | None = Field(None, description="None where the trace does not state the size of every copy")


class ServingPhase(Record):
    """Steps of a serving engine by what they ran, from its own annotations."""

    phase: ServingPhaseName
    steps: int = Field(ge=1)
    total_ns: int
    median_ns: int
    requests_min: int | None = None
    requests_median: float | None = None
    requests_max: int | None = None
    prompts: int | None = Field(
        None, description="requests in prefill, of all steps; a chunk of a prompt counts as one"
    )
    prefill_tokens: int | None = Field(None, description="new prompt tokens of all steps")
    reached_tokens: int | None = Field(
        None,
        description="length those prompts have after their steps, earlier and cached tokens included, of all steps",
    )
    decoding_max: int | None = Field(None, description="most requests that decode in one step")
    decode_tokens: int | None = Field(None, description="tokens asked for by requests in decode, of all steps")


class PipelineBubble(Record):
    """Time inside measured steps in which no compute runs and a stage waits for another.

    Of each step, between its first and last event that is compute or a transfer between stages: | transfers - compute |
    + | idle whose cause is dependency |. ideal_frac is (p - 1) / (m + p - 1) of 1F1B where stages p and micro-batches m
    are known.
    """

    bubble_ns: int = Field(ge=0)
    idle_ns: int = Field(0, ge=0, description="part of bubble_ns in which the device is idle; the rest is in transfers")
    window_ns: int = Field(ge=1)
    stages: int | None = None
    micro_batches: int | None = None
    ideal_frac: float | None = None
    basis: str


class ClassWork(Record):
    """Work of one kind of kernel, where shapes or profiler counters give it, and how near the roofline it came.

    A kernel whose operator's work is known is filed under the kind of that operator's costliest kernel, any other under
    its own, so that time of all kinds adds up to that of all kernels. Rates are over `known_ns`, the summed durations
    of the kernels whose work is known. Peak-relative fields are None until a hardware profile is put beside the trace,
    and where it has no such peak.
    """

    kind: OperatorKind
    count: int = Field(description="kernels")
    total_ns: int
    known_count: int = Field(ge=0, description="kernels whose work is known")
    known_ns: int = Field(ge=0)
    flop: int | None = Field(None, description="None where an operator's is not countable")
    moved_bytes: int | None = None
    flop_per_s: float | None = None
    bytes_per_s: float | None = None
    intensity_flop_per_byte: float | None = None
    basis: str = Field("", description="what the work rests on: 'operator shapes', 'XLA cost analysis'")
    assumed: tuple[str, ...] = Field((), description="what the shapes leave open, each once")
    formats: tuple[FormatWork, ...] = Field((), description="by number format, the costliest first")
    operators: tuple[OperatorWork, ...] = Field((), description="the costliest operators; the others are in `formats`")
    bound: Bound = Field("unknown", description="what limits most of the time; 'unknown' also where implausible")
    bounds: tuple[BoundTime, ...] = Field((), description="total_ns by what limits it")
    peak: str = Field("", description="the chip's peaks that the fractions are of")
    peak_flop_frac: float | None = Field(None, description="time the FLOP take at their format's peak, over theirs")
    peak_bytes_frac: float | None = Field(None, description="bytes over the time times the peak of memory")
    implausible: str = Field("", description="why the figures cannot be right, e.g. faster than the chip's peak")
