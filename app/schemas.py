"""What the service and the command line answer with, as records. Field names carry units; fractions end in _frac or
are shares of the window."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from agents.diagnosis_parts import Capacity, Category, CollectiveShare, Headroom
from agents.findings import Diagnosis, Evidence, PlanResult, Shares
from agents.kernel_tables.tables import SecondOpinion, Untabled
from app.schemas_launch import ProposalLaunch
from app.storage.traces import StoredTrace
from projector.breakdown import Projection
from projector.specs.bottleneck import Bottleneck, Cause
from projector.specs.cluster import ClusterSpec
from projector.specs.objective import Rejection
from projector.specs.plan import ParallelismPlan
from projector.specs.record import Record
from projector.specs.workload import WorkloadSpec
from traces.job_types import ClockOffset, GroupSkew, JobRanks, LinkRate, RankLateness
from traces.measure_types import ClassWork, CopyTime, IdleSplit, ServingPhase
from traces.summary_types import (
    CollectiveTime,
    Implied,
    KernelClassTime,
    KernelTime,
    PatternUnknown,
    RankSummary,
    SequencePattern,
    TimeShares,
    TraceSummary,
    Window,
)

PartState = Literal["ready", "starting", "on_demand", "failed"]


class TraceHeadline(TimeShares):
    """The trace behind a plan, in a few figures (aggregate over its ranks; integer nanoseconds)."""

    format: str
    window: Window
    ranks: int = Field(description="device time lines in the trace")
    chip: str | None = Field(description="device name as the profiler wrote it; None: the trace does not say")
    world_size: int | None = Field(description="ranks of the whole job; None: the trace does not say")
    framework: str | None
    top_kernels: tuple[KernelTime, ...] = Field(description="costliest kernels; names are untrusted text")
    patterns: tuple[SequencePattern, ...] = Field((), description="sequences of events that cost time")
    warnings: tuple[str, ...] = Field(description="everything dropped, repaired or assumed while reading")

    @classmethod
    def of(cls, summary: TraceSummary) -> "TraceHeadline":
        """The headline of a summary."""
        implied = summary.implied
        return cls(
            **time_shares(summary),
            format=summary.format,
            window=summary.window,
            ranks=len(summary.ranks),
            chip=implied.chip_name.value if implied.chip_name else None,
            world_size=implied.world_size.value if implied.world_size else None,
            framework=implied.framework.value if implied.framework else None,
            top_kernels=summary.top_kernels[:10],
            patterns=summary.patterns,
            warnings=summary.warnings,
        )


def time_shares(shares: TimeShares) -> dict[str, int]:
    """The window identity as keyword arguments."""
    return {name: getattr(shares, name) for name in TimeShares.model_fields}


class JobResult(Record):
    """What a finished job stores."""

    plan: PlanResult
    trace: TraceHeadline | None
    launch: tuple[ProposalLaunch, ...] | None = Field(None, description="None: stored by a version without them")


class PlanLinks(Record):
    """Where the same answer is found again."""

    self: str
    report: str
    launch: str


class PlanAnswer(PlanResult):
    """Answer of POST /v1/plans and GET /v1/plans/{id} when the plan is done."""

    id: UUID
    status: Literal["done"] = "done"
    created_at: datetime = Field(description="UTC")
    finished_at: datetime = Field(description="UTC")
    links: PlanLinks
    files: tuple[StoredTrace, ...] = Field(description="uploaded traces; names are untrusted text")
    trace: TraceHeadline | None = Field(description="None for a plan without a trace")


class PlanPending(Record):
    """Answer 202: the plan is not done yet; ask again at `links.self`."""

    id: UUID
    status: Literal["queued", "running"]
    created_at: datetime = Field(description="UTC")
    started_at: datetime | None = Field(description="UTC; None while queued")
    waited_s: float = Field(ge=0, description="seconds this request waited: min(wait, the service's limit)")
    links: PlanLinks


class FieldProblem(Record):
    """One key of a request that is wrong."""

    path: str = Field(description="dotted path of the key")
    message: str
    nearest: tuple[str, ...] = Field((), description="known keys with a similar name")


class Problem(Record):
    """RFC 9457 problem details, application/problem+json."""

    type: str = Field(description="URN of the kind of problem")
    title: str
    status: int = Field(description="HTTP status")
    detail: str
    code: str = Field(description="stable name of the kind of problem")
    hint: str = Field("", description="what to do next")
    nearest: tuple[str, ...] = Field((), description="known names close to an unknown one")
    errors: tuple[FieldProblem, ...] = Field((), description="one entry a wrong key")
    instance: str | None = Field(None, description="the request path, or the id under which the log has the details")


class Part(Record):
    """State of one thing the service needs."""

    state: PartState
    detail: str = ""


class Readiness(Record):
    """Answer of /readyz: 200 when every part is ready or works on demand, else 503."""

    ready: bool
    database: Part
    knowledge_store: Part
    embedder: Part
    history: Part


class Liveness(Record):
    """Answer of /healthz: the process serves requests."""

    status: Literal["ok"] = "ok"
    version: str


class DiagnoseAnswer(TimeShares):
    """Answer of `shardwise diagnose --json`: the window identity of the aggregate, and the diagnosis."""

    files: tuple[str, ...]
    format: str
    window: Window
    bottleneck: Bottleneck
    cause: Cause
    hypothesis: Bottleneck
    overturned: bool
    summary: str
    scores: dict[Bottleneck, float]
    shares: Shares
    shares_of: str = Field(description="what the shares are fractions of: the window, or its marked steps")
    margin: float
    ambiguous: bool
    evidence: tuple[Evidence, ...]
    limits: tuple[str, ...]
    abstained: bool
    hypothesis_basis: str
    overturned_by: str
    categories: tuple[Category, ...]
    categories_cover_frac: float | None
    collective_shares: tuple[CollectiveShare, ...]
    headroom: tuple[Headroom, ...]
    capacity: Capacity | None
    implied: Implied
    kernel_classes: tuple[KernelClassTime, ...]
    top_kernels: tuple[KernelTime, ...]
    collectives: tuple[CollectiveTime, ...]
    ranks: tuple[RankSummary, ...]
    idle: IdleSplit | None
    copies: tuple[CopyTime, ...]
    serving_phases: tuple[ServingPhase, ...]
    work: tuple[ClassWork, ...]
    patterns: tuple[SequencePattern, ...]
    patterns_unknown: tuple[PatternUnknown, ...]
    job: JobRanks
    clocks: tuple[ClockOffset, ...]
    skew: tuple[GroupSkew, ...]
    lateness: tuple[RankLateness, ...]
    links: tuple[LinkRate, ...]
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, summary: TraceSummary, diagnosis: Diagnosis) -> "DiagnoseAnswer":
        """The summary and its diagnosis as one document."""
        found = {name: getattr(diagnosis, name) for name in Diagnosis.model_fields if name in cls.model_fields}
        read = {name: getattr(summary, name) for name in TraceSummary.model_fields if name in cls.model_fields}
        return cls(**(found | read), shares_of=diagnosis.window, collective_shares=diagnosis.collectives)


class CommandPlan(PlanResult):
    """Answer of `shardwise plan --json`: the plan, and the trace it rests on."""

    trace: TraceHeadline | None = Field(description="None for a plan without a trace")
    launch: tuple[ProposalLaunch, ...] = Field(description="how each proposal is started, by framework")

    @classmethod
    def of(
        cls, result: PlanResult, trace: TraceHeadline | None, launch: tuple[ProposalLaunch, ...] | None
    ) -> "CommandPlan":
        """The plan with its headline and its launch configurations."""
        fields = {name: getattr(result, name) for name in PlanResult.model_fields}
        return cls(**fields, trace=trace, launch=launch or ())


class ProjectAnswer(Record):
    """Answer of `shardwise project --json`. An illegal plan has no projection."""

    plan: ParallelismPlan
    workload: WorkloadSpec
    cluster: ClusterSpec
    legal: bool
    illegal: tuple[Rejection, ...] = Field(description="rules the plan breaks")
    projection: Projection | None
    second_opinion: SecondOpinion | Untabled | None = Field(
        None, description="steps of measured kernel tables, or why they have none; null: not asked for"
    )
