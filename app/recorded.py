"""One run of the planning graph with everything it asks and is told in the audit log."""

from agents.advisors.llm import LlmAdvisor
from agents.advisors.protocol import Advisor
from agents.advisors.recording import RecordingKnowledge, RecordingModel
from agents.findings import PlanResult
from agents.planning.state import Knowledge
from agents.request import PlanRequest
from app.audit import AuditRun
from app.problems import problem_of
from traces.summary_types import TraceSummary


def recorded_plan(
    run: AuditRun,
    request: PlanRequest,
    summary: TraceSummary | None,
    *,
    knowledge: Knowledge,
    advisor: Advisor,
    llm_model: str | None,
    redact: bool,
) -> PlanResult:
    """The plan, recorded. llm_model: name of the model behind the advisor, None without one. Errors as `run_plan`."""
    from agents.planning.graph import run_plan

    # the very text, and not what it is read as: a summary is written the same way again
    text = summary.model_dump_json(round_trip=True) if summary is not None else None
    start = {
        "request": request.model_dump(mode="json", exclude_unset=True),
        "summary_sha256": run.log.keep_summary(text) if text is not None else None,
        "llm_model": llm_model,
        "redact": redact,
    }
    run.record("request", start)
    recording = advisor
    if isinstance(advisor, LlmAdvisor):
        recording = advisor.through(lambda model: RecordingModel(model, run.record))
    try:
        return run_plan(
            request,
            summary,
            knowledge=RecordingKnowledge(knowledge, run.record),
            advisor=recording,
            record=run.record,
            redact=redact,
        )
    except Exception as error:
        run.record("failed", {"code": problem_of(error).code})
        raise
