"""How idle time scales: the pipeline bubble by its schedule, the rest by launches."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from projector.breakdown import TimeBreakdown
from projector.scaling.term import RESOLUTION_S, Column, Degrees, Move, Term

GRAPHS_SWITCHED_ON = (0.05, 0.3, 1.0)  # idle time left once steps are replayed: assumed
GRAPHS_SWITCHED_OFF = (1.0, 3.0, 10.0)


@dataclass(frozen=True)
class Idle:
    """Idle seconds of every plan; the bubble is a part of the total. `notes` with the plans they hold for."""

    total: Term
    bubble_s: Column
    notes: tuple[tuple[str, NDArray[np.bool_]], ...]


def scale_idle(move: Move, measured: TimeBreakdown, busy: Term) -> Idle:
    """Idle time of each plan; busy: seconds of compute and exposed communication of each plan.

    bubble' = k * (P' - 1) / (m' V') * busy', with k the measured bubble over that formula (1 where none was measured).
    rest' = rest * factor between launches' / launches = (m' / P') / (m / P) (a host that cannot keep up) and
    busy' / busy (ranks that wait for each other); a serving step launches its layers once: P / P'.
    """
    busy_before = measured.compute_s + measured.exposed_communication_s
    before, after = _bubble_share(move, move.before)[0], _bubble_share(move, move.after)
    bubble_before, measured_bubble = _measured_bubble(measured, before, busy_before)
    theory = before * busy_before
    scale = bubble_before / theory if theory > RESOLUTION_S and bubble_before > 0 else 1.0
    bubble = busy.times(scale * after)
    rest = measured.idle_s - bubble_before
    waiting = busy.estimate / busy_before if busy_before > RESOLUTION_S else np.ones(len(move.after.plans))
    launches = _launches(move.after, move.serving) / _launches(move.before, move.serving)
    others = Term.between(launches, waiting)
    total = bubble + (others * _graphs(move)).times(rest)
    notes = [("part of the idle time is taken for the pipeline bubble by its schedule", after > 0)]
    graphs = ("the share of idle time that graph replay removes is assumed", move.changed("cuda_graphs"))
    return Idle(total, bubble.estimate, (*(notes if before > 0 and not measured_bubble else []), graphs))


def _bubble_share(move: Move, d: Degrees) -> Column:
    """(P - 1) / (m V) of the busy time (arXiv:2104.04473, section 2.2); a serving pipeline is assumed full.

    With a forward pass, input and weight gradients of equal length a third of it is left by ZB-H1 (arXiv:2401.10241,
    section 2.3), and (P - 2) / (3 m) by DualPipe (arXiv:2412.19437, table 2).
    """
    if move.serving:
        return np.zeros_like(d.pp)
    schedule = d.plans.schedule
    plain = (d.pp - 1.0) / (d.rounds * d.vp)
    two_way = np.maximum(d.pp - 2.0, 0.0) / (3.0 * d.rounds)
    return np.select([schedule == "zero_bubble", schedule == "dualpipe"], [plain / 3.0, two_way], plain)


def _measured_bubble(measured: TimeBreakdown, share: float, busy_s: float) -> tuple[float, bool]:
    """Seconds of the measured idle time that are bubble, and whether they were measured as such."""
    if measured.bubble_s is not None:
        return min(measured.bubble_s, measured.idle_s), True
    return min(share * busy_s, measured.idle_s), False


def _launches(d: Degrees, serving: bool) -> Column:
    return 1.0 / d.pp if serving else d.rounds / d.pp


def _graphs(move: Move) -> Term:
    changed = move.changed("cuda_graphs")
    on = np.asarray(move.after.plans.cuda_graphs, dtype=bool)
    ends = zip(GRAPHS_SWITCHED_ON, GRAPHS_SWITCHED_OFF, strict=True)
    return Term(*(np.where(changed, np.where(on, left, grown), 1.0) for left, grown in ends))
