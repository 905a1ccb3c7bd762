"""A limit on memory stands for the chip's own: gates and KV pools follow it."""

import pytest
from pydantic import ValidationError

from projector import catalog
from projector.memory_limit import with_memory_limit
from projector.project import project
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Constraints
from projector.specs.plan import ParallelismPlan
from projector.specs.workload import WorkloadSpec

H100 = catalog.chip("h100-sxm")


def test_without_a_limit_or_beyond_its_memory_a_chip_stays_as_it_is() -> None:
    assert with_memory_limit(H100, Constraints()) is H100
    assert with_memory_limit(H100, Constraints(max_memory_gb=500)) is H100


def test_the_figure_says_where_it_comes_from() -> None:
    limited = with_memory_limit(H100, Constraints(max_memory_gb=60))
    assert limited.hbm_bytes.value == 60e9
    assert limited.hbm_bytes.source == "constraints.max_memory_gb; datasheet 80 GB"


def test_a_plan_that_fits_the_chip_may_not_fit_what_is_left_of_it() -> None:
    workload = WorkloadSpec(seq_len=8192, global_batch=64)
    plan = ParallelismPlan(dp=8, fsdp=8, zero_stage=3, grad_accum=8, recompute="full")
    model, cluster = catalog.architecture("llama-3.1-8b"), ClusterSpec(chip=H100.id, chips=8)
    limited = with_memory_limit(H100, Constraints(max_memory_gb=20))
    assert project(plan, workload, model, cluster, H100).fit == "fits"
    assert project(plan, workload, model, cluster, limited).fit == "too_large"


def test_a_limit_below_nothing_is_refused() -> None:
    with pytest.raises(ValidationError):
        Constraints(max_memory_gb=0)
