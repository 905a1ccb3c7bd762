"""The ranking rule: which candidates come first, and when a preference may outweigh a projected gain.

Repeatedly, of the candidates that are left:
  1. Let the best one improve the objective by the ratio r.
  2. Candidates within 5 % of r that relieve the diagnosed cause form the field; where there are none, all form it. So a
     relieving plan goes first unless another one is clearly faster. A plan relieves the cause by a lever of ours, or by
     one that a note about the cause names, if the note holds for the plan and the projection shows the relief.
  3. Where some of the field within 5 % of its best leave a tenth of the memory free, only such plans stay in it: the
     last tenth is where a run turns slow or fails.
  4. Among those within 1 % (the noise of a projection) of the field's best, the plan wins that uses other axes than the
     picks above it, then has no note against it, then the lower effort to adopt, a note that holds for it, fewer
     changes (where something runs that is changed), the model split over fewer devices, the higher gain, its place in
     the projector's order. A note that holds is no reason to do more work for the same gain.
     A measured step that is only scaled tells plans 3 % apart at best, and the worse the farther a layout is from the
     measured one: there the plan comes first that doubles and halves fewest degrees.
The next pick must have another layout while one is left whose layout is new, and another aim while a plan of another
aim comes close (`diversity`, unless the question switches that off).
Where the goal is to fit, the order is that of adoption alone: plans with a tenth of the memory free before others, then
the lower effort, fewer changes, the higher gain; a current plan that fits is kept.
Where nothing runs yet and published runs say something of the layouts, these come by `adopted_order` instead, and
points 2 to 4 choose among the plans of one layout.
When no layout removes the cause, the plan that relieves it by the fewest changes goes first if it gains at all.
"""

from collections.abc import Sequence
from math import log2

from agents.advisors.adopted_order import is_by_practice, likeliest
from agents.advisors.diversity import without_near_duplicates
from agents.advisors.protocol import AdvisorInput, Candidate
from agents.proposal_parts import EFFORTS
from projector.specs.plan import ParallelismPlan

NOISE_FRAC = 0.01
PREFERENCE_FRAC = 0.05
TIGHT_MEMORY_FRAC = 0.90
# half of the range that each doubling of a layout adds to scaled compute (`projector.scaling.work`)
RELATIVE_NOISE_FRAC = 0.03
SCALED_FIELDS = ("dp", "tp", "pp", "cp", "ep", "micro_batch")


def rank(question: AdvisorInput) -> tuple[Candidate, ...]:
    """`question.wanted` candidates, best first. "Keep" leads when the best gains no more than the noise."""
    rest = list(question.candidates)
    picked: list[Candidate] = []
    by_practice = is_by_practice(question)
    while rest and len(picked) < question.wanted:
        if by_practice:
            choice = best_of(question, likeliest(question, rest, picked), ())
        elif not picked:
            choice = _leader(question, rest)
        else:
            choice = best_of(question, _fresh(question, rest, picked), picked)
        picked.append(choice)
        rest.remove(choice)
    return tuple(picked)


def _leader(question: AdvisorInput, rest: Sequence[Candidate]) -> Candidate:
    """The plain relieving lever when no layout helps, otherwise the best; the kept plan when that gains nothing."""
    kept = next((candidate for candidate in rest if candidate.keeps), None)
    if question.goal == "fits":
        return kept or best_of(question, rest, ())
    relieving = [candidate for candidate in rest if candidate.relieving and candidate.gain_frac > NOISE_FRAC]
    if relieving and not question.layout_relieves:
        return min(relieving, key=lambda candidate: (len(candidate.changes), -candidate.gain_frac))
    fresh = _fresh(question, rest, ())
    best = best_of(question, fresh, ())
    # the nearest of scaled plans stands for all that scaling cannot tell from it
    gain = max(one.gain_frac for one in fresh) if _is_scaled(question) else best.gain_frac
    return kept if kept is not None and gain <= NOISE_FRAC else best


def _fresh(question: AdvisorInput, rest: Sequence[Candidate], picked: Sequence[Candidate]) -> list[Candidate]:
    """Candidates with a layout not picked yet, all when there are none; of these no near-duplicates of a pick where
    the question wants them apart. The kept plan never fills a lower place.
    """
    used = {candidate.plan.layout for candidate in picked}
    changing = [candidate for candidate in rest if not candidate.keeps] or list(rest)
    fresh = [candidate for candidate in changing if candidate.plan.layout not in used] or changing
    return without_near_duplicates(fresh, picked) if question.diversity else fresh


def family_of(plan: ParallelismPlan) -> tuple[bool, ...]:
    """Which axes a layout uses: two layouts of one family differ in degrees only."""
    axes = (plan.tp > 1, plan.pp > 1, plan.cp > 1, plan.ep > 1, plan.attention_dp > 1)
    return (*axes, plan.fsdp == plan.dp, 1 < plan.fsdp < plan.dp)


def best_of(question: AdvisorInput, pool: Sequence[Candidate], picked: Sequence[Candidate]) -> Candidate:
    """The order rule: the candidate of the pool that comes next behind those picked (points 1 to 4)."""
    if question.goal == "fits":
        return min(pool, key=_adoption)
    field = [candidate for candidate in _within(pool, PREFERENCE_FRAC) if _relieves(candidate)] or list(pool)
    field = [candidate for candidate in _within(field, PREFERENCE_FRAC) if not is_tight(candidate)] or field
    families = frozenset(family_of(pick.plan) for pick in picked)
    scaled = _is_scaled(question)
    if scaled:
        field = [candidate for candidate in field if _scaling_sees(question, candidate)] or field

    def preference(candidate: Candidate) -> tuple[float, bool, bool, int, bool, int, int, float]:
        plan = candidate.plan
        return (
            doublings(question.reference.plan, plan) if scaled else 0.0,
            family_of(plan) in families,
            support(candidate) < 0,
            EFFORTS.index(candidate.effort),
            support(candidate) <= 0,
            len(candidate.changes) if question.reference_is_current else 0,
            plan.tp * plan.pp * plan.cp * plan.ep,
            -candidate.gain_frac,
        )

    return min(_within(field, RELATIVE_NOISE_FRAC if scaled else NOISE_FRAC), key=preference)


def _scaling_sees(question: AdvisorInput, candidate: Candidate) -> bool:
    """Whether scaling the measured step says anything of the plan: it moves a degree, or gains by more than noise."""
    return doublings(question.reference.plan, candidate.plan) > 0 or candidate.gain_frac > NOISE_FRAC


def _is_scaled(question: AdvisorInput) -> bool:
    return question.reference.source == "relative"


def doublings(before: ParallelismPlan, after: ParallelismPlan) -> float:
    """How far one plan is from another: degrees and micro-batch doubled and halved (dp 8 cp 8 to dp 16 cp 4: 2)."""
    return sum(abs(log2(getattr(after, field) / getattr(before, field))) for field in SCALED_FIELDS)


def _adoption(candidate: Candidate) -> tuple[bool, int, int, float]:
    return is_tight(candidate), EFFORTS.index(candidate.effort), len(candidate.changes), -candidate.gain_frac


def support(candidate: Candidate) -> int:
    """1 where notes hold for the plan and none speaks against it, -1 the other way round, 0 otherwise."""
    holding = [standing.holds for standing in candidate.standings]
    return int(any(holding)) - int(not all(holding))


def _relieves(candidate: Candidate) -> bool:
    named = any(standing.holds and standing.relieves for standing in candidate.standings)
    return bool(candidate.relieving) or (candidate.shows_relief and named and support(candidate) > 0)


def _within(pool: Sequence[Candidate], frac: float) -> list[Candidate]:
    """Candidates whose objective is within the fraction of the pool's best."""
    best = max(1 + candidate.gain_frac for candidate in pool)
    return [candidate for candidate in pool if 1 + candidate.gain_frac >= best / (1 + frac)]


def is_tight(candidate: Candidate) -> bool:
    """Whether less than a tenth of the memory stays free; False where memory is not known.

    A KV pool takes what is left by design: a serving plan is tight when all else fills the chip.
    """
    memory = candidate.projection.memory
    if memory is None:
        return False
    pool = memory.kv_cache_bytes if candidate.plan.phase == "serving" else 0.0
    return memory.total_bytes - pool > TIGHT_MEMORY_FRAC * memory.capacity_bytes
