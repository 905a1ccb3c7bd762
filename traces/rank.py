"""Everything one trace (one rank, one device) says of itself."""

from dataclasses import dataclass

import numpy as np

from projector.errors import EmptyTrace
from traces.collectives import communications, host_communications
from traces.facts import Facts
from traces.kernel_table import KernelTable, add_device_events, add_host_operators
from traces.launches import lacks_kernels, launch_bound_frac
from traces.linking import NONE, enclosing
from traces.naming import By, Classified, Evidence, classify
from traces.shares import Cover, device_cover, host_communication_mask, host_cover, time_shares
from traces.steps import complete, step_windows
from traces.summary_types import RankSummary, StepShares, Window
from traces.trace import Category, Trace

_UNCLASSIFIED_TOLD_FROM = 0.01
_OVERRUN_FROM_EVENTS = 8
_NAME_SHOWN = 80


@dataclass(frozen=True, slots=True, eq=False)
class RankParts:
    """A rank's summary with what the job's summary is made of."""

    summary: RankSummary
    facts: Facts
    cover: Cover
    table: KernelTable
    warnings: tuple[str, ...]


def rank_parts(trace: Trace, evidence: Evidence = "provenance") -> RankParts:
    """Summarise one trace; raises `EmptyTrace` where it has neither device events nor host operators."""
    classified = classify(trace, evidence)
    on_device = len(classified.links.rows) > 0
    cover = device_cover(trace, classified) if on_device else host_cover(trace)
    if cover is None:
        raise EmptyTrace(
            f"{trace.file} holds neither device events nor host operators",
            hint="profile with CPU and device activities",
        )
    table = KernelTable()
    if on_device:
        add_device_events(table, trace, classified)
        found = communications(trace, classified)
    else:
        add_host_operators(table, trace)
        collectives = trace.rows(Category.CPU_OP, Category.ANNOTATION)
        found = host_communications(trace, trace.named(collectives, host_communication_mask(trace)))
    summary = _summary(trace, classified, cover)
    return RankParts(
        summary=summary,
        facts=Facts(trace, classified, found),
        cover=cover,
        table=table,
        warnings=trace.warnings + _warnings(trace, classified, summary),
    )


def _summary(trace: Trace, classified: Classified, cover: Cover) -> RankSummary:
    rows = classified.links.rows
    device = trace.device_index
    return RankSummary(
        rank=trace.metadata.rank,
        device=device,
        file=trace.file,
        window=Window(name="whole file", start_ns=cover.start_ns, end_ns=cover.end_ns, device=len(rows) > 0),
        kernel_count=len(trace.rows(Category.KERNEL)),
        launch_bound_frac=launch_bound_frac(trace, classified.links, cover.idle) if len(rows) else None,
        memory_high_water_bytes=trace.memory_high_water_bytes.get(device) if device is not None else None,
        steps=tuple(
            StepShares(
                name=step.name,
                start_ns=step.start_ns,
                end_ns=step.end_ns,
                **time_shares(cover.clipped(step.start_ns, step.end_ns)).model_dump(),
            )
            for step in step_windows(trace, classified.links)
        ),
        **time_shares(cover).model_dump(),
    )


def _warnings(trace: Trace, classified: Classified, summary: RankSummary) -> tuple[str, ...]:
    told: list[str] = []
    durations_ns = [step.window_ns for step in summary.steps]
    for step, is_whole in zip(summary.steps, complete(durations_ns), strict=True):
        if not is_whole:
            told.append(f"{step.name[:_NAME_SHOWN]} lasts {step.window_ns:,} ns, far less than the others: incomplete")
    if not len(classified.links.rows):
        devices = len(trace.metadata.devices)
        told.append(
            "no device events were recorded: all times are of host operators"
            + (f", although the host has {devices} devices" if devices else "")
        )
    elif (launches := lacks_kernels(trace, classified.links)) is not None:
        told.append(
            f"{launches[0]:,} of {launches[1]:,} kernel launches have no kernel in the file (a graph capture, a "
            "thinned file, or lost events): idle time is overstated, and its cause is not known"
        )
    if classified.hinted_streams:
        streams = ", ".join(map(str, classified.hinted_streams))
        told.append(f"unnamed kernels on stream {streams} were taken for communication, which is all it carries else")
    durations = trace.duration_ns[classified.links.rows]
    unclassified = int(durations[classified.by == By.UNCLASSIFIED].sum())
    if unclassified > _UNCLASSIFIED_TOLD_FROM * max(int(durations.sum()), 1):
        told.append(
            f"{unclassified / durations.sum():.0%} of device time is in kernels no rule names; it counts as compute"
        )
    return (*told, *_overruns(trace, classified))


def _overruns(trace: Trace, classified: Classified) -> tuple[str, ...]:
    """Events that last past many later ones of their own stream (a known profiler fault): a doubtful duration."""
    told: list[str] = []
    rows = classified.links.rows
    for stream in np.unique(trace.stream[rows]):
        mine = rows[trace.stream[rows] == stream]
        starts, ends = trace.start_ns[mine], trace.end_ns[mine]
        parent = enclosing(starts, ends)
        held = (parent != NONE) & (ends <= ends[parent]) & (ends > starts)
        outer, counts = np.unique(parent[held], return_counts=True)
        for index in outer[counts >= _OVERRUN_FROM_EVENTS]:
            name = ascii(trace.name(mine[index])[:_NAME_SHOWN])
            told.append(
                f"{name} lasts {trace.duration_ns[mine[index]]:,} ns on stream {stream}, past "
                f"{int(counts[outer == index][0])} later events of that stream; its duration is doubtful"
            )
    return tuple(told)
