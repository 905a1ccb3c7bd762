"""Everything one trace (one rank, one device) says of itself."""

from dataclasses import dataclass

from projector.errors import EmptyTrace
from traces.collectives import collective_table, communications, host_communications, rates_not_known
from traces.cross_rank.log import CollectiveLog, collective_log
from traces.facts import Facts
from traces.infer import imply_rank
from traces.infer_mesh import Mesh
from traces.kernel_table import KernelTable, PackedTable, add_device_events, add_host_operators, packed
from traces.launches import lacks_kernels
from traces.measure_types import ClassWork, ServingPhase
from traces.measures.of_rank import RankMeasures, measure_rank
from traces.naming import By, Classified, Evidence, classify
from traces.overruns import cut_overruns
from traces.patterns.find import find_patterns
from traces.patterns.scene import Found, Lacking
from traces.shares import Cover, device_cover, host_communication_mask, host_cover, time_shares
from traces.summary_types import Implied, RankSummary, Window
from traces.trace import Category, Trace
from traces.work.class_work import work_of
from traces.xplane.profile_parts import ProfileParts, profile_parts

_UNCLASSIFIED_TOLD_FROM = 0.01
_STREAMS_SHOWN = 16


@dataclass(frozen=True, slots=True, eq=False)
class RankParts:
    """What one trace (one rank, one device) says of itself: a summary and the sums a job's summary is made of.

    Small and picklable: it holds no event, so it may cross to another process while the trace stays where it was read.

    event_count    rows of the trace; of ranks that disagree the one with most speaks for the job
    event_counts   (category, events) of the whole file, the same on all of its devices
    implied        of this rank alone
    collective_log  what the ranks of the job are compared by
    base_time_ns   what the file says to add to its times; None where it does not
    source         number of the file among those of the job; no meaning beyond identity
    """

    summary: RankSummary
    format: str
    event_count: int
    event_counts: tuple[tuple[str, int], ...]
    table: PackedTable
    implied: Implied
    collective_log: CollectiveLog | None = None
    work: tuple[ClassWork, ...] = ()
    serving_phases: tuple[ServingPhase, ...] = ()
    patterns: tuple[Found | Lacking, ...] = ()
    profile: ProfileParts | None = None
    base_time_ns: int | None = None
    source: int = 0
    warnings: tuple[str, ...] = ()


def rank_parts(trace: Trace, evidence: Evidence = "provenance", source: int = 0) -> RankParts:
    """Summarise one trace, of file number `source`.

    Raises `EmptyTrace` where it has neither device events nor host operators.
    """
    classified = classify(trace, evidence)
    trace, doubtful = cut_overruns(trace, classified)
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
    facts = Facts(trace, classified, found)
    implied, mesh = imply_rank(facts)
    measures = measure_rank(facts, cover, implied.pp, mesh.axis_of)
    summary = _summary(facts, cover, table, mesh, measures)
    return RankParts(
        summary=summary,
        format=trace.format,
        event_count=len(trace),
        event_counts=tuple(sorted(trace.event_counts.items())),
        table=packed(table),
        implied=implied,
        collective_log=collective_log(trace, found, cover, mesh.axis_of),
        work=work_of(trace, classified),
        serving_phases=measures.serving_phases,
        patterns=find_patterns(facts, cover, measures.steps, mesh.axis_of),
        profile=profile_parts(trace.profile) if trace.profile is not None else None,
        base_time_ns=trace.metadata.base_time_ns,
        source=source,
        warnings=trace.warnings + _warnings(trace, classified, measures) + doubtful + rates_not_known(found),
    )


def _summary(facts: Facts, cover: Cover, table: KernelTable, mesh: Mesh, measures: RankMeasures) -> RankSummary:
    trace, classified = facts.trace, facts.classified
    rows = classified.links.rows
    device = trace.device_index
    return RankSummary(
        rank=trace.metadata.rank,
        device=device,
        file=trace.file,
        window=Window(name="whole file", start_ns=cover.start_ns, end_ns=cover.end_ns, device=len(rows) > 0),
        kernel_count=len(trace.rows(Category.KERNEL)),
        launch_bound_frac=measures.launch_bound_frac,
        memory_high_water_bytes=trace.memory_high_water_bytes.get(device) if device is not None else None,
        steps=measures.steps,
        step_statistics=measures.step_statistics,
        idle=measures.idle,
        step_idle=measures.step_idle,
        copies=measures.copies,
        bubble=measures.bubble,
        kernel_classes=table.kernel_classes(),
        collectives=collective_table(trace, facts.communications, cover.compute, mesh.axis_of),
        **time_shares(cover).model_dump(),
    )


def _warnings(trace: Trace, classified: Classified, measures: RankMeasures) -> tuple[str, ...]:
    told = list(measures.warnings)
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
        streams = ", ".join(map(str, classified.hinted_streams[:_STREAMS_SHOWN]))
        streams += ", ..." if len(classified.hinted_streams) > _STREAMS_SHOWN else ""
        told.append(f"unnamed kernels on stream {streams} were taken for communication, which is all it carries else")
    durations = trace.duration_ns[classified.links.rows]
    unclassified = int(durations[classified.by == By.UNCLASSIFIED].sum())
    if unclassified > _UNCLASSIFIED_TOLD_FROM * max(int(durations.sum()), 1):
        told.append(
            f"{unclassified / durations.sum():.0%} of device time is in kernels no rule names; it counts as compute"
        )
    return tuple(told)
