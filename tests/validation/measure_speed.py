"""How fast columns are beside plans one by one: python -m tests.validation.measure_speed.

Projects 20,000 random layouts of a 70B model on 1,024 chips as one batch, and 200 of them alone; prints microseconds a
plan, their ratio, and how time grows with the batch. Times are of this machine; the ratio is the point.
"""

import time

import numpy as np

from projector.catalog import architecture, chip
from projector.project import project, project_many
from projector.specs.cluster import ClusterSpec
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import WorkloadSpec

CHIPS, BATCH = 1024, 4096


def random_plans(count: int, seed: int) -> PlanBatch:
    """Layouts that occupy the cluster and consume the batch."""
    rng = np.random.default_rng(seed)
    tp, pp, cp = (2 ** rng.integers(0, most, count) for most in (4, 4, 3))
    dp = CHIPS // (tp * pp * cp)
    sharded = rng.random(count) < 0.5
    micro = 2 ** rng.integers(0, 3, count)
    return PlanBatch.from_columns(
        count,
        dp=dp,
        fsdp=np.where(sharded, dp, 1),
        zero_stage=np.where(sharded & (dp > 1), 3, 0),
        tp=tp,
        pp=pp,
        cp=cp,
        sp=tp > 1,
        micro_batch=micro,
        grad_accum=BATCH // (dp * micro),
        recompute=rng.choice(["none", "selective", "full"], count),
        compute_dtype=rng.choice(["bf16", "fp8"], count),
    )


def main() -> None:
    """Measure and print."""
    model, hardware = architecture("llama-3.1-70b"), chip("h100-sxm")
    setting = (
        WorkloadSpec(seq_len=4096, global_batch=BATCH),
        model,
        ClusterSpec(chip="h100-sxm", chips=CHIPS),
        hardware,
    )
    project_many(random_plans(10, 0), *setting)
    per_plan_s = {}
    for count in (1_000, 20_000, 100_000):
        plans = random_plans(count, 1)
        start = time.perf_counter()
        project_many(plans, *setting)
        per_plan_s[count] = (time.perf_counter() - start) / count
        print(f"{count:>7} plans as columns: {1e6 * per_plan_s[count]:>8.2f} us a plan")
    alone = list(random_plans(200, 2))
    start = time.perf_counter()
    for plan in alone:
        project(plan, *setting)
    alone_s = (time.perf_counter() - start) / len(alone)
    print(
        f"    200 plans one by one:  {1e6 * alone_s:>7.0f} us a plan, {alone_s / per_plan_s[20_000]:.0f} times slower"
    )


if __name__ == "__main__":
    main()
