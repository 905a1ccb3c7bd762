"""What a kernel or operator name says by the built-in rules (`traces.rules`); a trace may carry further ones."""

from projector.breakdown import OperatorKind
from traces.rules.kernel_rules import BUILT_IN
from traces.rules.names import without_parameters
from traces.rules.rule import LONGEST_NAME

__all__ = [
    "LONGEST_NAME",
    "communication_of",
    "host_communication_of",
    "is_copy",
    "kind_of",
    "kind_of_operator",
    "without_parameters",
]


def communication_of(kernel: str) -> str | None:
    """Collective a kernel name stands for ("nccl" where only the library is known), or None."""
    return BUILT_IN.communication_of(kernel)


def is_copy(kernel: str) -> bool:
    """Whether a kernel name is that of a copy or a memset."""
    return BUILT_IN.is_copy(kernel)


def kind_of(kernel: str) -> OperatorKind | None:
    """Kind of computation a kernel name stands for, or None where no rule knows it."""
    return BUILT_IN.kind_of(kernel)


def host_communication_of(operator: str) -> str | None:
    """Collective a host operator or annotation performs, or None."""
    return BUILT_IN.host_communication_of(operator)


def kind_of_operator(operator: str) -> OperatorKind | None:
    """Kind of computation a host operator stands for, or None."""
    return BUILT_IN.kind_of_operator(operator)
