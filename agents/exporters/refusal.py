"""The configuration of a plan that a framework cannot launch at all."""

from agents.exporters.account import Account
from agents.exporters.exporter import Exporter, Job, LaunchConfig


def cannot_launch(exporter: Exporter, job: Job, reason: str) -> LaunchConfig:
    """No command; every plan field refused for the one reason."""
    account = Account(job.plan)
    account.refuse_rest(reason, instead="nothing is launched")
    return LaunchConfig(
        framework=exporter.framework,
        title=exporter.title,
        version=exporter.version,
        devices=job.plan.devices,
        **dict(account.close()),
    )
