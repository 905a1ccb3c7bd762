"""The change of a case as the projector sees it: both layouts of one job, where the report states enough of them."""

from agents.evaluation.case_request import request_of
from agents.evaluation.case_rows import Arm, CaseInput
from agents.planning.resolve import resolve
from agents.planning.scores import score_one
from projector.errors import InvalidDescription


def projected_change(given: CaseInput, after: Arm) -> float | None:
    """Objective after over before, above 1 where the change is better; None where a layout or size is not stated.

    Scoring only: no request is made of the arm after.
    """
    merged = Arm(config=given.before.config | after.config)
    first, second = _good(given), _good(given.model_copy(update={"before": merged}))
    if first is None or second is None or first[0] == second[0]:
        return None
    return second[1] / first[1] if first[1] > 0 else None


def _good(given: CaseInput) -> tuple[str, float] | None:
    request = request_of(given).request
    if request.current_plan is None:
        return None
    try:
        job = resolve(request, None)
    except InvalidDescription:
        return None
    if job.current is None or job.mode != "absolute":
        return None
    scores = score_one(job.current, job)
    if scores.projections[0].fit == "too_large":
        return None
    return f"{job.current.model_dump_json()} {job.workload.model_dump_json()}", float(scores.good[0])
