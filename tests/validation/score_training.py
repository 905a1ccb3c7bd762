"""How well the training model predicts published runs: python -m tests.validation.score_training GROUNDTRUTH_FOLDER.

Prints n, MAPE, median error and bias by chip and by source, what was refused and why, memory errors, and for sweeps
rank correlation and regret; beside each a constant model-FLOP utilisation (the best constant in hindsight, fitted on
the very rows it is scored on).
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from projector.project import project_many
from projector.specs.plan_batch import PlanBatch
from projector.training import model_flop_per_token

from .figures import error_line, kendall, regret, spearman, spread_line
from .training_rows import Refused, TrainingCase, training_cases
from .vtrain_rows import MULTI_NODE, SINGLE_NODE, vtrain_cases


class Scored:
    """A case with its projection and its model-FLOP time at the chip's 16-bit peak."""

    def __init__(self, case: TrainingCase) -> None:
        self.case = case
        batch = PlanBatch.from_plans(case.plans)
        projected = project_many(
            batch, case.workload, case.architecture, case.cluster, case.hardware, software=case.software
        )
        # the fastest that fits; where none does, the smallest
        times = np.where(projected.fits, projected.step_time_s, np.inf)
        best = int(np.argmin(times) if projected.fits.any() else np.argmin(projected.memory_bytes))
        self.projection = projected[best]
        self.predicted_s = self.projection.step_time_s
        assert case.workload.seq_len is not None
        assert case.workload.global_batch is not None
        flop = model_flop_per_token(case.architecture, case.workload.seq_len)
        flop *= case.workload.seq_len * case.workload.global_batch
        self.at_peak_s = flop / (case.hardware.peak_flop_per_s["bf16"].value * case.cluster.chips)


def by(key: Callable[[Scored], str], scored: Iterable[Scored]) -> dict[str, list[Scored]]:
    """Scored cases by a key, in order of the key."""
    found: dict[str, list[Scored]] = defaultdict(list)
    for one in scored:
        found[key(one)].append(one)
    return dict(sorted(found.items()))


def print_errors(title: str, groups: dict[str, list[Scored]]) -> None:
    """Error lines of the model and of the best constant utilisation."""
    print(f"\n{title}")
    for name, cases in groups.items():
        measured = [one.case.step_time_s for one in cases]
        constant = float(np.median([one.at_peak_s / one.case.step_time_s for one in cases]))
        print(error_line(name, [one.predicted_s for one in cases], measured))
        print(error_line(f"  constant MFU {constant:.2f}", [one.at_peak_s / constant for one in cases], measured))


def print_sweeps(title: str, groups: dict[str, list[Scored]], *, each: bool) -> None:
    """Rank correlation and regret inside groups of at least four rows of distinct measured time."""
    print(f"\n{title}")
    lines: list[tuple[float, float, float]] = []
    for name, cases in groups.items():
        predicted, measured = [one.predicted_s for one in cases], [one.case.step_time_s for one in cases]
        if len(set(measured)) < 4:
            continue
        line = (spearman(predicted, measured), kendall(predicted, measured), regret(predicted, measured))
        lines.append(line)
        if each:
            rho, tau, worse = line
            print(f"{name:<56} n {len(cases):>3}  rho {rho:>5.2f}  tau {tau:>5.2f}  regret {100 * worse:>5.1f} %")
    if lines:
        means = np.nanmean(np.array(lines), axis=0)
        worst = max(line[2] for line in lines)
        print(
            f"{len(lines)} groups: mean rho {means[0]:.2f}, tau {means[1]:.2f}, "
            f"regret {100 * means[2]:.1f} % (worst {100 * worst:.1f} %)"
        )


def print_memory(scored: Sequence[Scored]) -> None:
    """Memory against the rows that publish it, without the reserve, and measured runs that are called too large."""
    print("\nmemory")
    for name, cases in by(lambda one: one.case.source, scored).items():
        known = [one for one in cases if one.case.memory_bytes]
        refused = sum(one.projection.fit == "too_large" for one in cases)
        if known:
            predicted = [_used_bytes(one) for one in known]
            print(error_line(name, predicted, [one.case.memory_bytes or 0.0 for one in known]))
        print(f"{name:<44} ran but called too large: {refused} of {len(cases)}")


def _used_bytes(one: Scored) -> float:
    memory = one.projection.memory
    assert memory is not None
    return memory.total_bytes - memory.reserve_bytes


def main(folder: Path) -> None:
    """Score every file of the folder."""
    scored, refused = [], Counter[str]()
    for _, case in training_cases(folder):
        if isinstance(case, Refused):
            refused[str(case)] += 1
        else:
            scored.append(Scored(case))
    print(f"training.jsonl: {len(scored)} rows modelled, {sum(refused.values())} refused")
    for reason, count in refused.most_common():
        print(f"  {count:>4}  {reason}")
    print_errors("by chip", by(lambda one: one.case.hardware.id, scored))
    print_errors("by source", by(lambda one: f"{one.case.source} {one.case.hardware.id}", scored))
    print_errors("all", {"all rows": scored})
    print(spread_line([one.predicted_s for one in scored], [one.case.step_time_s for one in scored]))
    print_memory(scored)
    print_sweeps("sweeps of training.jsonl", by(lambda one: one.case.group, scored), each=False)
    for file, each in ((MULTI_NODE, True), (SINGLE_NODE, False)):
        sweep = [Scored(case) for case in vtrain_cases(folder, file)]
        print_errors(file, {file: sweep})
        print_sweeps(f"{file} by group", by(lambda one: one.case.group, sweep), each=each)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
