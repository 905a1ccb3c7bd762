"""One name rule, and the vocabulary its fields are drawn from."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, get_args

from projector.breakdown import OperatorKind

LONGEST_NAME: Final = 1_000
"""Rules look at so many characters of a name; longer ones are templates whose tail tells nothing more."""

NONE: Final = "none"
"""Meaning of a rule that ends the search in its table: the name is not of this table."""

Table = Literal["collective", "communication", "copy", "kind", "host_communication", "operator_kind"]
TABLES: Final[tuple[Table, ...]] = get_args(Table)

COLLECTIVES: Final = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "broadcast",
    "reduce",
    "send_recv",
    "collective_permute",
    "barrier",
    "expert_dispatch",
    "expert_combine",
    "expert_notify",
    "one_sided",
    "userbuffers",
    "symmetric_memory",
    "nccl",
    "collective",
    "wait",
)
"""What a kernel or operator that communicates does; the last five and "nccl" name no single collective."""

KINDS: Final[tuple[OperatorKind, ...]] = get_args(OperatorKind)
COPIES: Final = ("memcpy", "memset")

MEANINGS: Final[dict[Table, tuple[str, ...]]] = {
    "collective": (*COLLECTIVES, NONE),
    "communication": (*COLLECTIVES, NONE),
    "copy": (*COPIES, NONE),
    "kind": (*KINDS, NONE),
    "host_communication": (*COLLECTIVES, NONE),
    "operator_kind": (*KINDS, NONE),
}


@dataclass(frozen=True)
class Rule:
    """Names in which `pattern` is found mean `meaning`. `own`: added by whoever runs the service.

    The fields are those of an entry of a rule file (`kernel_rules.toml` describes them).
    """

    table: Table
    meaning: str
    id: str
    pattern: str
    examples: tuple[str, ...] = ()
    not_examples: tuple[str, ...] = ()
    source: str = ""
    own: bool = False

    @property
    def label(self) -> str:
        """How the rule is called where it decided something: 'name rule moe/expert'."""
        return f"{'own' if self.own else 'name'} rule {self.meaning}/{self.id}"

    @property
    def on_host(self) -> bool:
        """Whether the rule is of operators on the host, not of kernels."""
        return self.table in ("host_communication", "operator_kind")

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern; names are compared in lower case."""
        return re.compile(self.pattern)

    def matches(self, name: str) -> bool:
        """Whether the pattern is found in a name as `traces.rules.names.comparable` gives it."""
        return self.compiled.search(name, 0, LONGEST_NAME) is not None
