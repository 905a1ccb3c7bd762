"""Work beside a chip: an H100 has 989 TFLOP/s bf16, 67 TFLOP/s fp32 and 3.35 TB/s."""

import pytest

from projector import catalog
from projector.breakdown import OperatorKind
from traces.measure_types import ClassWork
from traces.work.element_types import Format
from traces.work.placed import placed_class
from traces.work.roofs import Roofs
from traces.work.sums import class_work
from traces.work_types import OperatorWork

H100 = Roofs(catalog.chip("h100-sxm"))
MB = 10**6


def calls(
    total_us: float,
    gflop: float | None,
    megabytes: float,
    *,
    number_format: Format = "bf16",
    count: int = 1,
    name: str = "aten::mm",
) -> OperatorWork:
    """`count` calls that take total_us together; work of one call."""
    return OperatorWork(
        operator=name,
        shapes="",
        format=number_format,
        calls=count,
        kernels=count,
        total_ns=round(total_us * 1000),
        flop=None if gflop is None else round(gflop * 1e9),
        moved_bytes=round(megabytes * MB),
    )


def placed(*operators: OperatorWork, kind: OperatorKind = "gemm", unknown_us: int = 0) -> ClassWork:
    work = class_work(kind, operators, unknown_count=unknown_us, unknown_ns=unknown_us * 1000, basis="operator shapes")
    return placed_class(work, H100)


def test_fractions_are_of_the_datasheet():
    found = placed(calls(1000, 494.5, 335))
    assert found.peak_flop_frac == pytest.approx(0.5)
    assert found.peak_bytes_frac == pytest.approx(0.1)
    assert found.peak == "h100-sxm: bf16 989 TFLOP/s, memory 3.35 TB/s"
    assert (found.bound, found.implausible) == ("compute", "")


def test_the_ridge_is_that_of_attainable_rates():
    # 0.7 * 989e12 / (0.8 * 3.35e12) = 258 FLOP/byte for products, 0.5 of 989 gives 185 for attention
    assert placed(calls(1000, 259 * 0.1, 100)).bound == "compute"
    assert placed(calls(1000, 257 * 0.1, 100)).bound == "memory"
    assert placed(calls(1000, 190 * 0.1, 100), kind="attention").bound == "compute"


def test_work_below_the_floor_of_a_kernel_is_bound_by_latency():
    assert placed(calls(30, 0.001, 3, number_format="vector"), kind="elementwise").bound == "latency"
    assert placed(calls(30, 0.001, 30, number_format="vector"), kind="elementwise").bound == "memory"


def test_vector_arithmetic_has_no_peak():
    found = placed(calls(100, 1, 100, number_format="vector"), kind="norm")
    assert (found.peak_flop_frac, found.bound) == (None, "memory")
    assert found.peak == "h100-sxm: memory 3.35 TB/s"


def test_the_bound_is_that_of_most_of_the_time():
    found = placed(calls(600, 300, 100), calls(400, 1, 1000), kind="gemm")
    assert found.bound == "compute"
    assert {one.bound: one.total_ns for one in found.bounds} == {"compute": 600_000, "memory": 400_000}


def test_half_of_the_time_has_to_be_known():
    assert placed(calls(1000, 494.5, 335), unknown_us=900).bound == "compute"
    found = placed(calls(1000, 494.5, 335), unknown_us=1100)
    assert found.bound == "unknown"
    assert {one.bound: one.total_ns for one in found.bounds} == {"compute": 1_000_000, "unknown": 1_100_000}


def test_operators_beyond_the_listed_count_as_their_mean():
    found = placed(*(calls(100 + number, 49, 33, name=f"op{number}") for number in range(20)))
    assert found.bound == "compute"
    assert sum(one.total_ns for one in found.bounds) == found.total_ns


def test_more_than_the_peak_is_implausible_and_decides_nothing():
    found = placed(calls(100, 110, 30))
    assert found.implausible.startswith("aten::mm would run at 1.11 times the bf16 peak of h100-sxm")
    assert (found.bound, [one.bound for one in found.bounds]) == ("unknown", ["unknown"])
    assert found.peak_flop_frac == pytest.approx(1.112, abs=0.001)


def test_five_percent_above_is_within_clocks_and_rounding():
    assert placed(calls(100, 98.9 * 1.04, 30)).implausible == ""


def test_an_implausible_trifle_spoils_only_itself():
    found = placed(calls(10_000, 4945, 335), calls(100, 110, 30))
    assert (found.implausible, found.bound) == ("", "compute")
    assert [one.implausible[:4] for one in found.operators] == ["", "1.11"]


def test_what_fits_into_a_cache_may_be_faster_than_memory():
    cached = calls(10, 0.001, 100, number_format="vector")
    assert placed(cached, kind="elementwise").implausible == ""
    assert placed(cached, kind="elementwise").peak_bytes_frac == pytest.approx(2.985, abs=0.001)
    assert "times the memory bandwidth" in placed(calls(100, 0.1, 1000, number_format="vector")).implausible
    assert "times the memory bandwidth" in placed(calls(1, 0.001, 100, number_format="vector")).implausible


def test_fp32_beyond_its_peak_is_tf32():
    found = placed(calls(1000, 300, 30, number_format="fp32"))
    assert found.implausible == ""
    assert found.peak_flop_frac == pytest.approx(300 / 494.5)
    assert "TF32" in found.peak
    assert "fp32" in placed(calls(1000, 600, 30, number_format="fp32")).implausible


def test_a_format_the_chip_has_no_peak_for_has_no_fraction():
    found = placed(calls(1000, 300, 30, number_format="fp64"))
    assert (found.peak_flop_frac, found.bound) == (None, "memory")


def test_an_unknown_format_is_held_against_bf16_and_says_so():
    assert "number format not stated" in placed(calls(1000, 300, 30, number_format="unknown")).peak


def test_uncountable_operations_leave_the_bytes():
    found = placed(calls(100, None, 100, number_format="vector"), kind="elementwise")
    assert (found.bound, found.peak_flop_frac) == ("memory", None)


def test_figures_of_a_chip_are_split_over_its_devices():
    chip = catalog.chip("mi250x")
    peak = Roofs(chip).peak("bf16")
    assert chip.devices_per_chip == 2
    assert peak is not None
    assert peak.flop_per_s == chip.peak_flop_per_s["bf16"].value / 2
    assert Roofs(chip).bytes_per_s == chip.hbm_bytes_per_s.value / 2


def test_placing_again_changes_nothing_and_without_a_chip_nothing_is_claimed():
    work = class_work("gemm", [calls(100, 49, 30)], unknown_count=0, unknown_ns=0, basis="operator shapes")
    once = placed_class(work, H100)
    assert placed_class(once, H100) == once
    assert placed_class(once, None) == work
