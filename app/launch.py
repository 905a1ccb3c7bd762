"""Launch configurations: every proposal of a plan, written for every framework there is an exporter for."""

from agents.exporters import exporters
from agents.exporters.exporter import Exporter, Job, LaunchConfig
from agents.exporters.refusal import cannot_launch
from agents.exporters.render import shell, yaml_file
from agents.findings import PlanResult
from agents.planning.resolve import resolve
from agents.request import PlanRequest
from app.schemas_launch import LaunchText, ProposalLaunch
from projector.errors import InvalidDescription
from traces.summary_types import TraceSummary


def launch_of(request: PlanRequest, summary: TraceSummary | None, result: PlanResult) -> tuple[ProposalLaunch, ...]:
    """One entry a proposal, in their order; a framework that cannot run a plan answers with its refusal."""
    if not result.proposals:
        return ()
    resolved = resolve(request, summary)
    jobs = (
        Job(proposal.plan, resolved.workload, resolved.architecture, resolved.cluster, resolved.hardware)
        for proposal in result.proposals
    )
    return tuple(
        ProposalLaunch(rank=proposal.rank, configs=_configs(job))
        for proposal, job in zip(result.proposals, jobs, strict=True)
    )


def _configs(job: Job) -> tuple[LaunchText, ...]:
    """One a framework: those that launch the plan as it stands first, those that cannot launch it last."""
    texts = [_text(_export(each, job)) for each in exporters()]
    return tuple(sorted(texts, key=lambda text: (not text.launchable, not text.is_the_plan)))


def _export(exporter: Exporter, job: Job) -> LaunchConfig:
    """The configuration; what the exporter finds contradictory becomes its refusal, and costs nobody the answer."""
    try:
        return exporter.export(job)
    except InvalidDescription as error:
        return cannot_launch(exporter, job, error.message)


def _text(config: LaunchConfig) -> LaunchText:
    return LaunchText(
        config=config,
        launchable=bool(config.command),
        is_the_plan=config.is_the_plan,
        shell=shell(config),
        file_text=yaml_file(config) if config.config_file is not None else None,
    )
