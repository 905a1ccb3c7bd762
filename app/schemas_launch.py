"""How proposals are launched, as records."""

from uuid import UUID

from pydantic import Field

from agents.exporters.exporter import LaunchConfig
from projector.specs.record import Record


class LaunchText(Record):
    """One framework's configuration of a plan, and the same as text to copy."""

    config: LaunchConfig
    launchable: bool = Field(description="false: the framework cannot run this plan, `config.refused` says why")
    is_the_plan: bool = Field(description="false: what is started differs from the plan as `config.refused` says")
    shell: str = Field(description="for a POSIX shell, every token quoted; comments say what it is not")
    file_text: str | None = Field(description="YAML of `config.config_file`; None where the framework reads none")


class ProposalLaunch(Record):
    """One proposal in every framework there is an exporter for."""

    rank: int = Field(ge=1, description="rank of the proposal")
    configs: tuple[LaunchText, ...]


class LaunchAnswer(Record):
    """Answer of GET /v1/plans/{id}/launch."""

    id: UUID
    proposals: tuple[ProposalLaunch, ...]
