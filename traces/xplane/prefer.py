"""One run written twice: the JAX profiler leaves a Chrome JSON beside its protobuf; only the protobuf is to count."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from traces.trace import Trace

_SUFFIX: Final = re.compile(r"\.(?:trace\.json|xplane\.pb)(?:\.gz)?$", re.IGNORECASE)


def without_viewer_copies(traces: Sequence[Trace]) -> tuple[Trace, ...]:
    """Leave out Chrome JSON of a run whose protobuf is there as well, and tell it with the protobuf.

    A pair has one file name up to the suffix (the profiler names both after the host), and the JSON shows no name of an
    event that the protobuf lacks.
    """
    chosen = [trace for trace in traces if not any(_is_copy(trace, other) for other in traces)]
    if len(chosen) == len(traces):
        return tuple(traces)
    left_out = {stem(trace.file): trace.file for trace in traces if trace not in chosen}
    return tuple(
        replace(trace, warnings=(*trace.warnings, f"{file} is the viewer's copy of this profile and was left out"))
        if trace.format == "xplane" and (file := left_out.get(stem(trace.file)))
        else trace
        for trace in chosen
    )


def _is_copy(trace: Trace, other: Trace) -> bool:
    return (
        trace.format == "jax_chrome"
        and other.format == "xplane"
        and stem(trace.file) == stem(other.file)
        and set(trace.names) <= set(other.names)
    )


def stem(file: str) -> str:
    """Name of a file up to the suffix of a JAX profile."""
    return _SUFFIX.sub("", file)
