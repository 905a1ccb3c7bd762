"""Whether the proposals of one workload meet what experts adopted, strictly, leniently and with tolerance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agents.evaluation.ranking import PROPOSALS, RankedLayout, Ranking
from agents.evaluation.rows import Degrees, MeasuredRow
from agents.evaluation.targets import printed_target
from agents.evaluation.workloads import Workload, adopted_layouts, expert_rows

TOO_LARGE, OUTSIDE = "projected not to fit", "not in the search space"
TOLERANCE, NARROW_TOLERANCE = 0.05, 0.02
# fields a row may print besides the layout, and how they are compared
DETAILS = ("vp", "micro_batch", "recompute")


@dataclass(frozen=True)
class Hits:
    """One ranked workload. rank None: the adopted layout is not among those that fit, `absent` says why."""

    workload: Workload
    adopted: frozenset[Degrees]
    top1: bool
    top3: bool
    top1_strict: bool
    top3_strict: bool
    tolerant: bool
    tolerant_2: bool
    rank: int | None
    absent: str
    flatness: int
    details: tuple[tuple[str, bool], ...]


def hits(workload: Workload, rows: Mapping[str, MeasuredRow], ranking: Ranking) -> Hits:
    """The hits of a ranking with at least one layout.

    lenient   (tp, pp, cp, ep) equal those of an expert row
    strict    so do fsdp and zero_stage where that row prints them
    tolerant  a hit, or a proposal that was measured within 5 % of the adopted layout, or, where it was not measured,
              the adopted layout is projected within 5 % of the best of the three; `tolerant_2`: the same at 2 %
    """
    adopted, experts = adopted_layouts(workload, rows), expert_rows(workload, rows)
    proposals = ranking.layouts[:PROPOSALS]
    in_three = any(one.layout in adopted for one in proposals)
    rank = ranking.place(adopted)
    near = None if rank is None else ranking.layouts[rank - 1].value / max(one.value for one in proposals)
    return Hits(
        workload=workload,
        adopted=adopted,
        top1=proposals[0].layout in adopted,
        top3=in_three,
        top1_strict=_strict(proposals[:1], experts),
        top3_strict=_strict(proposals, experts),
        tolerant=in_three or _as_good(proposals, adopted, measured_layouts(workload, rows), near),
        tolerant_2=in_three or (near is not None and near * (1 + NARROW_TOLERANCE) >= 1),
        rank=rank,
        absent=_absent(rank, adopted, ranking),
        flatness=ranking.within(TOLERANCE),
        details=tuple(_details(proposals, experts)),
    )


def _strict(proposals: Sequence[RankedLayout], experts: Sequence[MeasuredRow]) -> bool:
    return any(one.layout == row.plan.degrees and _shards_alike(one, row) for one in proposals for row in experts)


def _shards_alike(one: RankedLayout, row: MeasuredRow) -> bool:
    fsdp, zero = row.plan.fsdp, row.plan.zero_stage
    return (fsdp is None or max(fsdp, 1) == one.plan.fsdp) and (zero is None or zero == one.plan.zero_stage)


def measured_layouts(workload: Workload, rows: Mapping[str, MeasuredRow]) -> dict[Degrees, float]:
    """Layout -> best measured seconds a token among the workload's rows that are not suspect."""
    found: dict[Degrees, float] = {}
    for name in workload.rows:
        row = rows.get(name)
        target = None if row is None or row.suspect is not None else printed_target(row)
        if row is not None and target is not None:
            layout = row.plan.degrees
            found[layout] = min(found.get(layout, target.s_per_token), target.s_per_token)
    return found


def _as_good(
    proposals: Sequence[RankedLayout],
    adopted: frozenset[Degrees],
    measured: Mapping[Degrees, float],
    near: float | None,
) -> bool:
    """Whether a proposal equals the adopted layout but for a few per cent: by measurement, else by projection."""
    times = [measured[layout] for layout in adopted if layout in measured]
    for one in proposals:
        if times and one.layout in measured:
            if measured[one.layout] <= (1 + TOLERANCE) * min(times):
                return True
        elif near is not None and near * (1 + TOLERANCE) >= 1:
            return True
    return False


def _absent(rank: int | None, adopted: frozenset[Degrees], ranking: Ranking) -> str:
    if rank is not None:
        return ""
    return TOO_LARGE if adopted & ranking.too_large else OUTSIDE


def _details(proposals: Sequence[RankedLayout], experts: Sequence[MeasuredRow]) -> list[tuple[str, bool]]:
    """For every field that a matching expert row prints, whether the proposal of its layout agrees."""
    found = []
    by_layout = {one.layout: one.plan for one in reversed(proposals)}
    for field in DETAILS:
        stated = [
            (getattr(by_layout[row.plan.degrees], field), _stated(row, field))
            for row in experts
            if row.plan.degrees in by_layout and _stated(row, field) is not None
        ]
        if stated:
            found.append((field, any(planned == printed for planned, printed in stated)))
    return found


def _stated(row: MeasuredRow, field: str) -> float | str | None:
    if field == "micro_batch":
        return row.micro_batch
    value: float | str | None = getattr(row.plan, field)
    return value
