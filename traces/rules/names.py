"""Names as rules see them."""

from typing import Final

from traces.rules.rule import LONGEST_NAME

_PARAMETERS_WITHIN: Final = 10 * LONGEST_NAME


def without_parameters(kernel: str) -> str:
    """A demangled name without its parameter list, whose types say nothing of the kernel."""
    if not kernel.endswith(")"):
        return kernel
    depth = 0
    for position in range(len(kernel) - 1, max(len(kernel) - _PARAMETERS_WITHIN, 0), -1):
        depth += {")": 1, "(": -1}.get(kernel[position], 0)
        if not depth:
            return kernel[:position]
    return kernel


def comparable(name: str, *, on_host: bool) -> str:
    """What patterns are compared with: lower case, a kernel without its parameter list."""
    return (name if on_host else without_parameters(name))[:LONGEST_NAME].lower()
