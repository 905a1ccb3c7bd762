"""What an exporter is: a plan as one framework's launch configuration, and back.

No plan field is dropped silently. Each one is exported (arguments say it), implied (the framework does it unasked, and
a note says why) or refused by name, with the reason and with what the configuration does instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import Field

from projector.errors import InvalidDescription
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan, Phase
from projector.specs.record import Record
from projector.specs.workload import WorkloadSpec


class Setting(Record):
    """One argument under the framework's own name. value None: a switch that stands alone; a tuple: several words."""

    name: str
    value: bool | int | float | str | tuple[str, ...] | None = None


class Statement(Record):
    """A plan field the configuration holds."""

    field: str
    value: str
    how: Literal["exported", "implied"]
    by: tuple[str, ...] = Field((), description="names of the arguments that say it")
    note: str = ""


class Refusal(Record):
    """A plan field the framework cannot say. inert: nothing runs differently for it, the field has no effect here."""

    field: str
    value: str
    reason: str
    instead: str = Field(description="what the configuration does in its place")
    inert: bool = False


class Placeholder(Record):
    """A token of the command that the user has to replace; left as it is, the framework refuses to start."""

    token: str
    meaning: str


class Variable(Record):
    """An environment variable to set; value None: it must not be set."""

    name: str
    value: str | None


class ConfigFile(Record):
    """The same settings as a YAML file the framework reads, and the command that names the file."""

    name: str
    settings: tuple[Setting, ...]
    command: tuple[str, ...]


class LaunchConfig(Record):
    """How one framework is started with a plan. An empty command: it cannot be, `refused` says why."""

    framework: str
    title: str
    version: str = Field(description="release whose argument definitions the names and values were checked against")
    devices: int = Field(ge=1, description="devices the command occupies, over all copies")
    copies: int = Field(1, ge=1, description="how many times the command is started, side by side")
    command: tuple[str, ...] = Field((), description="argument vector of one process launcher, unquoted")
    environment: tuple[Variable, ...] = ()
    settings: tuple[Setting, ...] = Field((), description="the framework's arguments inside the command")
    config_file: ConfigFile | None = None
    stated: tuple[Statement, ...] = ()
    refused: tuple[Refusal, ...] = ()
    placeholders: tuple[Placeholder, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_the_plan(self) -> bool:
        """Whether what is started is the plan: every refusal is of a field without effect."""
        return bool(self.command) and all(refusal.inert for refusal in self.refused)


class ParsedLaunch(Record):
    """What arguments say about a plan. `ignored`: arguments without a word for the plan, by name."""

    plan: ParallelismPlan
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True)
class Job:
    """A plan and what is known of the job around it; None is unknown and is said in the notes.

    InvalidDescription where the parts contradict each other.
    """

    plan: ParallelismPlan
    workload: WorkloadSpec | None = None
    architecture: ModelArchitecture | None = None
    cluster: ClusterSpec | None = None
    hardware: HardwareProfile | None = None

    def __post_init__(self) -> None:
        if self.workload is not None and self.workload.phase != self.plan.phase:
            raise InvalidDescription(f"a {self.plan.phase} plan for a {self.workload.phase} workload")
        if self.cluster is not None and self.hardware is not None:
            devices = self.cluster.chips * self.hardware.devices_per_chip
            if devices < self.plan.devices:
                raise InvalidDescription(
                    f"the plan occupies {self.plan.devices} devices, the cluster has {devices}",
                    hint="dp * cp * tp * pp may not exceed chips * devices_per_chip",
                )

    @property
    def moe(self) -> bool | None:
        """Whether the model has experts; None where the model is unknown and the plan does not tell."""
        if self.architecture is not None:
            return self.architecture.is_moe
        return True if self.plan.ep * self.plan.etp > 1 else None

    @property
    def trains_adapters(self) -> bool:
        """Whether the workload trains low-rank adapters on frozen weights."""
        return self.workload is not None and self.workload.adapter is not None

    @property
    def documents_note(self) -> str | None:
        """What the data have to be where rows hold documents of their own length; None where a row is one document."""
        lengths = None if self.workload is None else self.workload.lengths
        if lengths is None:
            return None
        return f"The plan counts on {lengths.text}: the data and their attention mask are yours to set up so."

    @property
    def devices_per_node(self) -> int | None:
        """Devices of one host, None where the chip is unknown."""
        if self.hardware is None:
            return None
        return self.hardware.chips_per_node * self.hardware.devices_per_chip


def spread(devices: int, per_group: int) -> tuple[int, int]:
    """(groups, devices in each): the fewest equal groups of at most `per_group` devices."""
    groups = -(-devices // per_group)
    while devices % groups:
        groups += 1
    return groups, devices // groups


@dataclass(frozen=True)
class Known:
    """What is known beside an argument vector; some arguments mean one thing with experts and another without."""

    devices: int | None = None
    architecture: ModelArchitecture | None = None
    hardware: HardwareProfile | None = None

    @property
    def moe(self) -> bool:
        """Whether the model is known to have experts."""
        return self.architecture is not None and self.architecture.is_moe


UNKNOWN = Known()


class Exporter(Protocol):
    """One framework."""

    @property
    def framework(self) -> str:
        """Name by which the exporter is asked for."""
        ...

    @property
    def title(self) -> str:
        """The framework's name as its authors write it."""
        ...

    @property
    def version(self) -> str:
        """Release whose argument definitions the flags were checked against."""
        ...

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Phases the framework can run."""
        ...

    def export(self, job: Job) -> LaunchConfig:
        """The plan as a launch configuration; the same job gives the same configuration."""
        ...

    def parse(self, arguments: Sequence[str], known: Known = UNKNOWN) -> ParsedLaunch:
        """The plan that an argument vector describes; plan fields that no argument decides stand at their default.

        InvalidDescription for values the framework itself would refuse, for arguments that contradict each other, and
        where the devices of the job are needed and neither the arguments nor `known` tell them.
        """
        ...
