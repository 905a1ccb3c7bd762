"""History: which past cases bear on a job, exact matches first, and what each does not share with it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np

from knowledge_base.history_columns import Columns, Mask
from knowledge_base.history_differs import question_differences, same_baseline, same_task
from knowledge_base.history_outcomes import contradictions, stale_of, workload_key
from knowledge_base.history_parts import MatchKind
from knowledge_base.past import MOST_MATCHES, PastCase, PastMatch, PastQuestion, group_of
from projector.errors import InvalidDescription, UnknownName

# what is shown at all of other models: figures differ by no more than a factor of four in the weighted mean
LEAST_SIMILARITY = 0.35
# case and job differ in kind beside their figures: each takes this share of the similarity
OTHER_TASK, OTHER_PRECISION, OTHER_CAUSE = 0.8, 0.95, 0.9
# row of the case, kind of match, similarity
Ranked = tuple[int, MatchKind, float]
NOTHING_SAID: Mapping[str, float] = {}
ORDER: tuple[MatchKind, ...] = ("exact", "same model", "same chip", "similar")


class History:
    """Past cases, ready to be compared with. Two cases of one id: the later one replaces the earlier one."""

    def __init__(self, cases: Iterable[PastCase]) -> None:
        self.cases = tuple({case.id: case for case in cases}.values())
        self._columns = Columns(self.cases)

    def get(self, case_id: str) -> PastCase:
        """The case of an id. UnknownName with the nearest ids."""
        found = self._by_id.get(case_id)
        if found is None:
            raise UnknownName("past case", case_id, self._by_id)
        return found

    def past(
        self, question: PastQuestion, *, k: int = 5, near: Mapping[str, float] = NOTHING_SAID
    ) -> tuple[PastMatch, ...]:
        """At most k cases of the job's phase, exact matches first, then the most alike; a layout of one model on one
        machine once.

        Dense cases say nothing of a mixture of experts' layout and the other way round; a change against another
        bottleneck nothing of this one. Where a case is contradicted by another one, that one is among the k, and the
        nearest change is, where any bears on the job. near: cosine of the question's words and each change, by its id;
        it is added to the similarity by which changes are ordered.
        InvalidDescription: k out of range.
        """
        if not 1 <= k <= MOST_MATCHES:
            raise InvalidDescription(f"k {k} is not within 1 to {MOST_MATCHES}")
        if not self.cases:
            return ()
        # told by its family from here on, so that a model history knows by two names is seen as two
        question = question.model_copy(update={"family": self._columns.family_of(question)})
        visible = self._visible(question)
        rows = self._ranked(question, visible, near)
        chosen: dict[tuple[object, ...], Ranked] = {}
        for entry in rows:
            chosen.setdefault(_layout_key(self.cases[entry[0]]), entry)
            if len(chosen) == k:
                break
        taken = self._with_a_change(list(chosen.values()), rows, k)
        found = tuple(self._match(entry, question, visible, near) for entry in taken)
        return self._with_opposites(found, question, rows, visible, near, k)

    def _with_a_change(self, taken: list[Ranked], rows: list[Ranked], k: int) -> list[Ranked]:
        """The rows with the best change in place of the last, where all are published layouts and one bears."""
        if len(taken) < max(k, 3) or any(self.cases[row].kind == "change" for row, _, _ in taken):
            return taken
        best = next((entry for entry in rows if self.cases[entry[0]].kind == "change"), None)
        return taken if best is None else [*taken[:-1], best]

    def _match(self, entry: Ranked, question: PastQuestion, visible: Mask, near: Mapping[str, float]) -> PastMatch:
        row, kind, similarity = entry
        case = self.cases[row]
        rows = (*self._workloads[workload_key(case)], *self._replacing.get(case.id, ()))
        rivals = [self.cases[row] for row in rows if visible[row]]
        changes = [self.cases[row] for row in self._changes if visible[row]] if case.kind == "change" else []
        return PastMatch(
            case=case,
            match=kind,
            similarity=round(similarity, 4),
            word_similarity=near.get(case.id),
            differs=question_differences(case, question),
            stale=stale_of(case, rivals),
            contradicts=contradictions(case, changes),
        )

    def _with_opposites(
        self,
        found: tuple[PastMatch, ...],
        question: PastQuestion,
        rows: list[Ranked],
        visible: Mask,
        near: Mapping[str, float],
        k: int,
    ) -> tuple[PastMatch, ...]:
        """The matches with the case that contradicts the first contradicted one among them, in place of the last."""
        shown = {match.case.id for match in found}
        first = next((match for match in found if match.contradicts), None)
        if first is None or k == 1 or shown & {one.case_id for one in first.contradicts}:
            return found
        wanted = first.contradicts[0].case_id
        opposite = next((row for row in rows if self.cases[row[0]].id == wanted), None)
        if opposite is None:
            return found
        kept = found if len(found) < k else tuple(match for match in found[:-1])
        if first not in kept:
            kept = (*kept[:-1], first)
        extra = self._match(opposite, question, visible, near)
        return tuple(sorted((*kept, extra), key=lambda match: ORDER.index(match.match)))

    def _visible(self, question: PastQuestion) -> Mask:
        """Cases an evaluation has not hidden."""
        hidden = {group_of(*group.rsplit("|", 1)) for group in question.hide_groups if "|" in group}
        sources = question.hide_sources
        if not hidden and not sources:
            return np.ones(len(self.cases), dtype=np.bool_)
        shown = (group not in hidden and case.source.url not in sources for group, case in self._grouped)
        return np.fromiter(shown, dtype=np.bool_, count=len(self.cases))

    def _ranked(self, question: PastQuestion, visible: Mask, near: Mapping[str, float]) -> list[Ranked]:
        """(row, kind of match, similarity) of the cases that bear on the job, the best first."""
        columns, cases = self._columns, self.cases
        bears = visible & (columns.phases == (question.phase == "training"))
        model, family = columns.same_model(question), columns.same_family(question)
        similarity = columns.similarity(question)
        found: list[Ranked] = []
        for row in np.flatnonzero(bears).tolist():
            case, same_model = cases[row], bool(model[row])
            same_chip = question.chip is not None and case.chip == question.chip
            if not same_model and not _bears_on(case, question):
                continue
            value = float(similarity[row]) * _kinship(case, question)
            if not same_model and value < LEAST_SIMILARITY:
                continue
            same_machine = same_chip and question.chips is not None and case.chips == question.chips
            exact = bool(family[row]) and same_machine and same_task(case, question) and same_baseline(case, question)
            kind: MatchKind = (
                "exact" if exact else "same model" if same_model else "same chip" if same_chip else "similar"
            )
            found.append((row, kind, value))

        def order(entry: Ranked) -> tuple[int, float, str]:
            case_id = cases[entry[0]].id
            return ORDER.index(entry[1]), -entry[2] - near.get(case_id, 0.0), case_id

        return sorted(found, key=order)

    @cached_property
    def _by_id(self) -> dict[str, PastCase]:
        return {case.id: case for case in self.cases}

    @cached_property
    def _grouped(self) -> list[tuple[str, PastCase]]:
        return [(case.group, case) for case in self.cases]

    @cached_property
    def _workloads(self) -> dict[tuple[object, ...], list[int]]:
        rows = defaultdict(list)
        for row, case in enumerate(self.cases):
            rows[workload_key(case)].append(row)
        return rows

    @cached_property
    def _replacing(self) -> dict[str, list[int]]:
        rows = defaultdict(list)
        for row, case in enumerate(self.cases):
            if case.supersedes is not None:
                rows[case.supersedes].append(row)
        return dict(rows)

    @cached_property
    def _changes(self) -> list[int]:
        return [row for row, case in enumerate(self.cases) if case.kind == "change"]


def _bears_on(case: PastCase, question: PastQuestion) -> bool:
    """Whether a case of another model says anything of this job."""
    if case.moe is not None and question.moe is not None and case.moe != question.moe:
        return False
    against = case.bottleneck if case.kind == "change" else None
    return against is None or question.bottleneck is None or against == question.bottleneck


def _kinship(case: PastCase, question: PastQuestion) -> float:
    """The share of the similarity that is left where case and job differ in kind."""
    share = 1.0 if same_task(case, question) else OTHER_TASK
    pairs = (
        (case.precision, question.precision, OTHER_PRECISION),
        (case.cause, question.cause, OTHER_CAUSE),
    )
    for mine, asked, left in pairs:
        if mine is not None and asked is not None and mine != asked:
            share *= left
    return share


def _layout_key(case: PastCase) -> tuple[object, ...]:
    """Cases that would tell a reader the same: one model on one machine in one layout, or one change."""
    change = (case.baseline, case.levers, case.moves, case.effect.outcome) if case.kind == "change" else ()
    layout = case.layout
    degrees = (layout.dp, *layout.degrees, layout.etp, layout.attention_dp, layout.disaggregated)
    return (case.kind, case.origin, case.group, case.chips, degrees, *change)
