"""Our own answers, in a process of their own: `answers FOLDER QUESTIONS`, or `search`.

answers: every point of the file that `shardwise eval accuracy` models, as it models it. search: candidates of one
serving space in one batch; the interpreter's start and the listing of the space are left out.
"""

import sys
import time
from pathlib import Path

import numpy as np

from agents.evaluation.refusal import Refused, or_refused
from agents.evaluation.serving_cases import serving_case_of
from agents.evaluation.serving_csv import read_serving_csv
from agents.evaluation.serving_rows import ServingRow
from agents.evaluation.serving_scored import score_serving
from projector.catalog import architecture, chip
from projector.project import project_many
from projector.search_space import explore
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Constraints
from projector.specs.workload import WorkloadSpec
from projector.units import s_to_ms
from tests.bench.projector_child import questions_of, tell, tell_memory
from tests.bench.serving_questions import FILE

SPEED_MODEL, SPEED_CHIP, SPEED_CHIPS = "llama-3.1-70b", "h100-sxm", 8


def answers(folder: Path, asked: str) -> None:
    """One line a question, in the peers' units."""
    wanted = {question["id"] for question in questions_of(asked)}
    rows = [
        row
        for row in read_serving_csv((folder / FILE).read_text(encoding="utf-8"), FILE)
        if isinstance(row, ServingRow) and row.id in wanted
    ]
    start = time.process_time()
    cases = [or_refused(lambda row=row: serving_case_of(row)) for row in rows]
    modelled = [case for case in cases if not isinstance(case, Refused)]
    outcomes = score_serving(modelled)
    each_s = (time.process_time() - start) / max(len(modelled), 1)
    for row, case in zip(rows, cases, strict=True):
        if isinstance(case, Refused):
            tell(id=row.id, refused=str(case), cpu_s=0.0)
    for case, outcome in zip(modelled, outcomes, strict=True):
        if isinstance(outcome, Refused):
            tell(id=case.row.id, refused=str(outcome), cpu_s=each_s)
            continue
        found = {metric: s_to_ms(value) for metric, value in outcome.projected.items()}
        tell(id=case.row.id, ttft_ms=found["ttft_s"], tpot_ms=found["tpot_s"], how=case.kind, cpu_s=each_s)


def search() -> None:
    """Candidates of the serving space of one model on eight chips, after a small batch that is not counted."""
    model, hardware = architecture(SPEED_MODEL), chip(SPEED_CHIP)
    cluster = ClusterSpec(chip=hardware.id, chips=SPEED_CHIPS)
    load = WorkloadSpec(phase="serving", model=model.name, input_len=1024, output_len=1024, concurrency=64)
    plans = explore(load, model, cluster, hardware, Constraints(allow_numerics_changes=True), None).plans
    project_many(plans.take(np.arange(10)), load, model, cluster, hardware)
    before = time.process_time()
    projected = project_many(plans, load, model, cluster, hardware)
    tell(plans=len(plans), good=int(projected.fits.sum()), cpu_s=time.process_time() - before)


if __name__ == "__main__":
    if sys.argv[1] == "answers":
        answers(Path(sys.argv[2]), sys.argv[3])
    else:
        search()
    tell_memory()
