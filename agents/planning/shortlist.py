"""Shortlist: of all feasible plans the few that an advisor should look at, each with its numbers and what it changes.

From possibly thousands of plans are kept:
  - for each of the best layouts the simplest plan within 1 % of that layout's best (extra changes that gain nothing are
    dropped), and the same for the best layout of each family (which axes are in use) and of each axis enlarged,
  - the same again among the plans that leave a tenth of the memory free,
  - on the reference's layout, the best plan that pulls only one lever, for each lever,
  - where a measured step is only scaled, the layouts next to the measured one, which it says most about,
  - where layouts are too few to choose three from, the best plan of each set of changed fields, then the next best,
  - where the goal is to fit, the plans that change fewest fields,
  - the current plan, so that "keep" can be said,
  - what the caller asks for besides: plans that a retrieved note speaks for.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from agents.advisors.protocol import Candidate, LeverView, Step
from agents.advisors.ranking import NOISE_FRAC, TIGHT_MEMORY_FRAC, doublings, family_of
from agents.causes import NOT_LAYOUT
from agents.findings import Evidence
from agents.gains import objective_change
from agents.planning.adoption import effort_of
from agents.planning.aims import enlarged_axis, resource_of
from agents.planning.attribution import steps_of
from agents.planning.expected import Outlook, expected_change, outlook_of, relieves
from agents.planning.job import Job
from agents.planning.numerics import NUMERIC_FIELDS
from agents.planning.reference import Reference
from agents.planning.scores import Scores
from agents.planning.titles import SERVING_ONLY, TRAINING_ONLY, changes_of, layout_title, title_of
from agents.proposal_parts import Effort
from agents.wording import duration, gigabytes, percent
from projector.breakdown import Projection
from projector.levers import LEVERS, Lever, changed_levers
from projector.specs.bottleneck import Cause
from projector.specs.plan import LAYOUT_FIELDS, ParallelismPlan
from projector.specs.plan_batch import FIELDS, PlanBatch
from projector.units import bytes_to_gb, s_to_ms

MOST_LAYOUTS = 8
MOST_FAMILIES = 8
MOST_VARIANTS = 6
FEW_LAYOUTS = 3
ONE_MOVE = 2.0  # doublings: one degree twice, another half
FREE_FIELDS = frozenset({"phase", "grad_accum"})

Rows = NDArray[np.intp]


def shortlist(
    scores: Scores,
    passing: NDArray[np.bool_],
    job: Job,
    reference: Reference,
    cause: Cause,
    also: Iterable[int] = (),
) -> tuple[Candidate, ...]:
    """Candidates best first, with ids c1, c2, ... in that order. Empty when nothing passes the gates.

    also: rows of the batch to list besides (`layout_rows`).
    """
    batch, good = scores.batch, scores.good
    rows = _eligible(scores, passing, job, reference)
    if rows.size == 0:
        return ()
    changed = _changed(batch, rows, reference.plan)
    counts = changed.sum(axis=1)
    value = good[rows]
    chosen = set(_layout_representatives(batch, rows, value, counts, reference.plan))
    roomy = _roomy(scores, rows)
    if roomy.any() and not roomy.all():
        chosen |= set(_layout_representatives(batch, rows[roomy], value[roomy], counts[roomy], reference.plan))
    chosen |= set(_single_levers(rows, value, changed, job))
    if job.mode == "relative":
        chosen |= set(_neighbours(batch, rows, value, counts, reference.plan))
    if len({_layout(batch, row) for row in rows.tolist()}) < FEW_LAYOUTS:
        chosen |= set(_variants(rows, value, changed))
    if job.goal == "fits":
        chosen |= set(rows[np.lexsort((-value, counts))][:MOST_VARIANTS].tolist())
    chosen |= set(rows[counts == 0][:1].tolist()) | set(also)
    ordered = sorted(chosen, key=lambda row: (-good[row], row))
    steps = steps_of([batch[row] for row in ordered], job, reference)
    return tuple(
        _candidate(f"c{place}", scores, row, taken, job, reference, cause)
        for place, (row, taken) in enumerate(zip(ordered, steps, strict=True), start=1)
    )


def layout_rows(scores: Scores, passing: NDArray[np.bool_], job: Job, reference: Reference) -> list[int]:
    """The simplest of the best plans of every layout that passes the gates, the best layout first."""
    rows = _eligible(scores, passing, job, reference)
    if rows.size == 0:
        return []
    counts = _changed(scores.batch, rows, reference.plan).sum(axis=1)
    return _ranked_representatives(scores.batch, rows, scores.good[rows], counts)


def lever_views(candidates: Iterable[Candidate]) -> tuple[LeverView, ...]:
    """The levers some candidate pulls, in the order of expected impact."""
    pulled = {lever for candidate in candidates for lever in candidate.levers}
    return tuple(_view(lever) for lever in LEVERS if lever.name in pulled)


def allowed(batch: PlanBatch, job: Job, reference: Reference) -> NDArray[np.bool_]:
    """Plans that leave the numerics alone, shape [n]; all when the request allows such changes."""
    mask = np.ones(len(batch), dtype=np.bool_)
    if job.constraints.allow_numerics_changes:
        return mask
    for field in NUMERIC_FIELDS:
        mask &= batch.columns[field] == getattr(reference.plan, field)
    return mask


def _eligible(scores: Scores, passing: NDArray[np.bool_], job: Job, reference: Reference) -> Rows:
    return np.flatnonzero(passing & (scores.good > 0) & allowed(scores.batch, job, reference))


def _changed(batch: PlanBatch, rows: Rows, reference: ParallelismPlan) -> NDArray[np.bool_]:
    """Whether a row changes a field, shape [rows, fields]; fields of the other phase and free ones never count."""
    foreign = SERVING_ONLY if reference.phase == "training" else TRAINING_ONLY
    columns = [
        np.zeros(len(rows), dtype=np.bool_)
        if field in foreign or field in FREE_FIELDS
        else batch.columns[field][rows] != getattr(reference, field)
        for field in FIELDS
    ]
    return np.stack(columns, axis=1)


def _roomy(scores: Scores, rows: Rows) -> NDArray[np.bool_]:
    """Whether a plan leaves a tenth of the memory free, shape [rows]; True throughout where memory is not known, and in
    serving, where the KV pool fills what is free by design.
    """
    memory = scores.projections[int(rows[0])].memory
    if memory is None or scores.batch[int(rows[0])].phase == "serving":
        return np.ones(len(rows), dtype=np.bool_)
    return scores.projections.memory_bytes[rows] <= TIGHT_MEMORY_FRAC * memory.capacity_bytes


def _layout(batch: PlanBatch, row: int) -> tuple[int, ...]:
    return tuple(int(batch.columns[field][row]) for field in LAYOUT_FIELDS)


def _layout_representatives(
    batch: PlanBatch,
    rows: Rows,
    value: NDArray[np.float64],
    counts: NDArray[np.int64],
    reference: ParallelismPlan,
) -> list[int]:
    ranked = _ranked_representatives(batch, rows, value, counts)
    families: dict[tuple[bool, ...], int] = {}
    axes: dict[str | None, int] = {}
    for row in ranked:
        plan = batch[row]
        families.setdefault(family_of(plan), row)
        axes.setdefault(enlarged_axis(reference, plan), row)
    return [*ranked[:MOST_LAYOUTS], *list(families.values())[:MOST_FAMILIES], *axes.values()]


def _neighbours(
    batch: PlanBatch,
    rows: Rows,
    value: NDArray[np.float64],
    counts: NDArray[np.int64],
    reference: ParallelismPlan,
) -> list[int]:
    """The best layouts that double one degree and halve another."""
    ranked = _ranked_representatives(batch, rows, value, counts)
    return [row for row in ranked if 0 < doublings(reference, batch[row]) <= ONE_MOVE][:MOST_LAYOUTS]


def _ranked_representatives(
    batch: PlanBatch, rows: Rows, value: NDArray[np.float64], counts: NDArray[np.int64]
) -> list[int]:
    layouts = np.stack([batch.columns[field][rows] for field in LAYOUT_FIELDS], axis=1)
    _, group = np.unique(layouts, axis=0, return_inverse=True)
    best = np.zeros(group.max() + 1)
    np.maximum.at(best, group, value)
    near = value >= best[group] / (1 + NOISE_FRAC)
    # the first row of each group in this order is its representative
    order = np.lexsort((rows, -value, counts, ~near, group))
    firsts = order[np.unique(group[order], return_index=True)[1]]
    ranked: list[int] = rows[firsts[np.lexsort((rows[firsts], -value[firsts]))]].tolist()
    return ranked


def _single_levers(rows: Rows, value: NDArray[np.float64], changed: NDArray[np.bool_], job: Job) -> list[int]:
    found = []
    for lever in LEVERS:
        if job.phase not in lever.phases:
            continue
        inside = np.isin(np.array(FIELDS), lever.fields)
        pure = changed.any(axis=1) & ~changed[:, ~inside].any(axis=1)
        if pure.any():
            places = np.flatnonzero(pure)
            found.append(int(rows[places[np.argmax(value[places])]]))
    return found


def _variants(rows: Rows, value: NDArray[np.float64], changed: NDArray[np.bool_]) -> list[int]:
    """The best row of each set of changed fields, then the next best rows, a few in all."""
    order = np.lexsort((rows, -value))
    seen: dict[bytes, int] = {}
    for place in order:
        seen.setdefault(changed[place].tobytes(), int(rows[place]))
    return list(dict.fromkeys([*seen.values(), *rows[order].tolist()]))[:MOST_VARIANTS]


def _candidate(
    name: str, scores: Scores, row: int, steps: tuple[Step, ...], job: Job, reference: Reference, cause: Cause
) -> Candidate:
    plan, projection, outlook = scores.batch[row], scores.projections[row], outlook_of(scores, row, reference)
    levers = tuple(lever for lever in changed_levers(reference.plan, plan) if job.phase in lever.phases)
    by_field = {field: _view(lever) for lever in reversed(levers) for field in lever.fields}
    changes = changes_of(reference.plan, plan, by_field)
    shows_relief = _is_relief(projection, outlook, reference, cause)
    relieving = _relieving(levers, steps, cause) if shows_relief else ()
    leading = {field for lever in levers if lever.name in relieving and cause in NOT_LAYOUT for field in lever.fields}
    title = title_of(reference.plan, plan, leading) if reference.is_current else layout_title(reference.plan, plan)
    return Candidate(
        id=name,
        title=title,
        plan=plan,
        projection=projection,
        changes=changes,
        levers=tuple(lever.name for lever in levers),
        relieving=relieving,
        steps=steps,
        effort=effort_of(reference.plan, plan, job, runs=reference.is_current),
        gain_frac=outlook.gain_frac,
        step_time_s=outlook.step_time_s,
        expected=expected_change(projection, outlook, reference, job),
        keeps=reference.is_current and not changes,
        is_reference=not changes,
        evidence=_evidence(name, projection, outlook, job),
        shows_relief=shows_relief,
        resource=resource_of(projection, outlook, reference, cause, job),
        enlarges=enlarged_axis(reference.plan, plan),
    )


def _is_relief(projection: Projection, outlook: Outlook, reference: Reference, cause: Cause) -> bool:
    """Whether the plan relieves something that runs, and gains by it; where memory is short, fitting is the gain."""
    gains = outlook.gain_frac > NOISE_FRAC or cause == "hbm_capacity"
    return reference.is_current and gains and relieves(projection, outlook, reference, cause)


def _relieving(levers: tuple[Lever, ...], steps: tuple[Step, ...], cause: Cause) -> tuple[str, ...]:
    """Levers that relieve the cause and whose step gains; where none is known to, those whose gain is not known."""
    able = [lever.name for lever in levers if cause in lever.relieves]
    gaining = {name for step in steps if (step.gain_frac or 0.0) > NOISE_FRAC for name in step.levers}
    unknown = {name for step in steps if step.gain_frac is None for name in step.levers}
    return tuple(name for name in able if name in gaining) or tuple(name for name in able if name in unknown)


def _evidence(name: str, projection: Projection, outlook: Outlook, job: Job) -> tuple[Evidence, ...]:
    gain, step_time_s = objective_change(outlook.gain_frac, job.target.direction), outlook.step_time_s
    found = [
        Evidence(
            id=f"ev-{name}-step-time",
            claim=f"The step is projected to take {duration(step_time_s)}.",
            value=s_to_ms(step_time_s),
            unit="ms",
            source="modelled",
            ref="projection.step_time_s" if outlook.idle_factor is None else "expected.step_time_frac",
        ),
        Evidence(
            id=f"ev-{name}-gain",
            claim=f"{job.target.meaning}: {percent(abs(gain))} {'better' if gain >= 0 else 'worse'}, as projected.",
            value=gain,
            unit="fraction",
            source="modelled",
            ref=f"projection.{job.objective}",
        ),
    ]
    if projection.memory is not None:
        memory = projection.memory
        claim = f"The fullest chip needs {gigabytes(memory.total_bytes)} of {gigabytes(memory.capacity_bytes)}."
        found.append(
            Evidence(
                id=f"ev-{name}-memory",
                claim=claim,
                value=bytes_to_gb(memory.total_bytes),
                unit="GB",
                source="modelled",
                ref="projection.memory",
            )
        )
    return tuple(found)


def _view(lever: Lever) -> LeverView:
    effort: Effort = lever.effort
    return LeverView(
        name=lever.name,
        summary=lever.summary,
        mechanism=lever.mechanism,
        relieves=lever.relieves,
        numerics=lever.numerics,
        effort=effort,
    )
