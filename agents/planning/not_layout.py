"""Where no layout can relieve the cause: said first, in the summary and by the first proposal."""

from agents.causes import CAUSE_PHRASE, NOT_LAYOUT
from agents.findings import Diagnosis, PlanResult
from agents.remedies.remedy import Remedy

SHORT = 60  # characters: a reason that only names the cause


def said_first(result: PlanResult, *, relieved: bool) -> PlanResult:
    """The answer with that sentence ahead of the diagnosis' summary and of the first rationale; as it is otherwise.

    relieved: the first proposal relieves the cause by a lever beside the layout; its own rationale then says so.
    """
    first = next((remedy for remedy in result.remedies if remedy.first), None)
    sentence = _sentence(result.diagnosis, first)
    if not sentence:
        return result
    diagnosis = result.diagnosis.model_copy(update={"summary": f"{sentence} {result.diagnosis.summary}"})
    proposals = result.proposals
    if proposals and not relieved:
        leading = proposals[0].model_copy(update={"rationale": f"{sentence} {proposals[0].rationale}"})
        proposals = (leading, *proposals[1:])
    return result.model_copy(update={"diagnosis": diagnosis, "proposals": proposals})


def _sentence(diagnosis: Diagnosis, first: Remedy | None) -> str:
    if first is not None:
        title = first.title.rstrip(".")
        # the cause alone is what the summary goes on with
        why = "" if CAUSE_PHRASE[diagnosis.cause] in first.why and len(first.why) < SHORT else first.why
        return f"Before any change of layout: {title[:1].lower()}{title[1:]}. {why}".strip()
    if diagnosis.cause not in NOT_LAYOUT or diagnosis.cause == "unknown":
        return ""
    return f"No change of layout removes {CAUSE_PHRASE[diagnosis.cause]}."
