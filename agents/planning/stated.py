"""What a user states of a run (figures, a symptom) beside or in place of a trace: diagnosis, remedies, questions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.causes import CAUSE_PHRASE, NOT_LAYOUT
from agents.findings import Diagnosis, Evidence
from agents.planning.job import Job
from agents.remedies.advise import remedies_of, stated_evidence
from agents.remedies.asks import asks_of
from agents.remedies.facts import Facts, facts_of
from agents.remedies.number_signs import BY_SIGN
from agents.remedies.remedy import Remedy
from agents.remedies.symptom import Sign
from agents.remedies.weighing import Weighed, signs_of, weigh
from agents.request import PlanRequest
from agents.wording import listed, percent, quoted
from projector.specs.bottleneck import Cause

INPUT = "input pipeline"  # the sign of a device that waits for the loader
MEASURE = "diagnosis"  # the lever that only looks
DECISIVE_WEIGHT = 2.0  # of a sign: a symptom, not a setting or a habit; only then words contradict a trace
DIAGNOSED_WEIGHT = {"measured": 6.0, "modelled": 0.15, "stated": 0.0}  # of a diagnosis among the signs

# the sign that a diagnosed cause is
SIGN_OF: dict[Cause, str] = {
    "compute_throughput": "slow kernels",
    "hbm_bandwidth": "bandwidth of decoding",
    "hbm_capacity": "near-full memory",
    "exposed_tp": "tensor-parallel collectives",
    "exposed_dp": "parameter gathers",
    "exposed_ep": "expert exchange",
    "exposed_cp": "a setting: context parallelism",
    "exposed_pp": "slow link between nodes",
    "exposed_communication": "exposed communication",
    "latency_bound_collectives": "small collectives",
    "pipeline_bubble": "pipeline bubble",
    "launch_bound": "kernel launches",
    "host_idle": "idle device",
    "copies": "offload",
    "imbalance": "expert imbalance",
}


@dataclass(frozen=True)
class Stated:
    """Facts of a request, and its signs weighed, a diagnosis of trace or projection among them."""

    facts: Facts
    weighed: Weighed
    own: bool

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """One Evidence a sign; nothing where the user stated nothing."""
        return stated_evidence(self.weighed) if self.own else ()


def says_something(request: PlanRequest) -> bool:
    """Whether the request states figures or a symptom."""
    return bool(request.symptom.strip()) or (request.observed is not None and bool(request.observed.stated))


def lacks_plan(request: PlanRequest) -> tuple[str, ...]:
    """What a request without a trace lacks to be planned, by field."""
    missing = []
    if request.architecture is None and (request.workload is None or request.workload.model is None):
        missing.append("workload.model (or architecture)")
    if request.cluster is None:
        missing.append("cluster.chip and cluster.chips")
    return tuple(missing)


def stated_of(request: PlanRequest, diagnosis: Diagnosis | None = None, job: Job | None = None) -> Stated:
    """Facts and signs of a request; a diagnosis of other origin is one sign more, a measured one outweighs words."""
    facts = facts_of(_completed(request, job))
    signs: tuple[Sign, ...] = signs_of(facts, request.symptom)
    if diagnosis is not None and (cue := BY_SIGN.get(_sign_of(diagnosis))) is not None:
        weight = DIAGNOSED_WEIGHT[diagnosis.source] * (0.5 if diagnosis.ambiguous else 1.0)
        if weight > 0:  # a projection or a trace knows more than arithmetic over a few sizes
            kept = (sign for sign in signs if sign.stated_by in ("words", "numbers"))
            if cue.sign != INPUT:
                cue = replace(cue, says=f"the bottleneck is {CAUSE_PHRASE[diagnosis.cause]}")
            signs = (*kept, Sign(cue, weight, share=_measured_share(diagnosis), stated_by="diagnosis"))
    return Stated(facts, weigh(signs), says_something(request))


def _measured_share(diagnosis: Diagnosis) -> float | None:
    """What of the step a trace shows for the cause; None where nothing was measured, or no share shows it."""
    if diagnosis.source != "measured":
        return None
    return next((room.gain_frac for room in diagnosis.headroom if room.scope == "cause"), None)


def _sign_of(diagnosis: Diagnosis) -> str:
    """The sign that the diagnosed cause is; of a host that mostly loads input, that it does."""
    loading = next((entry.value for entry in diagnosis.evidence if entry.id == "ev-idle-input"), None) or 0.0
    if diagnosis.cause == "host_idle" and diagnosis.shares is not None and 2 * loading > diagnosis.shares.idle:
        return INPUT
    return SIGN_OF.get(diagnosis.cause, "")


def _completed(request: PlanRequest, job: Job | None) -> PlanRequest:
    """The request with what a trace implied where it says nothing itself."""
    if job is None:
        return request
    update: dict[str, object] = {}
    if request.architecture is None and job.architecture is not None:
        update["architecture"] = job.architecture
    if request.cluster is None and job.chip_known:
        update["cluster"] = job.cluster
    if request.current_plan is None and job.current is not None:
        update["current_plan"] = job.current
    return request.model_copy(update=update)


def remedies_for(request: PlanRequest, diagnosis: Diagnosis, job: Job | None) -> tuple[Remedy, ...]:
    """Remedies beside the proposals. Of a projected step about which nothing was stated there are none: the projection
    holds nothing that its own plans do not change.
    """
    if diagnosis.source == "modelled" and not says_something(request):
        return ()
    stated = stated_of(request, diagnosis, job)
    relieves: bool | None = None
    if diagnosis.source == "measured" and not diagnosis.ambiguous:
        relieves = diagnosis.cause not in NOT_LAYOUT
    known = frozenset(entry.id for entry in (*stated.evidence, *diagnosis.evidence))
    found = remedies_of(stated.facts, stated.weighed, layout_relieves=relieves)
    if diagnosis.abstained and not any(sign.stated and not sign.denied for sign in stated.weighed.signs):
        # nothing shows a cause, so nothing but a measurement may go before the proposals
        found = tuple(one.model_copy(update={"first": one.first and one.lever == MEASURE}) for one in found)
    return tuple(
        remedy.model_copy(update={"evidence": tuple(name for name in remedy.evidence if name in known)})
        for remedy in found
    )


def evidence_for(
    request: PlanRequest, diagnosis: Diagnosis, job: Job | None, remedies: Sequence[Remedy]
) -> tuple[Evidence, ...]:
    """The signs that remedies rest on and the diagnosis does not hold itself."""
    held = {entry.id for entry in diagnosis.evidence}
    used = {name for remedy in remedies for name in remedy.evidence}
    return tuple(
        entry for entry in stated_of(request, diagnosis, job).evidence if entry.id in used and entry.id not in held
    )


def asks_for(request: PlanRequest, job: Job | None) -> tuple[str, ...]:
    """What the request lacks; nothing where it states neither figures nor a symptom."""
    return asks_of(facts_of(_completed(request, job))) if says_something(request) else ()


def with_stated(diagnosis: Diagnosis, request: PlanRequest, job: Job) -> Diagnosis:
    """A projected diagnosis is one sign among those that are stated; a measured one stands, and says where what is
    stated points elsewhere.
    """
    if not says_something(request):
        return diagnosis
    stated = stated_of(request, diagnosis if diagnosis.source == "modelled" else None, job)
    weighed = stated.weighed
    if not any(sign.stated and not sign.denied for sign in weighed.signs):
        return diagnosis
    if diagnosis.source == "measured":
        if weighed.bottleneck == diagnosis.bottleneck or weighed.strength < DECISIVE_WEIGHT:
            return diagnosis
        limit = (
            f"what is stated points to {CAUSE_PHRASE[weighed.cause]} (class {weighed.bottleneck}); the trace decides"
        )
        return diagnosis.model_copy(update={"limits": (*diagnosis.limits, limit)})
    limits = ("no trace was given: the shares are of the projected step, the verdict rests on what was stated",)
    found = stated_diagnosis(stated, limits)
    return found.model_copy(
        update={
            "hypothesis": diagnosis.bottleneck,
            "hypothesis_basis": diagnosis.hypothesis_basis,
            "overturned": diagnosis.bottleneck != found.bottleneck,
            "overturned_by": found.summary if diagnosis.bottleneck != found.bottleneck else "",
            "categories": diagnosis.categories,
            "categories_cover_frac": diagnosis.categories_cover_frac,
            "collectives": diagnosis.collectives,
            "headroom": tuple(one for one in diagnosis.headroom if one.scope != "cause"),
            "capacity": diagnosis.capacity,
            "shares": diagnosis.shares,
            "window": diagnosis.window,
            "evidence": (*found.evidence, *diagnosis.evidence),
            "limits": (*found.limits, *diagnosis.limits),
        }
    )


def stated_diagnosis(stated: Stated, limits: Sequence[str]) -> Diagnosis:
    """A diagnosis of nothing but what was stated; scores are shares of the weight of the signs."""
    weighed = stated.weighed
    shown = _shown(weighed)
    doubts = list(limits)
    if not shown:
        doubts.append("no sign of a cause was found in what is stated; the class is what such runs mostly wait for")
    elif weighed.ambiguous:
        doubts.append(
            f"the lead over the next class is {percent(weighed.margin)} of the weight of all signs, below 10 %"
        )
    if stated.facts.from_text:
        named = listed([name.replace("_", " ") for name in stated.facts.from_text])
        doubts.append(f"read from the text, not from fields: {named}")
    return Diagnosis(
        source="stated",
        bottleneck=weighed.bottleneck,
        cause=weighed.cause,
        hypothesis=weighed.bottleneck,
        overturned=False,
        scores=weighed.classes,
        margin=weighed.margin,
        ambiguous=weighed.ambiguous or not shown,
        abstained=not shown,
        summary=_summary(weighed),
        evidence=stated.evidence,
        limits=tuple(doubts),
    )


def _summary(weighed: Weighed) -> str:
    shown = _shown(weighed)
    if not shown:
        return "What is stated shows no cause: no bottleneck can be named."
    speaks = next((sign for sign in shown if sign.cue.cause == weighed.cause), shown[0])
    sentences = [
        f"By what is stated the bottleneck is {CAUSE_PHRASE[weighed.cause]} (class {weighed.bottleneck}): "
        f"{speaks.cue.says}{_said(speaks)}.",
        f"The signs speak {percent(weighed.classes['compute'])} for compute, {percent(weighed.classes['memory'])} for "
        f"memory and {percent(weighed.classes['communication'])} for communication.",
    ]
    if weighed.ambiguous:
        sentences.append("That is too close to be sure; measure before changing anything.")
    return " ".join(sentences)


def _shown(weighed: Weighed) -> list[Sign]:
    return [sign for sign in weighed.signs if sign.stated and not sign.denied]


def _said(sign: Sign) -> str:
    return f" ('{quoted(sign.sentence, 160)}')" if sign.sentence else ""
