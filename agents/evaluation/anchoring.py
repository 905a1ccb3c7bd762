"""`eval anchor`: one measured run of a sweep is taken as a trace, the others are projected with and without it.

Only the length of a published step is known, so the anchor is one ratio for the whole step, and how much of it another
plan keeps is what is held against measurement here. Every run of a sweep is the anchor once; a pair is (anchor, other).
Every sweep weighs the same, whatever its size.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agents.evaluation.accuracy import Say, reasons, sort_rows
from agents.evaluation.anchor_figures import Pairs, anchor_figures, fold_figures
from agents.evaluation.reports_anchor import AnchorReport
from agents.evaluation.rows import MeasuredRow, Unreadable
from agents.evaluation.scored import Scored
from agents.evaluation.sweeps import same_day
from projector.anchor.anchored_batch import AnchoredBatch
from projector.anchor.measured_step import MeasuredStep
from projector.anchor.ratios import anchor_of
from projector.project import project_many
from projector.scaling.term import Move
from projector.specs.plan_batch import PlanBatch

# half the doublings of all degrees: beyond, nothing is left of a ratio in the sweeps this was chosen on
FAR_DOUBLINGS = 3.0
NO_ONE_STEP = "a step of reinforcement learning is made of generation and several passes, not of one training step"
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Sweep:
    """Runs of one sweep that share a workload, a model, a machine and a stack: projected together."""

    name: str
    group: str
    ones: tuple[Scored, ...]

    @property
    def measured_s(self) -> Values:
        """Seconds a step, shape [n]."""
        return np.array([one.measured_s for one in self.ones], dtype=np.float64)


def anchor_report(
    rows: Iterable[MeasuredRow | Unreadable], strata: Mapping[str, str], *, say: Say = lambda _: None
) -> AnchorReport:
    """The report over all rows."""
    found = sort_rows(rows, strata, say)
    timed = [one for one in found.scored if one.measured_s is not None]
    refused = [(one.case.row.id, NO_ONE_STEP) for one in timed if one.case.rl]
    sweeps = _sweeps([one for one in timed if not one.case.rl])
    say(f"{sum(len(sweep.ones) for sweep in sweeps)} runs in {len(sweeps)} sweeps; anchoring")
    pairs: list[Pairs] = []
    for sweep in sweeps:
        pairs += _pairs_of(sweep, refused)
    return AnchorReport(
        n_given=found.lines,
        n_sweeps=len(sweeps),
        n_runs=sum(len(sweep.ones) for sweep in sweeps),
        n_groups=len({sweep.group for sweep in sweeps}),
        **anchor_figures(pairs),
        folds=fold_figures(pairs),
        refused_anchors=reasons(refused, with_ids=True),
    )


def _sweeps(timed: Sequence[Scored]) -> list[Sweep]:
    members: dict[tuple[Hashable, ...], list[Scored]] = defaultdict(list)
    for one in timed:
        case = one.case
        key = (same_day(case.row), one.workload, case.architecture, case.cluster, case.hardware.id, case.software)
        members[key].append(one)
    return [
        Sweep(ones[0].case.row.workload_id, ones[0].case.row.group, tuple(ones))
        for ones in members.values()
        if len({one.case.row.configuration for one in ones}) > 1
    ]


def _pairs_of(sweep: Sweep, refused: list[tuple[str, str]]) -> list[Pairs]:
    case = sweep.ones[0].case
    batch = PlanBatch.from_plans([one.projection.plan for one in sweep.ones])
    workload = sweep.ones[0].workload
    modelled = project_many(batch, workload, case.architecture, case.cluster, case.hardware, software=case.software)
    configurations = [one.case.row.configuration for one in sweep.ones]
    found = []
    for place, one in enumerate(sweep.ones):
        assert one.measured_s is not None
        now = project_many(
            PlanBatch.from_plans([one.projection.plan]),
            workload,
            case.architecture,
            case.cluster,
            case.hardware,
            software=case.software,
        )
        anchor = anchor_of(now, MeasuredStep(total_s=one.measured_s))
        if isinstance(anchor, str):
            refused.append((one.case.row.id, anchor))
            continue
        anchored = AnchoredBatch.of(modelled, anchor, case.cluster, case.hardware)
        # rows that differ in what the vocabulary does not hold are the same plan: no neighbour
        others = np.array([configuration != configurations[place] for configuration in configurations])
        others &= ~anchored.transport.move.unchanged
        if not others.any():
            continue
        (low, high), (plain_low, plain_high) = anchored.factors, anchored.unanchored_factors()
        found.append(
            Pairs(
                sweep=sweep.name,
                group=sweep.group,
                source=case.row.source,
                distance=_distances(anchored.transport.move)[others],
                measured_s=sweep.measured_s[others],
                modelled_s=modelled.step_time_s[others],
                anchored_s=anchored.step_time_s[others],
                ratio=anchor.ratio,
                held=anchored.transport.whole()[others],
                low=low[others],
                high=high[others],
                plain_low=plain_low[others],
                plain_high=plain_high[others],
            )
        )
    return found


def _distances(move: Move) -> NDArray[np.str_]:
    """The class of each plan: what differs from the anchor's, the gravest first."""
    layout = move.changed("tp") | move.changed("cp") | move.changed("ep")
    far = move.doublings > FAR_DOUBLINGS
    return np.select(
        [move.changed("compute_dtype"), far, layout, move.changed("recompute"), move.changed("pp")],
        ["another dtype", "far", "another tp, cp or ep", "another recompute", "another pp"],
        "same degrees",
    )
