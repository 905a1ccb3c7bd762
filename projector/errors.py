"""One error tree for the whole product.

ShardwiseError
 |- InvalidDescription   422  a request, plan, workload or cluster that is malformed or contradicts itself
 |   |- UnknownName      422  a chip, model, lever, objective, key ... that nobody knows, with the nearest names
 |- TraceError           400
 |   |- UnknownTraceFormat 415  no reader claims the bytes
 |   |- UnsupportedTrace   415  the format is known, and not read yet
 |   |- CorruptTrace       400  the format is known, the content is broken
 |   |- EmptyTrace         400  nothing was recorded that could be summarised
 |   |- TraceWithoutTimes  422  what ran and in which order is recorded, and not when
 |   |- TraceTooLarge      413  a limit on bytes, ratio, events or nesting was passed
 |- StoreBusy            503  another process owns the knowledge store
 |- WorkersUnavailable   503  the machines that read traces are not there
 |- KnowledgeUnavailable 503  the knowledge store or its embedding model cannot be used at the moment

An infeasible plan is never an exception: it is a `Rejection` value (`projector.specs.objective`).
"""

from collections.abc import Iterable
from typing import ClassVar

from projector.nearest import nearest_names


class ShardwiseError(Exception):
    """Root of the tree. `code` is stable and machine-readable, `hint` says what to do next."""

    code: ClassVar[str] = "shardwise_error"
    http_status: ClassVar[int] = 500

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InvalidDescription(ShardwiseError):
    """A description that is malformed or contradicts itself."""

    code = "invalid_description"
    http_status = 422


# characters of a wrong name that are told back and compared: no known one is as long
LONGEST_SHOWN = 200


class UnknownName(InvalidDescription):
    """A name that is in no catalogue; `nearest` holds the closest known ones."""

    code = "unknown_name"

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        known = sorted(known)
        name = name if len(name) <= LONGEST_SHOWN else f"{name[:LONGEST_SHOWN]}..."
        self.kind = kind
        self.name = name
        self.nearest = nearest_names(name, known)
        listed = ", ".join(self.nearest or tuple(known[:10]))
        label = "nearest known" if self.nearest else "known"
        super().__init__(f"unknown {kind} {name!r}", hint=f"{label}: {listed}" if listed else "")


class TraceError(ShardwiseError):
    """A trace that cannot be read."""

    code = "trace_error"
    http_status = 400


class UnknownTraceFormat(TraceError):
    """No reader claims these bytes."""

    code = "unknown_trace_format"
    http_status = 415


class UnsupportedTrace(TraceError):
    """The format is recognised, and this version does not read it."""

    code = "unsupported_trace"
    http_status = 415


class CorruptTrace(TraceError):
    """The format is recognised, the content is broken."""

    code = "corrupt_trace"


class EmptyTrace(TraceError):
    """The file is whole and holds no event that could be summarised."""

    code = "empty_trace"


class TraceWithoutTimes(TraceError):
    """The file is whole and says what ran, and not when: there is no measured time line to summarise."""

    code = "trace_without_times"
    http_status = 422


class TraceTooLarge(TraceError):
    """A limit was passed; the message names the limit and the overshoot."""

    code = "trace_too_large"
    http_status = 413


class StoreBusy(ShardwiseError):
    """Another process owns the knowledge store."""

    code = "store_busy"
    http_status = 503


class WorkersUnavailable(ShardwiseError):
    """The cluster that is to read traces cannot be reached, or its client is not installed."""

    code = "workers_unavailable"
    http_status = 503


class KnowledgeUnavailable(ShardwiseError):
    """The knowledge store cannot be reached or written, or its embedding model is missing or not the pinned one."""

    code = "knowledge_unavailable"
    http_status = 503
