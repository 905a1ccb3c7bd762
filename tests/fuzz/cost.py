"""How much more a larger input costs: CPU time of this thread, the least of several tries, as load adds to it."""

import time
from collections.abc import Callable
from typing import Final

_LEAST_NS: Final = 2_000_000
_TRIES: Final = 3


def cost_ns(run: Callable[[], object], *, least_ns: int = _LEAST_NS) -> float:
    """CPU nanoseconds of one call, the least of three measurements of at least two milliseconds each."""
    best, times = float("inf"), 1
    for _ in range(_TRIES):
        while True:
            began = time.thread_time_ns()
            for _ in range(times):
                run()
            spent = time.thread_time_ns() - began
            if spent >= least_ns or times >= 1 << 16:
                break
            times *= 4
        best = min(best, spent / times)
    return best


def growth(small: Callable[[], object], large: Callable[[], object], *, least_ns: int = _LEAST_NS) -> float:
    """Cost of the large call over that of the small one."""
    return cost_ns(large, least_ns=least_ns) / cost_ns(small, least_ns=least_ns)
