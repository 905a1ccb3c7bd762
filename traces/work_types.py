"""Parts of ClassWork: calls alike, sums by number format, time by what limits it."""

from typing import Literal

from pydantic import Field

from projector.specs.record import Record
from traces.work.element_types import Format

Bound = Literal["compute", "memory", "latency", "unknown"]


class OperatorWork(Record):
    """Calls of one operator with the same inputs. Work is that of one call, time that of all the calls' kernels."""

    operator: str = Field(description="as the profiler wrote it; untrusted text")
    shapes: str = Field(description="sizes of its tensor inputs, '[256, 512] [512, 128]'; '' where none are recorded")
    format: Format = Field(description="number format of its products, 'vector' without any")
    calls: int = Field(ge=1)
    kernels: int = Field(ge=1, description="kernels of all the calls")
    total_ns: int = Field(ge=0)
    flop: int | None = Field(None, description="of one call; None: not countable")
    moved_bytes: int = Field(description="of one call: inputs read once, outputs written once")
    assumed: str = Field("", description="what the shapes leave open")
    bound: Bound = "unknown"
    peak_flop_frac: float | None = None
    peak_bytes_frac: float | None = None
    implausible: str = Field("", description="why the figures cannot be right")


class FormatWork(Record):
    """All calls of one kind whose products run in one number format."""

    format: Format
    calls: int
    kernels: int
    known_ns: int
    flop: int | None = Field(None, description="None where an operator's is not countable")
    moved_bytes: int


class BoundTime(Record):
    """Time of the kernels of one kind that one limit holds."""

    bound: Bound
    total_ns: int
