"""One case: the request it makes, the answer through the service's path, and what of the answer was right.

Definitions, fixed before anything was measured:
  class      the diagnosed class is the case's ('mixed' takes any).
  advice     the first three items: remedies that come first, then proposals in order, then the other remedies. An item
             is the set of levers it changes.
  change     outcome improved or unknown: one of the levers of the case is among the advice. Outcome worse or neutral:
             none of them is advised as a gain (a remedy with an expected gain above 3 %, or a proposal with the degree
             that did not help).
  predicted  what is thought of the case's levers for this job, whether advised or not: the projector's ratio of the two
             layouts where both can be projected, else 1 + the expected gain of the lever that weighs most.
  direction  predicted and measured ratio are both a gain (above 1.03) or both none.
  size       the ratio of the two is within a factor 1.5, or the measured gain lies inside the bound that was stated.
  strict     the logarithms of the two ratios are within a factor 1.5.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from agents.advisors.rules import RulesAdvisor
from agents.evaluation.case_projection import projected_change
from agents.evaluation.case_request import request_of
from agents.evaluation.case_rows import Case
from agents.findings import PlanResult, Proposal
from agents.planning.graph import run_plan
from agents.planning.state import NoKnowledge
from agents.planning.stated import Stated, stated_of
from agents.remedies.advise import lever_view
from agents.request import PlanRequest
from projector.errors import InvalidDescription
from projector.specs.bottleneck import Bottleneck, Cause
from projector.specs.record import Record

ITEMS = 3
GAIN = 1.03  # ratios up to it are no gain: the noise of such reports
FACTOR = 1.5

# levers of a plan's fields; the vocabulary of the cases
LEVERS_OF_FIELD: dict[str, tuple[str, ...]] = {
    "tp": ("tp",),
    "pp": ("pp",),
    "vp": ("pp",),
    "schedule": ("pp",),
    "cp": ("cp",),
    "ep": ("ep",),
    "fsdp": ("zero_stage", "hsdp"),
    "zero_stage": ("zero_stage",),
    "dp": ("dp", "replicas"),
    "recompute": ("recompute",),
    "recompute_modules": ("recompute",),
    "recompute_layers": ("recompute",),
    "micro_batch": ("batch", "microbatches"),
    "grad_accum": ("grad_accum", "microbatches"),
    "attention_dp": ("attention_dp",),
    "prefill_replicas": ("pd_disagg",),
    "chunked_prefill_tokens": ("chunked_prefill",),
    "max_num_seqs": ("batch",),
    "max_batched_tokens": ("chunked_prefill",),
    "kv_cache_dtype": ("kv", "precision"),
    "compute_dtype": ("precision",),
    "weight_dtype": ("precision",),
    "optimizer": ("optimizer",),
    "offload_optimizer": ("offload",),
    "offload_activations": ("offload",),
    "overlap_ep": ("overlap",),
    "overlap_grad_reduce": ("overlap",),
    "overlap_param_gather": ("overlap",),
    "expert_dispatch": ("ep_dispatch",),
    "speculation": ("spec_decode",),
    "cuda_graphs": ("cuda_graph",),
}


class CaseScore(Record):
    """What was said of a case and what of it was right. None: the case does not say, or nothing was predicted."""

    id: str
    source: str
    cls: str
    levers: tuple[str, ...]
    outcome: str
    ratio: float | None
    diagnosed: Bottleneck
    cause: Cause
    diagnosis_source: str
    ambiguous: bool
    advice: tuple[str, ...]
    planned: bool
    assumed: tuple[str, ...] = ()
    predicted: float | None = None
    bound: float | None = None
    prediction_basis: str = ""
    class_hit: bool
    change_hit: bool
    as_good: bool
    naive: bool | None = None
    direction_hit: bool | None = None
    size_hit: bool | None = None
    strict_hit: bool | None = None
    asked: float | None = None


@dataclass(frozen=True)
class Predicted:
    """A ratio as improvement_ratio counts it, the bound that was stated with it, and what it rests on."""

    ratio: float
    bound: float | None
    basis: str


def score_case(case: Case) -> CaseScore:
    """The scores of one case."""
    made = request_of(case.given)
    result = _answered(made.request)
    items = advice_of(result)
    predicted = _predicted(case, made.request, result)
    gain = case.truth.outcome in ("improved", "unknown")
    advised = _advised(case, items, result)
    change_hit = bool(set().union(*items) & set(case.truth.levers)) if gain else not advised
    ratio = case.truth.ratio
    return CaseScore(
        id=case.id,
        source=case.source,
        cls=case.truth.cls,
        levers=case.truth.levers,
        outcome=case.truth.outcome,
        ratio=ratio,
        diagnosed=result.diagnosis.bottleneck,
        cause=result.diagnosis.cause,
        diagnosis_source=result.diagnosis.source,
        ambiguous=result.diagnosis.ambiguous,
        advice=tuple("+".join(sorted(item)) or "keep" for item in items),
        planned=bool(result.proposals),
        assumed=made.assumed,
        predicted=predicted.ratio if predicted else None,
        bound=predicted.bound if predicted else None,
        prediction_basis=predicted.basis if predicted else "",
        class_hit=case.truth.cls in (result.diagnosis.bottleneck, "mixed"),
        change_hit=change_hit,
        as_good=change_hit or _as_good(case, made.request, result),
        naive=None if gain else advised,
        asked=_asked(case, result),
        **_errors(predicted, ratio),
    )


def _answered(request: PlanRequest) -> PlanResult:
    """Through the service's path; a request whose plan is refused is asked without it, then without the cluster."""
    for update in ({}, {"current_plan": None}, {"current_plan": None, "cluster": None}):
        try:
            asked = PlanRequest.model_validate(request.model_copy(update=update).model_dump(exclude_none=True))
            return run_plan(asked, None, knowledge=NoKnowledge(), advisor=RulesAdvisor())
        except InvalidDescription as error:
            refused = error
    raise refused


def advice_of(result: PlanResult) -> tuple[frozenset[str], ...]:
    """Levers of the first three items of advice."""
    first = [frozenset({remedy.lever}) for remedy in result.remedies if remedy.first]
    later = [frozenset({remedy.lever}) for remedy in result.remedies if not remedy.first]
    plans = [levers_of(proposal) for proposal in result.proposals]
    return tuple([*first, *plans, *later][:ITEMS])


def levers_of(proposal: Proposal) -> frozenset[str]:
    """Levers that a proposal changes."""
    return frozenset(lever for change in proposal.changes for lever in LEVERS_OF_FIELD.get(change.field, ()))


def _advised(case: Case, items: Sequence[frozenset[str]], result: PlanResult) -> bool:
    """Whether the change of a case that did not help is among the advice as a gain."""
    shown = set().union(*items)
    wrong = set(case.truth.levers) - {"diagnosis"}
    for remedy in result.remedies:
        gain = remedy.gain_expected_frac
        if remedy.lever in wrong & shown and not remedy.layout and gain is not None and 1 + gain > GAIN:
            return True
    plans = result.proposals[: max(0, ITEMS - sum(remedy.first for remedy in result.remedies))]
    return any(_same_degree(plan, case, axis) for plan in plans for axis in ("tp", "pp", "cp", "ep") if axis in wrong)


def _same_degree(proposal: Proposal, case: Case, axis: str) -> bool:
    value = case.truth.after.config.get(axis)
    return isinstance(value, int | float) and value > 1 and getattr(proposal.plan, axis) == value


def _predicted(case: Case, request: PlanRequest, result: PlanResult) -> Predicted | None:
    """The projector's view of the change where both layouts can be projected, else the table's of its levers."""
    projected = projected_change(case.given, case.truth.after)
    if projected is not None:
        return Predicted(projected, None, "projected: both layouts")
    stated = _weighed(request, result)
    views = [view for lever in case.truth.levers if (view := lever_view(lever, stated.facts, stated.weighed))]
    views = [view for view in views if view.gain_expected_frac is not None]
    if not views:
        return None
    weights = stated.weighed.levers
    view = max(views, key=lambda one: weights.get(one.lever, 0.0))
    bound = 1 + view.gain_bound_frac if view.gain_bound_frac is not None else None
    return Predicted(1 + (view.gain_expected_frac or 0.0), bound, f"{view.lever}, {view.direction}: {view.gain_basis}")


def _weighed(request: PlanRequest, result: PlanResult) -> Stated:
    return stated_of(request, result.diagnosis if result.diagnosis.source == "modelled" else None)


def _as_good(case: Case, request: PlanRequest, result: PlanResult) -> bool:
    """Whether the projector shows a proposal at least as good as the change, where it can project the change."""
    if case.truth.outcome != "improved" or not result.proposals or request.current_plan is None:
        return False
    gains = [one.expected.objective_frac for one in result.proposals if one.expected.objective_frac is not None]
    change = projected_change(case.given, case.truth.after)
    return change is not None and bool(gains) and 1 + max(gains) >= change / 1.02


def _errors(predicted: Predicted | None, ratio: float | None) -> dict[str, bool]:
    if ratio is None or ratio <= 0:
        return {}
    if predicted is None or predicted.ratio <= 0:
        return {"direction_hit": False, "size_hit": False, "strict_hit": False}
    direction = (predicted.ratio > GAIN) == (ratio > GAIN)
    apart = abs(math.log(predicted.ratio / ratio)) <= math.log(FACTOR)
    inside = predicted.bound is not None and 1 <= ratio <= predicted.bound
    said, seen = math.log(predicted.ratio), math.log(ratio)
    strict = said * seen > 0 and 1 / FACTOR <= said / seen <= FACTOR
    noise = abs(seen) <= math.log(GAIN) and abs(said) <= math.log(GAIN)
    return {"direction_hit": direction, "size_hit": direction and (apart or inside), "strict_hit": strict or noise}


_SMALL_WORDS = frozenset(
    [
        "the",
        "of",
        "and",
        "or",
        "per",
        "a",
        "an",
        "to",
        "in",
        "vs",
        "at",
        "with",
        "is",
        "on",
        "for",
        "by",
        "not",
        "used",
        "use",
        "time",
        "size",
        "share",
    ]
)


def _asked(case: Case, result: PlanResult) -> float | None:
    """Share of the fields a request has to carry that the answer asks for or names; by words that both have."""
    if not case.truth.request_fields:
        return None
    said = " ".join([*result.asks, *result.diagnosis.limits, *(remedy.condition for remedy in result.remedies)])
    given = " ".join(str(key) for key in (*case.given.before.config, *case.given.before.figures))
    words = _words(f"{said} {given}")
    fields = [_words(field) for field in case.truth.request_fields]
    return sum(bool(field & words) for field in fields) / len(fields)


def _words(text: str) -> set[str]:
    found = re.findall(r"[a-z0-9]+", text.lower().replace("_", " "))
    return {word.removesuffix("s") for word in found if word not in _SMALL_WORDS and len(word) > 1}
