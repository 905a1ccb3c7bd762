"""Parts of the service that an evaluation can leave out or blind: what answers, and what is hidden from it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from agents.advisors.protocol import AdvisorChoice, AdvisorInput
from agents.advisors.rules import RulesAdvisor
from agents.planning.analyzer import undiagnosed
from agents.planning.state import Knowledge, NoKnowledge
from knowledge_base.past import PastMatch, PastQuestion

Part = Literal["knowledge", "history", "practice", "projector", "diagnosis", "diversity", "llm"]
PARTS: tuple[Part, ...] = ("knowledge", "history", "practice", "projector", "diagnosis", "diversity", "llm")
Past = Callable[[PastQuestion], tuple[PastMatch, ...]]


@dataclass(frozen=True)
class Setup:
    """ablated: parts that are left out."""

    ablated: frozenset[Part] = frozenset()

    def has(self, part: Part) -> bool:
        """Whether a part takes part."""
        return part not in self.ablated


def hidden(past: Past, question: PastQuestion, group: str) -> tuple[PastMatch, ...]:
    """What history tells with a (family | chip) group out of sight."""
    return past(question.model_copy(update={"hide_groups": frozenset({group})}))


class BlindKnowledge:
    """A knowledge base that does not show a group's past, and lacks the parts that are left out."""

    def __init__(self, base: Knowledge, past: Past, group: str, setup: Setup) -> None:
        self._base: Knowledge = base if setup.has("knowledge") else NoKnowledge()
        self._past, self._group, self._has_past = past, group, setup.has("history")

    def search(self, query: str, **narrowed: Any) -> Any:
        """As the base."""
        return self._base.search(query, **narrowed)

    def past(self, question: PastQuestion, *, k: int = 5) -> tuple[PastMatch, ...]:
        """What history tells without the group."""
        return hidden(self._past, question, self._group)[:k] if self._has_past else ()


class PartialAdvisor:
    """The rules advisor, told less."""

    name: Literal["rules", "llm"] = "rules"

    def __init__(self, setup: Setup) -> None:
        self.setup, self.rules = setup, RulesAdvisor()

    def choose(self, question: AdvisorInput, problems: tuple[str, ...] = ()) -> AdvisorChoice:
        """The rules' choice without the parts that are left out."""
        changed: dict[str, object] = {"diversity": self.setup.has("diversity")}
        lost: dict[str, object] = {}
        if not self.setup.has("diagnosis"):
            changed |= {"diagnosis": undiagnosed("the diagnosis is left out"), "layout_relieves": True}
            lost |= {"relieving": (), "shows_relief": False}
        if not self.setup.has("practice"):
            lost |= {"adoption": None}
        if lost:
            changed["candidates"] = tuple(one.model_copy(update=lost) for one in question.candidates)
        return self.rules.choose(question.model_copy(update=changed), problems)
