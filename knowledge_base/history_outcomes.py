"""Which past cases a newer one replaces, and which two say the opposite of one change."""

import re
from collections.abc import Iterable, Mapping, Sequence

from knowledge_base.history_differs import differences, same_framework
from knowledge_base.past import Contradiction, PastCase

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
# degrees whose growth or shrinking is the direction of a change
DIRECTED = ("dp", "fsdp", "zero_stage", "tp", "pp", "vp", "cp", "ep", "etp", "attention_dp", "micro_batch")
MOST_CONTRADICTIONS = 3


def workload_key(case: PastCase) -> tuple[object, ...]:
    """What two cases must share for the newer one to replace the other."""
    change = () if case.kind == "published" else (case.baseline, case.levers)
    sizes = (case.seq_len, case.global_batch, case.input_len, case.output_len, case.concurrency)
    return (case.phase, case.task, case.group, case.chips, case.precision, *sizes, *change)


def stale_of(case: PastCase, rivals: Iterable[PastCase]) -> str:
    """Why a newer case replaces this one; empty where none does. `rivals`: of its workload, or that say they do."""
    rivals = tuple(rivals)
    replacing = next((rival for rival in rivals if rival.supersedes == case.id), None)
    if replacing is not None:
        return f"superseded by {replacing.id}"
    newer = [rival for rival in rivals if rival.id != case.id and _newer(rival, case)]
    if not newer:
        return ""
    newest = max(newer, key=lambda rival: (rival.year_month, _version(rival.release), rival.id))
    when = newest.release or newest.year_month
    return f"older than {newest.id}, of the same workload{f' ({when})' if when else ''}"


def contradictions(case: PastCase, others: Sequence[PastCase]) -> tuple[Contradiction, ...]:
    """Changes by the same levers under the same regime with the opposite outcome, the most alike first."""
    found = [
        Contradiction(case_id=other.id, differs=(*_moved(other, case), *differences(other, case)))
        for other in others
        if other.id != case.id and _comparable(case, other) and _opposite(case, other)
    ]
    return tuple(sorted(found, key=lambda one: (len(one.differs), one.case_id))[:MOST_CONTRADICTIONS])


def _moved(other: PastCase, case: PastCase) -> tuple[str, ...]:
    """What the other change moved, where that is told in other words than this one's."""
    return (f"changed {other.change}",) if other.change != case.change else ()


def _newer(rival: PastCase, case: PastCase) -> bool:
    """Whether a case is of a later date, or of a later release of the same framework; unknown is never newer."""
    known = rival.framework is not None and case.framework is not None
    if known and not same_framework(rival.framework or "", case.framework or ""):
        return False
    mine, theirs = case.year_month, rival.year_month
    shared = min(len(mine), len(theirs))
    if shared and mine[:shared] != theirs[:shared]:
        return theirs > mine
    if shared and rival.recorded_at is not None and case.recorded_at is not None:
        return rival.recorded_at > case.recorded_at
    return known and _version(rival.release) > _version(case.release) > ()


def _version(release: str | None) -> tuple[float, ...]:
    """The first number of a release with its parts: "NeMo 26.04.01" -> (26, 4, 1)."""
    found = re.search(r"\d+(?:\.\d+)*", release or "")
    return tuple(float(part) for part in found[0].split(".")) if found else ()


def _comparable(case: PastCase, other: PastCase) -> bool:
    """The same levers under the same regime, both with a measured direction."""
    if case.kind != "change" or other.kind != "change" or set(case.levers) != set(other.levers) or not case.levers:
        return False
    if {case.effect.outcome, other.effect.outcome} - {"improved", "worse"}:
        return False
    regime = ((case.phase, other.phase), (case.moe, other.moe), (case.bottleneck, other.bottleneck))
    return all(mine == theirs or mine is None or theirs is None for mine, theirs in regime)


def _opposite(case: PastCase, other: PastCase) -> bool:
    """Whether the same move had another outcome, or the opposite move the same one."""
    same = case.effect.outcome == other.effect.outcome
    mine, theirs = _directions(case), _directions(other)
    shared = mine.keys() & theirs.keys()
    signs = {mine[field] * theirs[field] for field in shared}
    if signs:
        return signs == ({-1} if same else {1})
    if mine or theirs:
        return False
    first, second = _settings(case), _settings(other)
    reversed_move = any((after, before) in second for before, after in first)
    return reversed_move if same else not reversed_move


def _directions(case: PastCase) -> Mapping[str, int]:
    """Setting -> 1 where the change made it larger, -1 where smaller."""
    found: dict[str, int] = {}
    if case.baseline is not None:
        for field in DIRECTED:
            before, after = getattr(case.baseline, field), getattr(case.layout, field)
            if before is not None and after is not None and before != after:
                found[field] = 1 if after > before else -1
    for move in case.moves:
        if _NUMBER.fullmatch(move.before) and _NUMBER.fullmatch(move.after) and move.before != move.after:
            found.setdefault(move.field, 1 if float(move.after) > float(move.before) else -1)
    return found


def _settings(case: PastCase) -> set[tuple[str, str]]:
    return {(move.before.lower(), move.after.lower()) for move in case.moves if move.before and move.after}
