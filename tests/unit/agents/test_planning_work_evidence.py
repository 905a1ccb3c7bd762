"""Roofline positions in a diagnosis: they decide what limits kernels, and are told."""

from agents.planning.analyzer import diagnose
from agents.planning.placing import beside_chip
from agents.planning.work_evidence import limits_of
from tests.unit.agents.planning_examples import MILLISECOND_NS, summary_of, sure
from traces.summary_types import Implied, TraceSummary
from traces.work.element_types import Format
from traces.work.sums import class_work
from traces.work_types import OperatorWork

H100 = Implied(chip_name=sure("NVIDIA H100 80GB HBM3"))


def traced(flop: float, moved_bytes: float, *, known_ms: int = 800, implied: Implied = H100) -> TraceSummary:
    """Kernels of kind gemm for 800 of 1000 ms, of which `known_ms` do the work given."""
    number_format: Format = "bf16"
    one = OperatorWork(
        operator="aten::mm",
        shapes="",
        format=number_format,
        calls=1,
        kernels=1,
        total_ns=known_ms * MILLISECOND_NS,
        flop=round(flop),
        moved_bytes=round(moved_bytes),
    )
    unknown_ns = (800 - known_ms) * MILLISECOND_NS
    work = class_work("gemm", [one], unknown_count=1, unknown_ns=unknown_ns, basis="operator shapes")
    return summary_of(compute_ms=800, kinds={"gemm": 800}, implied=implied).model_copy(update={"work": (work,)})


def test_intense_products_are_bound_by_arithmetic():
    diagnosis = diagnose(traced(400e12, 5e11))
    assert (diagnosis.bottleneck, diagnosis.cause) == ("compute", "compute_throughput")
    (line,) = (one for one in diagnosis.evidence if one.id == "ev-work-gemm")
    assert line.claim.startswith("Kernels of kind gemm reach 50.6 % of the peak in arithmetic")
    assert "500 TFLOP/s" in line.claim
    assert "bound by arithmetic" in line.claim
    assert not any("roofline" in limit for limit in diagnosis.limits)


def test_thin_products_are_bound_by_memory():
    diagnosis = diagnose(traced(40e12, 20e11))
    assert (diagnosis.bottleneck, diagnosis.cause) == ("memory", "hbm_bandwidth")


def test_without_a_chip_nothing_is_claimed():
    diagnosis = diagnose(traced(400e12, 5e11, implied=Implied()))
    assert not any(one.id.startswith("ev-work") for one in diagnosis.evidence)


def test_kernels_of_unknown_work_are_judged_by_their_kind():
    summary = beside_chip(traced(400e12, 5e11, known_ms=600))
    limits = limits_of(summary.work, "gemm")
    assert (limits.arithmetic, limits.memory) == (0.75, 0.0)
    assert limits.open == 0.25
    assert limits_of(summary.work, "norm").open == 1.0


def test_implausible_figures_decide_nothing_and_are_told():
    diagnosis = diagnose(traced(4000e12, 5e11))
    assert not any(one.id == "ev-work-gemm" for one in diagnosis.evidence)
    assert any("implausible" in limit and "bf16 peak" in limit for limit in diagnosis.limits)


def test_placing_is_done_once():
    summary = beside_chip(traced(400e12, 5e11))
    assert beside_chip(summary) == summary
    assert diagnose(summary) == diagnose(traced(400e12, 5e11))
