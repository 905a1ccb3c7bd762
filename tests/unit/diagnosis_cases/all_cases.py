"""Every micro-case."""

from collections import Counter

import cases_communication
import cases_kernels
import cases_ugly
import cases_waiting
import cases_xla
from micro_case import Case

CASES: tuple[Case, ...] = (
    *cases_kernels.CASES,
    *cases_communication.CASES,
    *cases_waiting.CASES,
    *cases_ugly.CASES,
    *cases_xla.CASES,
)
ADVERSARIAL = Counter(case.adversarial for case in CASES if case.adversarial)
