"""How long a whole legal space takes to rank, and in how much memory: python -m tests.bench.search_speed.

Each space is ranked in a process of its own on one core: enumerated, held against every rule, projected, ranked with
its Pareto set. Printed are plans, CPU seconds, microseconds a plan with all of that in it, the peak memory of the
process and what it grew by while it ranked; then how time grows with plans (the slope of log time over log plans).
An open space has every degree of every axis and every dtype, whatever would rarely pay. Times are of this machine.
"""

import json
import math
import resource
import subprocess
import sys
import time

from projector.catalog import architecture, chip
from projector.ranking.rank import rank_space
from projector.ranking.task import Task
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Bounds, Constraints
from projector.specs.workload import WorkloadSpec

# (model, chips, tokens a sequence, sequences a step, whether every degree and dtype is open)
CASES = [
    *(("llama-3.1-405b", chips, 8192, 2048, opened) for chips in (1024, 4096, 16384) for opened in (0, 1)),
    # a count of many divisors has many layouts
    ("llama-3.1-405b", 12288, 8192, 6144, 1),
    *(("deepseek-v3", chips, 4096, 15360, opened) for chips in (512, 2048, 3072) for opened in (0, 1)),
]
OPENED = Constraints(
    allow_numerics_changes=True, bounds={axis: Bounds(low=1) for axis in ("cp", "tp", "pp", "ep", "fsdp")}
)
PARETO = ("step_time_s", "memory_per_chip_gb", "energy_per_token_j")
# Calculon, one projection on one core (shared notes of peers, measured beside ours by `make bench-projector`)
CALCULON_S = 7e-3


def ranked_alone(model: str, chips: int, seq_len: int, global_batch: int, opened: int) -> dict[str, float]:
    """Rank one space here; the figures of the run."""
    hardware = chip("h100-sxm")
    workload = WorkloadSpec(model=model, seq_len=seq_len, global_batch=global_batch)
    limits = OPENED if opened else Constraints()
    task = Task(workload, architecture(model), ClusterSpec(chip=hardware.id, chips=chips), hardware, limits)
    small = Task(workload, task.architecture, ClusterSpec(chip=hardware.id, chips=8), hardware)
    rank_space(small, pareto=PARETO)
    before_bytes = _peak_bytes()
    start = time.process_time()
    found = rank_space(task, pareto=PARETO)
    seconds = time.process_time() - start
    return {
        "plans": found.candidates_considered,
        "fit": found.candidates_feasible,
        "layouts": found.layouts_count,
        "seconds": seconds,
        "grown_mb": (_peak_bytes() - before_bytes) / 1e6,
        "peak_mb": _peak_bytes() / 1e6,
    }


def _peak_bytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def _in_a_process(case: tuple[str, int, int, int, int]) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench.search_speed", *map(str, case)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def _slope(points: list[tuple[float, float]]) -> float:
    """Least-squares slope of log y over log x."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    mean_x, mean_y = (sum(values) / len(logs) for values in zip(*logs, strict=True))
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


def main() -> None:
    """Measure and print."""
    headers = ("chips", "space", "plans", "fit", "layouts", "s", "us/plan", "peak MB", "grown MB")
    print(f"{'model':<16}" + "".join(f"{header:>10}" for header in headers))
    points = []
    for case in CASES:
        run = _in_a_process(case)
        each_s = run["seconds"] / run["plans"]
        points.append((run["plans"], run["seconds"]))
        figures = (
            f"{case[1]}",
            "open" if case[4] else "usual",
            f"{run['plans']:,.0f}",
            f"{run['fit']:,.0f}",
            f"{run['layouts']:,.0f}",
            f"{run['seconds']:.2f}",
            f"{1e6 * each_s:.2f}",
            f"{run['peak_mb']:.0f}",
            f"{run['grown_mb']:.0f}",
        )
        times = f"   {CALCULON_S / each_s:,.0f} times Calculon's 7 ms a plan"
        print(f"{case[0]:<16}" + "".join(f"{figure:>10}" for figure in figures) + times)
    print(f"time grows as plans ** {_slope(points):.2f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        name, *sizes = sys.argv[1:]
        print(json.dumps(ranked_alone(name, *map(int, sizes))))
    else:
        main()
