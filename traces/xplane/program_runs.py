"""Steps of a profile that marks none: the runs of the program that takes most of the device's time.

XProf derives no step from such a profile, and its figures by step are then all zero (openxla/xprof issues 282, 571).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.xplane.space import Line, Plane

_LEAST_RUNS: Final = 3
_LEAST_SHARE: Final = 0.5
_SHOWN: Final = 60


@dataclass(frozen=True, slots=True, eq=False)
class ProgramRuns:
    """Runs of one program in the order they began. share: of the time of all programs."""

    line: Line
    program: str
    share: float

    def told(self) -> str:
        """The assumption, as a sentence."""
        return (
            f"the profile marks no steps; the {len(self.line)} runs of the program {self.program!r}, {self.share:.0%} "
            "of the time of all programs, count as steps"
        )


def program_runs(plane: Plane, modules: Line | None) -> ProgramRuns | None:
    """The runs of the program that takes most time, at least half of it; None where it ran fewer than three times."""
    if modules is None:
        return None
    names = [kind.title.partition("(")[0] for kind in plane.kinds]  # "jit_step(1234)": name and fingerprint
    distinct = {name: index for index, name in enumerate(dict.fromkeys(names))}
    program = np.array([distinct[name] for name in names], dtype=np.int64)[modules.kind]
    time_ps = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(time_ps, program, modules.duration_ps)
    total = int(time_ps.sum())
    longest = int(time_ps.argmax())
    runs = modules.where((program == longest) & (modules.duration_ps > 0))
    if len(runs) < _LEAST_RUNS or time_ps[longest] < _LEAST_SHARE * total:
        return None
    runs = runs.take(np.argsort(runs.begin_ps, kind="stable"))
    return ProgramRuns(runs, list(distinct)[longest][:_SHOWN], float(time_ps[longest] / total))
