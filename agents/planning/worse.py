"""What gets worse: every figure of a proposal that moves the wrong way by more than the noise of a projection.

Terms of the step are counted for the same work, so that plans whose steps make different numbers of tokens compare:
the seconds that the reference's tokens would take. Sorted by how much is lost: time as a share of the reference's step,
memory of the device's, other figures of what they were.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from agents.planning.aims import MEMORY_TERMS, TIME_TERMS, seconds_for_the_work
from agents.planning.expected import SAME_FRAC
from agents.planning.job import Job
from agents.planning.reference import Reference
from agents.proposal_parts import RESOURCE_WORDS, Effort, Worsening
from agents.wording import duration, gigabytes, percent
from projector.breakdown import Axis, Projection
from projector.specs.plan import ParallelismPlan
from projector.units import bytes_to_gb, s_to_ms

MOST_SHOWN = 8
UNKNOWN_SIZE = -1.0


@dataclass(frozen=True)
class _Loss:
    size: float
    entry: Worsening


def worsenings(
    plan: ParallelismPlan, after: Projection, reference: Reference, effort: Effort, job: Job
) -> tuple[Worsening, ...]:
    """What gets worse against the reference, the worst first; () where nothing does."""
    before = reference.projection
    found = [
        *_time(before, after),
        *_memory(before, after),
        *(_serving(before, after) if job.phase == "serving" else _batch(reference.plan, plan)),
        *_adoption(effort, reference),
    ]
    found.sort(key=lambda loss: -loss.size)
    return tuple(loss.entry for loss in found[:MOST_SHOWN])


def _time(before: Projection, after: Projection) -> Iterator[_Loss]:
    step_s, after_s = before.breakdown.total_s, after.breakdown.total_s
    if step_s <= 0 or after_s <= 0:
        return
    # seconds of the reference's work that a second of the other step stands for
    work = step_s / after_s * seconds_for_the_work(after) / seconds_for_the_work(before)
    terms = {RESOURCE_WORDS[term]: field for term, field in TIME_TERMS.items() if term != "idle"}
    for what, field in terms.items():
        yield from _longer(what, getattr(before.breakdown, field), getattr(after.breakdown, field) * work, step_s)
    bubbles = before.breakdown.bubble_s or 0.0, (after.breakdown.bubble_s or 0.0) * work
    yield from _longer("pipeline bubble", *bubbles, step_s)
    idle = before.breakdown.idle_s - bubbles[0], after.breakdown.idle_s * work - bubbles[1]
    yield from _longer("idle time outside the pipeline bubble", *idle, step_s)
    axes = {entry.axis: entry.exposed_s for entry in before.breakdown.by_axis}
    for entry in after.breakdown.by_axis:
        yield from _longer(_axis_words(entry.axis), axes.get(entry.axis, 0.0), entry.exposed_s * work, step_s)


def _axis_words(axis: Axis) -> str:
    return f"exposed communication of {axis}" if axis != "unknown" else "exposed communication of no known axis"


def _longer(what: str, old_s: float, new_s: float, step_s: float) -> Iterator[_Loss]:
    size = (new_s - old_s) / step_s
    if size > SAME_FRAC:
        text = (
            f"{what} for the same work grows from {duration(old_s)} to {duration(new_s)}, {percent(size)} of the step"
        )
        yield _Loss(size, Worsening(what=what, before=s_to_ms(old_s), after=s_to_ms(new_s), unit="ms", text=text))


def _memory(before: Projection, after: Projection) -> Iterator[_Loss]:
    if before.memory is None or after.memory is None:
        if after.memory_direction in ("more", "unknown"):
            known = "it needs more" if after.memory_direction == "more" else "whether it needs more is not known either"
            text = f"memory is not known, as the model is unknown; {known}"
            yield _Loss(UNKNOWN_SIZE, Worsening(what="memory", before=None, after=None, unit="GB", text=text))
        return
    capacity = before.memory.capacity_bytes
    items = {RESOURCE_WORDS[term]: fields for term, fields in MEMORY_TERMS.items()}
    for what, fields in {"memory of the fullest device": ("total_bytes",), **items}.items():
        old = sum(getattr(before.memory, field) for field in fields)
        new = sum(getattr(after.memory, field) for field in fields)
        size = (new - old) / capacity
        if size > SAME_FRAC:
            text = f"{what} grows from {gigabytes(old)} to {gigabytes(new)} of {gigabytes(capacity)}"
            yield _Loss(
                size, Worsening(what=what, before=bytes_to_gb(old), after=bytes_to_gb(new), unit="GB", text=text)
            )


def _serving(before: Projection, after: Projection) -> Iterator[_Loss]:
    for what, field in (
        ("time to the first token", "ttft_s"),
        ("time between tokens", "tpot_s"),
        ("latency of a request", "request_latency_s"),
    ):
        old, new = getattr(before, field), getattr(after, field)
        if old and new and new / old - 1 > SAME_FRAC:
            text = f"{what} grows from {duration(old)} to {duration(new)}"
            yield _Loss(
                new / old - 1, Worsening(what=what, before=s_to_ms(old), after=s_to_ms(new), unit="ms", text=text)
            )
    for what, field, unit in (
        ("requests that the KV pools hold", "max_concurrency", "requests"),
        ("decoded tokens a second and chip", "decode_tokens_per_s_per_chip", "tokens/s/chip"),
    ):
        old, new = getattr(before, field), getattr(after, field)
        if old and new is not None and 1 - new / old > SAME_FRAC:
            text = f"{what} fall from {old:,.0f} to {new:,.0f}"
            yield _Loss(1 - new / old, Worsening(what=what, before=old, after=new, unit=unit, text=text))


def _batch(before: ParallelismPlan, after: ParallelismPlan) -> Iterator[_Loss]:
    """Smaller matrices a pass, and fewer sequences a rank to hide communication behind."""
    for what, old, new in (
        ("sequences a data rank pushes through at once", before.micro_batch, after.micro_batch),
        (
            "sequences a data rank takes a step",
            before.micro_batch * before.grad_accum,
            after.micro_batch * after.grad_accum,
        ),
    ):
        if new < old:
            text = f"{what} fall from {old} to {new}"
            yield _Loss(
                # a loss in itself only by what it does to time, which is listed as such
                0.0,
                Worsening(what=what, before=float(old), after=float(new), unit="sequences", text=text),
            )


def _adoption(effort: Effort, reference: Reference) -> Iterator[_Loss]:
    if reference.is_current and effort == "reshard":
        text = "the checkpoint has to be cut anew for the layout, unless its format is independent of it"
        yield _Loss(0.0, Worsening(what="checkpoint", before=None, after=None, unit="", text=text))
