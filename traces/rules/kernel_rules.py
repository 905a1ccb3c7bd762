"""What a name says, by the built-in rules and those an operator adds. Names are data, never interpreted."""

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import Final, Literal

from projector.breakdown import OperatorKind
from traces.remembered import LONGEST_REMEMBERED
from traces.rules.names import comparable
from traces.rules.rule import NONE, Rule, Table
from traces.rules.rule_file import parse_rules

Subject = Literal["communication", "copy", "kind"]

_CACHED_NAMES: Final = 32_768
_FILE: Final = "kernel_rules.toml"

# Kernels of a collective library begin with its name; what they do stands behind it, if anywhere.
_LIBRARY: Final = re.compile(r"(?!triton_)(?:void )?\w{0,16}?(?:nccl|rccl|msccl)")

_ON_DEVICE: Final[dict[Table, Subject]] = {
    "collective": "communication",
    "communication": "communication",
    "copy": "copy",
    "kind": "kind",
}
_ON_HOST: Final[dict[Table, Subject]] = {"host_communication": "communication", "operator_kind": "kind"}


@dataclass(frozen=True, slots=True)
class Decision:
    """What a name says: about what, which meaning, and the rule that says so. Without a rule: nothing."""

    subject: Subject | None = None
    meaning: str = ""
    rule: Rule | None = None

    @property
    def kind(self) -> OperatorKind | None:
        """Kind of computation, None where the name says another thing or nothing."""
        return self.meaning if self.subject == "kind" else None  # type: ignore[return-value]

    @property
    def settles(self) -> bool:
        """Whether an own rule says it: then nothing around the event does."""
        return self.rule is not None and self.rule.own


_UNDECIDED: Final = Decision()


@lru_cache(1)
def built_in_rules() -> tuple[Rule, ...]:
    """The entries of `kernel_rules.toml`; read when first asked for."""
    content = files("traces.rules").joinpath(_FILE).read_bytes()
    return parse_rules(content, _FILE, own=False)


@dataclass(frozen=True, eq=False)
class KernelRules:
    """Ordered rules; the first whose pattern is found in a name decides. `own` ones go before the built-in.

    A kernel is communication, a copy, or computation of some kind, asked in this order; an own rule decides which of
    them whatever the built-in ones say. Every name is decided once and remembered, up to a limit. Cheap to pickle:
    only the own rules travel.
    """

    own: tuple[Rule, ...] = ()

    def communication_of(self, kernel: str) -> str | None:
        """Collective a kernel name stands for ("nccl" where only the library is known), or None."""
        return self._meaning(self.of_kernel(kernel), "communication")

    def is_copy(self, kernel: str) -> bool:
        """Whether a kernel name is that of a copy or a memset."""
        return self.of_kernel(kernel).subject == "copy"

    def kind_of(self, kernel: str) -> OperatorKind | None:
        """Kind of computation a kernel name stands for, or None where no rule knows it."""
        return self._meaning(self.of_kernel(kernel), "kind")  # type: ignore[return-value]

    def host_communication_of(self, operator: str) -> str | None:
        """Collective a host operator or annotation performs, or None."""
        return self._meaning(self.of_operator(operator), "communication")

    def kind_of_operator(self, operator: str) -> OperatorKind | None:
        """Kind of computation a host operator stands for, or None."""
        return self._meaning(self.of_operator(operator), "kind")  # type: ignore[return-value]

    def settles(self, kernel: str) -> bool:
        """Whether an own rule says what the kernel is: then nothing around it does."""
        return self.of_kernel(kernel).settles

    def of_kernel(self, kernel: str) -> Decision:
        """What a kernel's name says."""
        return self._decided(kernel, self._kernels, on_host=False)

    def of_operator(self, operator: str) -> Decision:
        """What the name of a host operator or annotation says."""
        return self._decided(operator, self._operators, on_host=True)

    @staticmethod
    def _meaning(decision: Decision, subject: Subject) -> str | None:
        return decision.meaning if decision.subject == subject else None

    def _decided(self, name: str, known: dict[str, Decision], *, on_host: bool) -> Decision:
        decision = known.get(name)
        if decision is None:
            if len(known) >= _CACHED_NAMES:
                known.clear()
            rules = self._for_operators if on_host else self._for_kernels
            decision = _first(rules, comparable(name, on_host=on_host))
            if len(name) <= LONGEST_REMEMBERED:
                known[name] = decision
        return decision

    @cached_property
    def _for_kernels(self) -> tuple[tuple[Subject, Rule], ...]:
        return _ordered(self.own, _ON_DEVICE)

    @cached_property
    def _for_operators(self) -> tuple[tuple[Subject, Rule], ...]:
        return _ordered(self.own, _ON_HOST)

    @cached_property
    def _kernels(self) -> dict[str, Decision]:
        return {}

    @cached_property
    def _operators(self) -> dict[str, Decision]:
        return {}

    def __reduce__(self) -> tuple[object, tuple[tuple[Rule, ...]]]:
        return rules_with, (self.own,)


BUILT_IN: Final = KernelRules()
"""The built-in rules alone."""


def _ordered(own: tuple[Rule, ...], subjects: dict[Table, Subject]) -> tuple[tuple[Subject, Rule], ...]:
    """Own rules as they stand, then the built-in ones of one table after another, each with what it is about."""
    tables = tuple(subjects)
    built_in = sorted(
        (rule for rule in built_in_rules() if rule.table in subjects), key=lambda rule: tables.index(rule.table)
    )
    return tuple((subjects[rule.table], rule) for rule in (*own, *built_in) if rule.table in subjects)


def _first(rules: tuple[tuple[Subject, Rule], ...], name: str) -> Decision:
    """The first rule that finds its pattern; one that means "none" closes its subject to the rules behind it."""
    of_library = _LIBRARY.match(name) is not None
    closed: set[Subject] = set()
    for subject, rule in rules:
        if subject in closed or (rule.table == "collective" and not of_library) or not rule.matches(name):
            continue
        if rule.meaning != NONE:
            return Decision(subject, rule.meaning, rule)
        closed.add(subject)
    return _UNDECIDED


@lru_cache(8)
def rules_with(own: tuple[Rule, ...]) -> KernelRules:
    """The built-in rules behind an operator's own; one object, and so one memory of names, for the same rules."""
    return KernelRules(own) if own else BUILT_IN
