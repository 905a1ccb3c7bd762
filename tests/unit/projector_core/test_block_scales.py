"""8-bit and 4-bit floats with a scale a block: their bytes, their casts, the peak they run at."""

import pytest

from projector.breakdown import Projection
from projector.catalog import architecture, chip
from projector.legality import check
from projector.project import project
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ComputeDtype, ParallelismPlan
from projector.specs.workload import WorkloadSpec

BATCH = WorkloadSpec(seq_len=8192, global_batch=8)
MODEL = architecture("llama-3.1-8b")


def projected(dtype: ComputeDtype, name: str = "b200") -> Projection:
    plan = ParallelismPlan(dp=8, fsdp=8, zero_stage=3, compute_dtype=dtype)
    return project(plan, BATCH, MODEL, ClusterSpec(chip=name, chips=8), chip(name))


def kind_s(found: Projection, kind: str) -> float:
    return next(one.time_s for one in found.breakdown.by_kind if one.kind == kind)


@pytest.mark.parametrize(("scaled", "plain"), [("mxfp8", "fp8"), ("nvfp4", "fp4")])
def test_products_run_at_the_peak_of_the_plain_dtype(scaled: ComputeDtype, plain: ComputeDtype) -> None:
    one, other = projected(scaled), projected(plain)
    assert kind_s(one, "gemm") == pytest.approx(kind_s(other, "gemm"), rel=0.01)
    assert not any("has no" in text for text in one.assumptions)


def test_operands_are_cast_along_rows_and_along_columns() -> None:
    scaled, plain = (kind_s(projected(dtype), "quantise") for dtype in ("nvfp4", "fp4"))
    assert scaled / plain == pytest.approx((2 + 2 * 0.5625) / (2 + 0.5625), rel=0.01)
    scaled, plain = (kind_s(projected(dtype), "quantise") for dtype in ("mxfp8", "fp8"))
    assert scaled / plain == pytest.approx((2 + 2 * 1.03125) / 3, rel=0.01)


def test_scales_of_blocks_take_room() -> None:
    scaled, plain = (projected(dtype).memory for dtype in ("mxfp8", "fp8"))
    assert scaled is not None
    assert plain is not None
    assert plain.activations_bytes < scaled.activations_bytes < 1.03125 * plain.activations_bytes


def test_a_chip_without_block_scales_runs_the_next_wider_dtype_and_says_so() -> None:
    found = projected("mxfp8", "h100-sxm")
    assert any("has no mxfp8 units: GEMMs are projected in fp8" in text for text in found.assumptions)


@pytest.mark.parametrize(("dtype", "rules"), [("mxfp8", []), ("nvfp4", []), ("fp4", ["training_dtype"])])
def test_training_has_recipes_for_scaled_blocks(dtype: ComputeDtype, rules: list[str]) -> None:
    plan = ParallelismPlan(dp=8, fsdp=8, zero_stage=3, compute_dtype=dtype)
    broken = check(plan, BATCH, MODEL, ClusterSpec(chip="b200", chips=8), chip("b200"))
    assert [one.rule for one in broken] == rules
