"""State of the planning graph: plain JSON, one key a hand-over, so that any checkpointer can store and resume it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict

from agents.advisors.protocol import Advisor
from agents.practice.model import PracticeModel
from projector.specs.bottleneck import Cause
from projector.specs.plan import Phase
from projector.specs.record import Record

if TYPE_CHECKING:
    from knowledge_base.past import PastMatch, PastQuestion
    from knowledge_base.retrieve import RetrievedNote

Json = dict[str, Any]
HardwareKind = Literal["gpu", "tpu"]
NodeName = Literal["analyzer", "proposal", "scoring"]


class PlanEvent(Record):
    """Progress of a run, for whoever watches."""

    node: NodeName
    status: Literal["started", "finished"]
    message: str


class PlanState(TypedDict, total=False):
    """request and summary go in; job, diagnosis, reference, proposed and result are added node by node."""

    request: Json
    summary: Json | None
    job: Json
    diagnosis: Json
    reference: Json | None
    proposed: Json
    result: Json


class Knowledge(Protocol):
    """What planning asks of the knowledge base."""

    def search(
        self,
        query: str,
        *,
        phase: Phase,
        causes: Sequence[Cause] = (),
        levers: Sequence[str] = (),
        hardware_kind: HardwareKind | None = None,
        k: int = 3,
    ) -> "tuple[RetrievedNote, ...]":
        """The k notes nearest to the query among those that bear on the causes or levers."""
        ...

    def past(self, question: "PastQuestion", *, k: int = 5) -> "tuple[PastMatch, ...]":
        """The k past optimisations nearest to a job, exact matches first."""
        ...


class NoKnowledge:
    """A knowledge base without notes and history: plans are made all the same, without citations."""

    def search(
        self,
        query: str,
        *,
        phase: Phase,
        causes: Sequence[Cause] = (),
        levers: Sequence[str] = (),
        hardware_kind: HardwareKind | None = None,
        k: int = 3,
    ) -> "tuple[RetrievedNote, ...]":
        """Nothing."""
        del query, phase, causes, levers, hardware_kind, k
        return ()

    def past(self, question: "PastQuestion", *, k: int = 5) -> "tuple[PastMatch, ...]":
        """Nothing."""
        del question, k
        return ()


@dataclass(frozen=True)
class PlanContext:
    """What nodes need besides the state; never stored.

    record: takes (kind, JSON) of what an audit log keeps besides questions to models and to the knowledge base.
    redact: names are hidden from a language model, whatever the request says.
    practice: how likely layouts are to be adopted, None: as it ships.
    """

    knowledge: Knowledge
    advisor: Advisor
    on_event: Callable[[PlanEvent], None] | None = None
    record: Callable[[str, Json], None] | None = None
    redact: bool = False
    practice: PracticeModel | None = None

    def tell(self, node: NodeName, status: Literal["started", "finished"], message: str) -> None:
        """Report progress to whoever listens."""
        if self.on_event is not None:
            self.on_event(PlanEvent(node=node, status=status, message=message))

    def note(self, kind: str, data: Json) -> None:
        """Hand something to the audit log."""
        if self.record is not None:
            self.record(kind, data)
