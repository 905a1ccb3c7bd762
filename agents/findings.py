"""What the planning graph finds: evidence, diagnosis, citations, proposals, and the whole answer.

Every sentence a user reads rests on an `Evidence` by id; every number says if it was measured, modelled or assumed.
"""

from typing import Literal

from pydantic import Field

from agents.diagnosis_parts import Capacity, Category, CollectiveShare, Headroom
from agents.proposal_parts import AxisPlacement, Effort, Experiment, Resource, TrailStep, Worsening
from agents.remedies.remedy import Remedy
from knowledge_base.past import PastMatch
from projector.breakdown import Projection
from projector.specs.bottleneck import Bottleneck, Cause
from projector.specs.objective import Rejection
from projector.specs.plan import MeshForm, ParallelismPlan
from projector.specs.record import Record

EvidenceSource = Literal["measured", "modelled", "assumed", "stated", "catalogue", "published"]


class Evidence(Record):
    """One claim with its number. `ref`: where it can be checked (summary field, projection, note, chip figure)."""

    id: str = Field(pattern=r"^ev-[a-z0-9-]+$")
    claim: str
    value: float | None = None
    unit: str = ""
    source: EvidenceSource
    ref: str


class Shares(Record):
    """Fractions of what `Diagnosis.window` names; compute + exposed_communication + exposed_copy + idle == 1."""

    compute: float
    exposed_communication: float
    exposed_copy: float
    idle: float
    hidden_communication: float = Field(description="communication under compute, as a fraction of the window")
    unclassified: float


class Diagnosis(Record):
    """The bottleneck, why, and how sure.

    `hypothesis` is what the headline shares alone suggest, `bottleneck` the verdict after operators were looked at.
    margin: lead of the verdict over the runner-up as a fraction of the window; ambiguous when it is small. 0 where the
    headline decides because no operator that was identified takes enough of the window to.
    """

    source: Literal["measured", "modelled", "stated"]
    bottleneck: Bottleneck
    cause: Cause
    hypothesis: Bottleneck
    overturned: bool
    scores: dict[Bottleneck, float] = Field(
        description="share of the window each class explains; they need not sum to 1"
    )
    shares: Shares | None = Field(None, description="None: nothing was measured or projected")
    window: str = Field("", description="what the shares are fractions of: the recorded window, or its marked steps")
    margin: float
    ambiguous: bool
    summary: str
    evidence: tuple[Evidence, ...]
    limits: tuple[str, ...] = Field((), description="what this diagnosis cannot say, and why")
    abstained: bool = Field(False, description="the evidence shows no class: `bottleneck` is then only a convention")
    hypothesis_basis: str = Field("", description="the headline figures behind the hypothesis, as a sentence")
    overturned_by: str = Field("", description="the evidence that overturns the hypothesis; '' where it stands")
    categories: tuple[Category, ...] = Field((), description="the window by sort of operator, the largest share first")
    categories_cover_frac: float | None = Field(None, description="part of the window that all categories cover")
    collectives: tuple[CollectiveShare, ...] = Field((), description="every kind of collective that was seen")
    headroom: tuple[Headroom, ...] = Field((), description="the most that relieving each class and the cause gains")
    mesh: tuple[Evidence, ...] = Field((), description="how the layout that runs causes it, with numbers")
    capacity: Capacity | None = None


class Citation(Record):
    """A retrieved note a proposal rests on, and what speaks against leaning on it."""

    note_id: str
    chunk_id: str
    title: str
    quote: str = Field(description="the passage that was retrieved")
    sources: tuple[str, ...]
    similarity: float
    stale: str = Field("", description="why the note is out of date; empty: it is not")
    other_hardware: str = Field(
        "", description="whose figures its worked number uses, where that is not the job's chip"
    )
    contradicts: tuple[str, ...] = Field((), description="ids of notes that say the opposite of this plan")

    @property
    def caveats(self) -> tuple[str, ...]:
        """What to bear in mind, a phrase each."""
        disputed = f"contradicted for this plan by {', '.join(self.contradicts)}" if self.contradicts else ""
        return tuple(text for text in (self.stale and f"stale: {self.stale}", self.other_hardware, disputed) if text)


class Change(Record):
    """One plan field a proposal changes."""

    field: str
    before: str
    after: str
    why: str


class Expected(Record):
    """Projected change against the current plan; fractions (-0.2: 20 % less). None: not known, never 0."""

    step_time_frac: float | None
    objective_frac: float | None = Field(description="change of the objective, positive is better")
    memory_frac: float | None
    exposed_communication_frac: float | None
    idle_frac: float | None
    step_time_direction: Literal["less", "same", "more", "unknown"]
    memory_direction: Literal["less", "same", "more", "unknown"]
    basis: str


class Proposal(Record):
    """One ranked strategy."""

    rank: int = Field(ge=1)
    title: str
    plan: ParallelismPlan
    mesh: MeshForm | None
    mesh_note: str = Field("", description="why there is no mesh form, where there is none")
    changes: tuple[Change, ...]
    rationale: str
    written_by: Literal["rules", "llm"] = Field("rules", description="whose words rationale and first risks are")
    expected: Expected
    evidence: tuple[str, ...] = Field(description="ids of Evidence in PlanResult.evidence")
    citations: tuple[Citation, ...]
    projections: tuple[Projection, ...] = Field(description="own cluster first, then the compared profiles")
    risks: tuple[str, ...]
    confidence: float = Field(ge=0, le=1)
    confidence_basis: str
    confidence_calibrated: bool = Field(False, description="whether confidence is a frequency held against outcomes")
    adoption_effort: Effort
    adoption: str = Field("", description="why adopting it takes that effort")
    relieves: Resource = Field("none", description="the term of the step or of memory that falls most")
    enlarges: str | None = Field(None, description="the degree that grows most, as a factor; prefill_devices: the pool")
    numerics: tuple[str, ...] = Field((), description="levers among the changes that alter numerics")
    trail: tuple[TrailStep, ...] = Field((), description="from what it is compared with to the plan, step by step")
    trail_note: str = Field("", description="where no order of steps stays legal and fits: why")
    links: tuple[AxisPlacement, ...] = ()
    worse: tuple[Worsening, ...] = Field((), description="what gets worse, the worst first")
    experiment: Experiment | None = Field(None, description="None: nothing changes, so there is nothing to test")
    stop_condition: str = Field("", description="when to give the change up")


class Assumption(Record):
    """Something the answer takes for granted, and what would change it."""

    field: str
    value: str
    reason: str
    matters: str = Field(description="how the answer would change")


class LlmUsage(Record):
    """What asking a language model took, answers that were refused included. None: not known, never an estimate."""

    model: str
    requests: int = Field(ge=0, description="requests sent, repeated ones included")
    prompt_tokens: int | None = Field(None, ge=0)
    completion_tokens: int | None = Field(None, ge=0)
    cost_usd: float | None = Field(None, ge=0, description="list price; None where the model has no known price")


class DroppedSentence(Record):
    """A sentence of a language model that its data does not hold, left out; its words stand in the audit log alone."""

    rank: int = Field(ge=1, description="of the proposal it was about")
    part: Literal["rationale", "risk"]
    reasons: tuple[str, ...] = Field(description="why, in our words")


class Standpoint(Record):
    """One place in an order of plans, with the figures that decide it."""

    rank: int = Field(ge=1)
    title: str
    gain_frac: float = Field(description="of the objective's ratio against what it is compared with, 0.25: a quarter")
    step_time_s: float = Field(ge=0)
    memory_bytes: float | None = Field(description="of the fullest device; None: the model is unknown")
    adoption_effort: Effort


class Disagreement(Record):
    """Two orders of plans: that of the rules and that of the language model. used: which one the answer has."""

    rules: tuple[Standpoint, ...]
    llm: tuple[Standpoint, ...]
    used: Literal["rules", "llm"]
    text: str = Field(description="where they part, with the figures that decide")


class Provenance(Record):
    """Who decided what, with which versions. usage: of the language model, where one was asked.

    order_by: who chose the plans and their order; whose words each proposal has stands in its `written_by`.
    """

    advisor: Literal["rules", "llm"]
    order_by: Literal["rules", "llm"] = "rules"
    fallback_reason: str = ""
    versions: dict[str, str]
    usage: LlmUsage | None = None
    dropped_sentences: tuple[DroppedSentence, ...] = ()
    disagreement: Disagreement | None = None
    redacted: bool = Field(False, description="whether names were hidden from the language model")


class NearMiss(Record):
    """A plan that failed a gate by the least."""

    plan: ParallelismPlan
    rejections: tuple[Rejection, ...]


class PlanResult(Record):
    """The whole answer to one POST /v1/plans."""

    diagnosis: Diagnosis
    current: Projection | None = Field(description="the current plan through the same model; None without one")
    remedies: tuple[Remedy, ...] = Field((), description="levers besides the layout, the likeliest first")
    asks: tuple[str, ...] = Field((), description="what the request lacks that would decide between them")
    proposals: tuple[Proposal, ...]
    fewer_because: str | None = None
    not_plannable: str | None = None
    evidence: tuple[Evidence, ...]
    assumptions: tuple[Assumption, ...]
    near_misses: tuple[NearMiss, ...] = ()
    candidates_considered: int
    candidates_feasible: int
    history: tuple[PastMatch, ...] = Field((), description="past optimisations nearest to this job, the nearest first")
    provenance: Provenance
    warnings: tuple[str, ...] = ()
