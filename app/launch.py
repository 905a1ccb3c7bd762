"""Launch configurations: every proposal of a plan, written for every framework there is an exporter for."""

from agents.exporters import exporters
from agents.exporters.exporter import Job, LaunchConfig
from agents.exporters.render import shell, yaml_file
from agents.findings import PlanResult, Proposal
from agents.planning.resolve import resolve
from agents.request import PlanRequest
from app.schemas_launch import LaunchText, ProposalLaunch
from traces.summary_types import TraceSummary


def launch_of(request: PlanRequest, summary: TraceSummary | None, result: PlanResult) -> tuple[ProposalLaunch, ...]:
    """One entry a proposal, in their order; a framework that cannot run a plan answers with its refusal."""
    if not result.proposals:
        return ()
    job = resolve(request, summary)
    known = {
        "workload": job.workload,
        "architecture": job.architecture,
        "cluster": job.cluster,
        "hardware": job.hardware,
    }
    return tuple(_launch(proposal, Job(plan=proposal.plan, **known)) for proposal in result.proposals)


def _launch(proposal: Proposal, job: Job) -> ProposalLaunch:
    return ProposalLaunch(rank=proposal.rank, configs=tuple(_text(each.export(job)) for each in exporters()))


def _text(config: LaunchConfig) -> LaunchText:
    return LaunchText(
        config=config,
        launchable=bool(config.command),
        is_the_plan=config.is_the_plan,
        shell=shell(config),
        file_text=yaml_file(config) if config.config_file is not None else None,
    )
