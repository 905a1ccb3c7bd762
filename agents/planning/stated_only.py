"""The answer where nothing can be planned, but something is said of a run: diagnosis, remedies, questions."""

from agents.findings import PlanResult, Provenance
from agents.planning.stated import asks_for, lacks_plan, remedies_for, says_something, stated_diagnosis, stated_of
from agents.request import PlanRequest
from agents.wording import listed
from traces.summary_types import TraceSummary


def is_stated_only(request: PlanRequest, summary: TraceSummary | None) -> bool:
    """Whether there is no trace, a model or a cluster is missing, and figures or a symptom are stated."""
    return summary is None and bool(lacks_plan(request)) and says_something(request)


def stated_result(request: PlanRequest, versions: dict[str, str]) -> PlanResult:
    """Diagnosis and remedies of what is stated. UnknownName for a model, chip or objective in no catalogue."""
    missing = listed(lacks_plan(request))
    diagnosis = stated_diagnosis(stated_of(request), ("no trace was given and no step projected: nothing is measured",))
    return PlanResult(
        diagnosis=diagnosis,
        current=None,
        remedies=remedies_for(request, diagnosis, None),
        asks=asks_for(request, None),
        proposals=(),
        not_plannable=f"no layout is proposed: the request lacks {missing}",
        evidence=diagnosis.evidence,
        assumptions=(),
        candidates_considered=0,
        candidates_feasible=0,
        provenance=Provenance(advisor="rules", versions=versions),
    )
