"""What FLOP/byte say where nobody knows the chip: only what holds on all of them."""

import pytest

from agents.planning.intensity import by_intensity
from traces.measure_types import ClassWork
from traces.work_types import OperatorWork


def work(number_format: str, flop: int | None, moved_bytes: int) -> ClassWork:
    one = OperatorWork(
        operator="aten::mm",
        shapes="",
        format=number_format,
        calls=1,
        kernels=1,
        total_ns=800,
        flop=flop,
        moved_bytes=moved_bytes,
    )
    return ClassWork(kind="gemm", count=2, total_ns=1000, known_count=1, known_ns=800, operators=(one,))


@pytest.mark.parametrize(
    ("number_format", "flop", "bound"),
    [
        ("bf16", 1, "memory"),
        ("bf16", 60, "memory"),
        ("bf16", 300, "unknown"),
        ("bf16", 1400, "compute"),
        ("fp8", 1000, "unknown"),
        ("fp8", 1400, "compute"),
        ("fp32", 30, "unknown"),
        ("fp32", 2, "memory"),
        ("vector", 1400, "memory"),
        ("bf16", None, "unknown"),
    ],
)
def test_flop_per_byte_beside_the_ridges_of_all_chips(number_format, flop, bound):
    """One byte moved, so the FLOP are FLOP/byte; a fifth of the kind's time has no known work."""
    times = {one.bound: one.total_ns for one in by_intensity(work(number_format, flop, 1)).bounds}
    assert times == ({"unknown": 1000} if bound == "unknown" else {bound: 800, "unknown": 200})
