"""Past optimisations beside a job: what is asked of the history, and what a proposal may say of it.

History never adds a plan and never opens a gate. A layout that ran elsewhere is told where a proposal is that layout.
"""

from collections.abc import Mapping, Sequence

from agents.findings import Diagnosis, Evidence, PlanResult, Proposal
from agents.planning.job import Job
from agents.planning.state import Knowledge
from knowledge_base.history_parts import PastArchitecture, Task
from knowledge_base.past import PastMatch, PastQuestion
from projector.specs.architecture import ModelArchitecture
from projector.specs.fine_tuning import Adapter
from projector.specs.plan import Phase

SHOWN = 5
WIDE_DTYPES = ("fp32", "bf16", "fp16")


def past_question(job: Job, diagnosis: Diagnosis, words: str = "") -> PastQuestion:
    """The job as a question to the history; what is only assumed of it is left open. words: the symptom."""
    workload = job.workload
    assumed = {assumption.field.removeprefix("workload.") for assumption in job.assumptions}
    sizes = ("seq_len", "global_batch", "input_len", "output_len", "concurrency")
    known = job.current_source in ("stated", "inferred")
    sure = diagnosis.cause != "unknown"
    return PastQuestion(
        phase=job.phase,
        task=task_of(job.phase, workload.adapter),
        model=job.architecture.name if job.architecture is not None else workload.model,
        architecture=numbers_of(job.architecture) if job.architecture is not None else PastArchitecture(),
        chip=job.cluster.chip if job.chip_known else None,
        chips=job.cluster.chips,
        framework=job.framework or workload.engine,
        precision=workload.precision,
        bottleneck=diagnosis.bottleneck if sure else None,
        cause=diagnosis.cause if sure else None,
        baseline=job.current if known else None,
        words=words,
        **{name: getattr(workload, name) for name in sizes if name not in assumed},
    )


def past_matches(job: Job, diagnosis: Diagnosis, knowledge: Knowledge, words: str = "") -> tuple[PastMatch, ...]:
    """The past optimisations nearest to the job; none where nothing can be planned."""
    if job.not_plannable is not None:
        return ()
    return knowledge.past(past_question(job, diagnosis, words), k=SHOWN)


def with_history(result: PlanResult, matches: Sequence[PastMatch]) -> PlanResult:
    """The answer with its past optimisations; one whose layout is proposed is evidence of that proposal."""
    evidence: dict[str, Evidence] = {}
    proposals = []
    for proposal in result.proposals:
        ran = [(number, match) for number, match in enumerate(matches, start=1) if ran_as(match, proposal)]
        evidence |= {match.case.id: _evidence(number, match) for number, match in ran}
        proposals.append(_cited(proposal, [match for _, match in ran], evidence))
    update = {
        "history": tuple(matches),
        "proposals": tuple(proposals),
        "evidence": (*result.evidence, *evidence.values()),
    }
    return result.model_copy(update=update)


def numbers_of(model: ModelArchitecture) -> PastArchitecture:
    """The numbers of a model that history compares."""
    return PastArchitecture(
        parameters=float(model.parameters),
        active_parameters=float(model.active_parameters),
        layers=model.layers,
        hidden_size=model.hidden_size,
        heads=model.heads,
        kv_heads=model.kv_heads,
        experts=model.experts,
    )


def ran_as(match: PastMatch, proposal: Proposal) -> bool:
    """Whether a published or improving layout of the same model, machine and phase is the proposed one."""
    adopted = match.case.effect.outcome in (None, "improved")
    stated = bool(match.case.layout.model_dump(exclude_none=True))
    return match.match == "exact" and adopted and stated and match.case.layout.agrees_with(proposal.plan)


def _cited(proposal: Proposal, ran: Sequence[PastMatch], evidence: Mapping[str, Evidence]) -> Proposal:
    if not ran:
        return proposal
    said = f"Published: this layout ran on the same model and machine; {_figure(ran[0])}."
    update = {
        "rationale": f"{proposal.rationale} {said}".strip(),
        "evidence": (*proposal.evidence, *(evidence[match.case.id].id for match in ran)),
    }
    return proposal.model_copy(update=update)


def _figure(match: PastMatch) -> str:
    """The figure, its source, and what its job had otherwise."""
    case = match.case
    differs = f"; it had {', '.join(match.differs)}" if match.differs else ""
    stale = f"; {match.stale}" if match.stale else ""
    return f"{case.effect.text} ({case.source.title}{differs}{stale})"


def _evidence(number: int, match: PastMatch) -> Evidence:
    effect = match.case.effect
    return Evidence(
        id=f"ev-past-{number}",
        claim=f"{match.case.text}; {match.match}{_but(match)}.",
        value=effect.after if effect.outcome is None else effect.ratio,
        unit=effect.unit if effect.outcome is None else "ratio",
        source="published",
        ref=f"history {match.case.id}",
    )


def _but(match: PastMatch) -> str:
    return f", with {'; '.join(match.differs)}" if match.differs else ""


def task_of(phase: Phase, adapter: Adapter | None) -> Task:
    """What a job does with its weights, as far as a request tells: training all of them is told as pre-training."""
    if phase == "serving":
        return "inference"
    if adapter is None:
        return "pretrain"
    return "lora" if adapter.frozen_dtype in WIDE_DTYPES else "qlora"
