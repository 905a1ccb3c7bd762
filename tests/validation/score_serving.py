"""How well the serving model predicts measured points: python -m tests.validation.score_serving GROUNDTRUTH_FOLDER.

Prints n, MAPE, median error, bias and rank correlation of TPOT and TTFT by (model, chip, backend), what was refused and
why; beside TPOT a bare roofline: weights and KV read once a step at 70 % of HBM bandwidth.
"""

import sys
from collections import Counter, defaultdict
from pathlib import Path

from agents.evaluation.refusal import Refused
from projector.project import project

from .figures import error_line, spearman, spread_line
from .serving_rows import ServingCase, serving_cases


class Scored:
    """A case with its projection and the bare roofline's TPOT."""

    def __init__(self, case: ServingCase) -> None:
        self.case = case
        self.projection = project(case.plan, case.workload, case.architecture, case.cluster, case.hardware)
        memory = self.projection.memory
        assert memory is not None
        moved = memory.weights_bytes + memory.kv_cache_bytes
        self.roofline_s = moved / (0.7 * case.hardware.hbm_bytes_per_s.value) * case.plan.pp

    @property
    def tpot_s(self) -> float:
        """Projected seconds a token."""
        assert self.projection.tpot_s is not None
        return self.projection.tpot_s

    @property
    def ttft_s(self) -> float:
        """Projected seconds to the first token."""
        assert self.projection.ttft_s is not None
        return self.projection.ttft_s


def print_group(name: str, scored: list[Scored]) -> None:
    """Errors and rank correlations of one group."""
    tpot, ttft = [one.case.tpot_s for one in scored], [one.case.ttft_s for one in scored]
    print(
        error_line(name, [one.tpot_s for one in scored], tpot), f" rho {spearman([o.tpot_s for o in scored], tpot):.2f}"
    )
    roofline = [one.roofline_s for one in scored]
    print(error_line("  bare roofline 70 %", roofline, tpot), f" rho {spearman(roofline, tpot):.2f}")
    print(
        error_line("  TTFT", [one.ttft_s for one in scored], ttft),
        f" rho {spearman([o.ttft_s for o in scored], ttft):.2f}",
    )


def main(folder: Path) -> None:
    """Score silicon_serving.csv."""
    groups: dict[str, list[Scored]] = defaultdict(list)
    refused = Counter[str]()
    for _, case in serving_cases(folder):
        if isinstance(case, Refused):
            refused[str(case)] += 1
        else:
            groups[case.group].append(Scored(case))
    every = [one for group in groups.values() for one in group]
    print(f"silicon_serving.csv: {len(every)} rows modelled, {sum(refused.values())} refused")
    for reason, count in refused.most_common():
        print(f"  {count:>5}  {reason}")
    print("\nTPOT (and TTFT) by model, chip and backend")
    for name, scored in sorted(groups.items()):
        print_group(name, scored)
    print("\nall")
    print_group("dense models", [one for one in every if not one.case.architecture.is_moe])
    print_group("mixtures of experts", [one for one in every if one.case.architecture.is_moe])
    print(spread_line([one.tpot_s for one in every], [one.case.tpot_s for one in every]))
    too_large = sum(one.projection.fit == "too_large" for one in every)
    print(f"measured running but called too large: {too_large} of {len(every)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
