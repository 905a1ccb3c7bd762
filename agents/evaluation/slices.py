"""Error figures by one property of the rows at a time."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from agents.evaluation.errors import error_figures
from agents.evaluation.reports import Slice
from agents.evaluation.rows import MeasuredRow
from agents.evaluation.scored import Scored

NO_STRATUM = "not stated"
NO_SPEED = "no speed printed"

# properties a row has whether it could be modelled or not
OF_ROWS: dict[str, Callable[[MeasuredRow], str]] = {
    "source": lambda row: row.source,
    "framework": lambda row: row.framework,
    "chip": lambda row: row.chip.lower(),
    "phase": lambda row: row.phase,
    "framework, chip": lambda row: f"{row.framework}, {row.chip.lower()}",
    "source, framework": lambda row: f"{row.source}, {row.framework}",
}
# properties that only a case has
OF_SCORED: dict[str, Callable[[Scored], str]] = {
    "target": lambda one: NO_SPEED if one.case.target is None else one.case.target.kind,
    "model": lambda one: _kind(one),
    "framework, model": lambda one: f"{one.case.row.framework}, {_kind(one)}",
    "dtype": lambda one: one.projection.plan.compute_dtype,
}
NEWEST = "newest: framework, model"


def slices(
    given: Sequence[MeasuredRow], suspects: frozenset[str], scored: Sequence[Scored], strata: Mapping[str, str]
) -> tuple[Slice, ...]:
    """Slices in the order of the properties, values in alphabetical order."""
    modelled = {one.case.row.id: one for one in scored}
    found = []
    for by, value_of in (*OF_ROWS.items(), ("stratum", lambda row: strata.get(row.workload_id, NO_STRATUM))):
        members: dict[str, list[MeasuredRow]] = defaultdict(list)
        for row in given:
            members[value_of(row)].append(row)
        for value, rows in sorted(members.items()):
            ones = [modelled[row.id] for row in rows if row.id in modelled]
            found.append(_slice(by, value, ones, len(rows), sum(row.id in suspects for row in rows)))
    for by, kind_of in OF_SCORED.items():
        found += _by_case(by, kind_of, scored)
    newest = [one for one in scored if not one.case.row.superseded]
    return (*found, *_by_case(NEWEST, OF_SCORED["framework, model"], newest))


def _by_case(by: str, value_of: Callable[[Scored], str], scored: Sequence[Scored]) -> list[Slice]:
    members: dict[str, list[Scored]] = defaultdict(list)
    for one in scored:
        members[value_of(one)].append(one)
    return [_slice(by, value, ones, len(ones), 0) for value, ones in sorted(members.items())]


def _slice(by: str, value: str, ones: Sequence[Scored], n_given: int, n_suspect: int) -> Slice:
    return Slice(
        by=by,
        value=value,
        n_given=n_given,
        n_suspect=n_suspect,
        n_modelled=len(ones),
        errors=error_figures(ones),
    )


def _kind(one: Scored) -> str:
    return "mixture of experts" if one.case.architecture.is_moe else "dense"
