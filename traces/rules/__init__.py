"""The one table of name rules: what kernels and host operators are called, and how an operator adds to it."""

from traces.rules.kernel_rules import BUILT_IN, KernelRules, rules_with
from traces.rules.rule_file import read_rules

__all__ = ["BUILT_IN", "KernelRules", "read_rules", "rules_with"]
