"""Small real records that the tests of this folder build on. Times in nanoseconds, windows of one second."""

from collections.abc import Mapping, Sequence
from typing import Any

from projector.breakdown import Axis, OperatorKind
from traces.summary_types import (
    CollectiveTime,
    Implied,
    Inferred,
    KernelClassTime,
    KernelTime,
    RankSummary,
    TraceSummary,
    Window,
)

SECOND_NS = 1_000_000_000
MILLISECOND_NS = 1_000_000


def sure(value: Any, confidence: float = 0.9) -> Any:
    """An inferred value."""
    return Inferred[type(value)](value=value, confidence=confidence, basis="stated in the trace")  # type: ignore[misc]


def summary_of(
    *,
    compute_ms: int = 0,
    communication_ms: int = 0,
    exposed_ms: int = 0,
    copy_ms: int = 0,
    unclassified_ms: int = 0,
    window_ms: int = 1000,
    kinds: Mapping[OperatorKind, int] | None = None,
    collectives: Sequence[tuple[Axis, int]] = (),
    message_bytes: int | None = None,
    launch_bound_frac: float | None = None,
    kernels: int = 1000,
    implied: Implied | None = None,
    kernel_name: str = "gemm_kernel",
    device: bool = True,
    ranks: Sequence[tuple[int, int]] = (),
) -> TraceSummary:
    """A trace summary from milliseconds. kinds: kernel time by kind; collectives: exposed time by axis.

    ranks: compute and exposed communication of each rank, in place of compute_ms and exposed_ms.
    """

    def shares(compute: int, exposed: int, communication: int) -> dict[str, int]:
        return {
            "window_ns": window_ms * MILLISECOND_NS,
            "compute_ns": compute * MILLISECOND_NS,
            "communication_ns": communication * MILLISECOND_NS,
            "exposed_communication_ns": exposed * MILLISECOND_NS,
            "copy_ns": copy_ms * MILLISECOND_NS,
            "exposed_copy_ns": copy_ms * MILLISECOND_NS,
            "idle_ns": (window_ms - compute - exposed - copy_ms) * MILLISECOND_NS,
            "unclassified_ns": unclassified_ms * MILLISECOND_NS,
        }

    window = Window(name="whole file", start_ns=0, end_ns=window_ms * MILLISECOND_NS, device=device)

    def rank(number: int, own: Mapping[str, int]) -> RankSummary:
        return RankSummary(
            rank=number,
            device=number,
            file=f"rank{number}.json",
            window=window,
            kernel_count=kernels,
            launch_bound_frac=launch_bound_frac,
            **own,
        )

    own_shares = [shares(compute, exposed, exposed) for compute, exposed in ranks] or [
        shares(compute_ms, exposed_ms, communication_ms or exposed_ms)
    ]
    summed = {name: sum(own[name] for own in own_shares) for name in own_shares[0]}
    return TraceSummary(
        format="kineto",
        files=tuple(f"rank{number}.json" for number in range(len(own_shares))),
        window=window,
        ranks=tuple(rank(number, own) for number, own in enumerate(own_shares)),
        kernel_classes=tuple(
            KernelClassTime(kind=kind, count=10, total_ns=time_ms * MILLISECOND_NS)
            for kind, time_ms in (kinds or {}).items()
        ),
        top_kernels=(KernelTime(name=kernel_name, kind="gemm", count=10, total_ns=compute_ms * MILLISECOND_NS // 2),)
        if compute_ms
        else (),
        collectives=tuple(
            CollectiveTime(
                collective="all_reduce",
                group=axis,
                group_size=8,
                axis=axis,
                count=10,
                total_ns=time_ms * MILLISECOND_NS,
                exposed_ns=time_ms * MILLISECOND_NS,
                message_bytes=message_bytes,
            )
            for axis, time_ms in collectives
        ),
        launch_bound_frac=launch_bound_frac,
        implied=implied or Implied(),
        **summed,
    )


def scaled(summary: TraceSummary, factor: int) -> TraceSummary:
    """The same trace with every time multiplied."""

    def visit(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: item * factor if key.endswith("_ns") and isinstance(item, int) else visit(item)
                for key, item in value.items()
            }
        return [visit(item) for item in value] if isinstance(value, list) else value

    return TraceSummary.model_validate(visit(summary.model_dump(mode="json")))
