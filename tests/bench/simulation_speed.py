"""What a simulation costs, and how that grows: python -m tests.bench.simulation_speed.

Each simulation runs in a process of its own: requests of 1,024 prompt and 256 generated tokens in the mean, lengths
within 20 % of it, at half of what the engines bear. Printed are CPU seconds, microseconds a generated token, and what
the process grew by; then the ratio of 10,000 requests to 5,000: near 2 where the cost is linear. Times are of this
machine.
"""

import json
import resource
import subprocess
import sys
import time

from projector.catalog import architecture, chip
from projector.simulation.simulate import simulate
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan
from projector.specs.workload import WorkloadSpec

COUNTS = (1250, 2500, 5000, 10_000, 20_000)
TRAFFIC = {
    "closed, 256 in flight": {"concurrency": 256},
    "poisson, 12 a second": {"arrivals": "poisson", "request_rate_per_s": 12.0},
}
SIZES = {"phase": "serving", "input_len": 1024, "output_len": 256, "length_spread_frac": 0.2}


def simulated_alone(traffic: str, requests: int) -> dict[str, float]:
    """Simulate once here, the imports and a first small one done; the figures of the run."""
    hardware, model = chip("h200"), architecture("llama-3.1-70b")
    cluster = ClusterSpec(chip=hardware.id, chips=8)
    plan = ParallelismPlan(phase="serving", tp=4, dp=2, max_num_seqs=256)
    workload = WorkloadSpec.model_validate(SIZES | TRAFFIC[traffic])
    simulate(plan, workload, model, cluster, hardware, requests=10, warmup_requests=10)
    before, start = _peak_bytes(), time.process_time()
    # without warm-up, which would be the same for all and blur the ratio
    found = simulate(plan, workload, model, cluster, hardware, requests=requests, warmup_requests=0)
    seconds = time.process_time() - start
    tokens = found.output_tokens_per_s * found.simulated_s
    return {"seconds": seconds, "tokens": tokens, "grown_mb": (_peak_bytes() - before) / 1e6}


def _peak_bytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def _in_a_process(traffic: str, requests: int) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench.simulation_speed", traffic, str(requests)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def main() -> None:
    """Measure and print."""
    print(f"{'traffic':<24}" + "".join(f"{header:>14}" for header in ("requests", "s", "us/token", "grown MB")))
    for traffic in TRAFFIC:
        runs = {count: _in_a_process(traffic, count) for count in COUNTS}
        for count, run in runs.items():
            figures = (
                f"{count:,}",
                f"{run['seconds']:.2f}",
                f"{1e6 * run['seconds'] / run['tokens']:.2f}",
                f"{run['grown_mb']:.0f}",
            )
            print(f"{traffic:<24}" + "".join(f"{figure:>14}" for figure in figures))
        print(f"  10,000 requests take {runs[10_000]['seconds'] / runs[5000]['seconds']:.2f} times 5,000")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(simulated_alone(sys.argv[1], int(sys.argv[2]))))
    else:
        main()
