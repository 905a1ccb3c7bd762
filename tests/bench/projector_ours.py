"""Our answers in a process of its own, in the lines the peers write: `answers GROUNDTRUTH`, `search`, or `alone`.

answers: a line for each row, the fastest of its plans that fits. search: every plan of the speed setting as columns.
alone: some of these plans one by one, each with its breakdown, interval and notes.
"""

import sys
import time
from pathlib import Path

import numpy as np

from agents.evaluation.refusal import Refused
from agents.evaluation.scored import score_all, step_tokens
from projector.project import project, project_many
from tests.bench.projector_child import tell, tell_memory
from tests.bench.projector_questions import cases, speed_setting

ALONE = 100


def answers(folder: str) -> None:
    """A line for each row."""
    asked = cases(Path(folder))
    for case, one in zip(asked, score_all(asked), strict=True):
        if isinstance(one, Refused):
            tell(row=case.row.id, refused=str(one))
            continue
        tell(
            row=case.row.id,
            tokens=step_tokens(one.workload),
            time_s=one.projected_s,
            bytes=one.counted_bytes,
            fits=not one.too_large,
            stand_ins=[],
        )


def search() -> None:
    """The whole speed setting as columns, after a small batch that is not counted: first use of modules."""
    plans, *setting = speed_setting()
    project_many(plans.take(np.arange(10)), *setting)
    before = time.process_time()
    projected = project_many(plans, *setting)
    cpu_s = time.process_time() - before
    tell(plans=len(plans), good=int(projected.fits.sum()), cpu_s=cpu_s)


def alone() -> None:
    """Plans projected one by one."""
    plans, *setting = speed_setting()
    some = [plans[place] for place in range(0, len(plans), len(plans) // ALONE)]
    project(some[0], *setting)
    before = time.process_time()
    for plan in some:
        project(plan, *setting)
    tell(plans=len(some), good=len(some), cpu_s=time.process_time() - before)


if __name__ == "__main__":
    {"answers": answers, "search": search, "alone": alone}[sys.argv[1]](*sys.argv[2:])
    tell_memory()
