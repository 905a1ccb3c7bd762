"""Advise: from weighed signs to ranked remedies, each with its reason, its condition, and a bound on its gain."""

from collections.abc import Sequence

from agents.findings import Evidence
from agents.remedies.facts import Facts
from agents.remedies.remedy import Remedy
from agents.remedies.rule import Judged, RemedyRule
from agents.remedies.symptom import Sign
from agents.remedies.table import BY_LEVER, REMEDIES
from agents.remedies.weighing import Weighed
from agents.remedies.words import gap_in
from agents.wording import percent, quoted

MOST_REMEDIES = 6
MOST_FIRST = 3
LEAST_OF_BEST = 0.25  # of the weight of the likeliest lever; less is not worth a reader's time
DIRECTION_FRAC = {"helps": 1.2, "depends": 1.0, "neutral": 0.5, "hurts": 0.15}
EXPECTED_WHERE_NOT = {"hurts": -0.1, "neutral": 0.0}
REACHABLE_MFU = 0.55  # large dense models on large batches, as the best published training runs report
LEAST_MFU = 1e-3  # a run that reaches less hardly computes, so its MFU bounds nothing
MOST_SHARE = 0.95  # of the time: a share above leaves no bound that means anything


def remedies_of(facts: Facts, weighed: Weighed, *, layout_relieves: bool | None = None) -> tuple[Remedy, ...]:
    """The likeliest remedies, at most six. layout_relieves: whether a layout can relieve the cause, as the diagnosis
    knows it; None: it can where a lever of the layout weighs most.
    """
    ranked = _ranked(facts, weighed)
    if not ranked:
        return ()
    best = ranked[0][1]
    kept = [entry for entry in ranked if entry[1] >= LEAST_OF_BEST * best][:MOST_REMEDIES]
    ahead = _ahead(kept, layout_relieves)
    return tuple(
        remedy_of(rule, judged, facts, weighed, first=rank < ahead) for rank, (rule, _, judged) in enumerate(kept)
    )


def _ranked(facts: Facts, weighed: Weighed) -> list[tuple[RemedyRule, float, Judged]]:
    """Rules by the weight of their signs, less where their condition says that they would not help."""
    found = []
    for place, rule in enumerate(REMEDIES):
        weight = weighed.levers.get(rule.lever, 0.0)
        if rule.lever == "diagnosis" and weighed.ambiguous:
            weight = max(weight, 0.6 * max(weighed.levers.values(), default=1.0))
        if weight > 0:
            judged = rule.judge(facts)
            found.append((weight * DIRECTION_FRAC[judged.direction], place, rule, judged))
    found.sort(key=lambda entry: (-entry[0], entry[1]))
    return [(rule, weight, judged) for weight, _, rule, judged in found]


def _ahead(kept: Sequence[tuple[RemedyRule, float, Judged]], layout_relieves: bool | None) -> int:
    """How many remedies come before the proposals: those that outweigh every lever of the layout."""
    if layout_relieves:
        return 0
    ahead = 0
    for rule, _, judged in kept:
        if rule.layout or judged.direction == "hurts":
            break
        ahead += 1
    return min(ahead, MOST_FIRST)


def remedy_of(rule: RemedyRule, judged: Judged, facts: Facts, weighed: Weighed, *, first: bool) -> Remedy:
    """One rule fitted to the job."""
    signs = [(number, sign) for number, sign in enumerate(weighed.signs, start=1) if rule.lever in sign.cue.levers]
    reasons = [sign for _, sign in signs if not sign.denied and sign.stated_by != "habit"][:2]
    share = _removable(reasons, facts)
    expected, bound, basis = _gain(rule, judged, share, facts)
    why = " ".join(_reason(sign) for sign in reasons)
    return Remedy(
        lever=rule.lever,
        title=rule.title,
        why=why or "Nothing known of the run decides between several causes.",
        relieves=rule.relieves,
        layout=rule.layout,
        first=first,
        condition=f"Helps where {rule.helps}; not where {rule.hurts}"
        + (f". Here: {judged.reads}." if judged.reads else ". What was stated does not say which."),
        direction=judged.direction,
        gain_expected_frac=expected,
        gain_bound_frac=bound,
        gain_basis=basis,
        effort=rule.effort,
        costs=rule.costs,
        evidence=tuple(evidence_id(number) for number, sign in signs if not sign.denied and sign.stated)[:3],
        citations=rule.notes,
    )


def lever_view(lever: str, facts: Facts, weighed: Weighed) -> Remedy | None:
    """What is thought of one lever for this job, whether it is proposed or not; None for a lever not in the table."""
    rule = BY_LEVER.get(lever)
    return remedy_of(rule, rule.judge(facts), facts, weighed, first=False) if rule is not None else None


def _removable(reasons: Sequence[Sign], facts: Facts) -> float | None:
    """The largest share of the time that signs, or a stated gap to a faster run, say could go away."""
    shares = [sign.share for sign in reasons if sign.share is not None and sign.cue.timed]
    gap = gap_in(facts.text)
    if gap is not None:
        shares.append(1 - 1 / gap)
    return max(shares, default=None)


def _gain(
    rule: RemedyRule, judged: Judged, share: float | None, facts: Facts
) -> tuple[float | None, float | None, str]:
    """(expected, bound, basis): 1 / (1 - share x removed) - 1 of throughput, the bound with all of it removed."""
    typical = rule.typical_gain_frac if judged.gain_frac is None else judged.gain_frac
    if judged.direction in EXPECTED_WHERE_NOT:
        return EXPECTED_WHERE_NOT[judged.direction], None, "assumed: its condition does not hold here"
    if share is None or not 0 < share <= MOST_SHARE:
        mfu = facts.observed.mfu_frac
        if mfu is not None and facts.setting != "serving" and LEAST_MFU <= mfu < REACHABLE_MFU:
            most = REACHABLE_MFU / mfu - 1
            basis = (
                f"assumed: usual in public reports; bound: MFU {percent(mfu)} against {percent(REACHABLE_MFU)} in reach"
            )
            return min(typical, most), most, basis
        return typical, None, "assumed: usual in public before/after reports; nothing stated bounds it"
    bound = 1 / (1 - share) - 1
    expected = 1 / (1 - share * rule.removes_frac) - 1
    return expected, bound, f"from the share of {percent(share)} of the time; bound if all of it went away"


def stated_evidence(weighed: Weighed) -> tuple[Evidence, ...]:
    """One Evidence a sign that was stated, in order; what it says is a claim of the user's."""
    return tuple(
        Evidence(
            id=evidence_id(number),
            claim=_claim(sign),
            value=sign.share,
            unit="fraction" if sign.share is not None else "",
            source="stated",
            ref="request.observed" if sign.stated_by == "numbers" else "request.symptom",
        )
        for number, sign in enumerate(weighed.signs, start=1)
        if sign.stated
    )


def evidence_id(number: int) -> str:
    """Id of the sign at that place."""
    return f"ev-stated-{number}"


def _claim(sign: Sign) -> str:
    turned = "speaks against" if sign.denied else "is a sign that"
    return f"'{quoted(sign.sentence, 200)}' {turned}: {sign.cue.says}."


def _reason(sign: Sign) -> str:
    said = f" ('{quoted(sign.sentence, 160)}')" if sign.sentence else ""
    return f"{_capital(sign.cue.says)}{said}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
