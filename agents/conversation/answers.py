"""Answers composed from a plan: every sentence repeats figures of it and says which keys it rests on."""

from collections.abc import Callable, Iterator, Mapping

from agents.conversation.records import Intent, Reading, Statement
from agents.findings import PlanResult, Proposal
from agents.wording import duration, gigabytes, listed, percent, signed_percent

CAN_ASK = (
    "which one first, why (or why not tp 4), how sure, what gets worse, what of memory, how to test it, what if "
    "(64 chips, tp 8, a batch of 512), or a fact that holds: 'TP must stay 8', 'only 60 GB of memory', 'topology 8x16'"
)


def statements_of(reading: Reading, result: PlanResult) -> tuple[Statement, ...]:
    """The answer to a question that needs no new plan."""
    if not result.proposals:
        return (Statement(text=_nothing(result), rests_on=("fewer_because", "not_plannable")),)
    missing = [rank for rank in reading.about if not 1 <= rank <= len(result.proposals)]
    if missing:
        count = len(result.proposals)
        return (Statement(text=f"There is no proposal {missing[0]}: {count} stand.", rests_on=("proposals",)),)
    return tuple(ANSWERS[reading.intent](result, reading.about))


def comparison(before: PlanResult, after: PlanResult, *, holds: bool) -> tuple[Statement, ...]:
    """What another situation changes: the first proposal there beside the first one here.

    holds: the situation is a fact from now on, not one to try.
    """
    lead = "With this fact" if holds else "In that case"
    if not after.proposals:
        return (Statement(text=f"{lead} nothing can be proposed: {_nothing(after)}", rests_on=("fewer_because",)),)
    now, then = (result.proposals[0] if result.proposals else None for result in (before, after))
    assert then is not None
    same = now is not None and now.plan == then.plan
    texts = [
        f"{lead} the first proposal {'stays' if same else 'is'} '{then.title}': {_figures(then)}.",
        *([f"Before it was '{now.title}': {_figures(now)}."] if now is not None and not same else []),
        f"{after.candidates_feasible} of {after.candidates_considered} legal plans pass the gates there, "
        f"{before.candidates_feasible} of {before.candidates_considered} before.",
    ]
    return tuple(Statement(text=text, rests_on=("proposals.1", "candidates_feasible")) for text in texts)


def _which_first(result: PlanResult, about: tuple[int, ...]) -> Iterator[Statement]:
    del about
    remedies = [remedy for remedy in result.remedies if remedy.first]
    for remedy in remedies[:1]:
        yield Statement(text=f"Before any layout: {remedy.title}. {remedy.why}", rests_on=("remedies.1",))
    first = result.proposals[0]
    yield Statement(text=f"'{first.title}' first: {_figures(first)}.", rests_on=("proposals.1", *first.evidence))
    for other in result.proposals[1:2]:
        yield Statement(text=f"Next would be '{other.title}': {_figures(other)}.", rests_on=("proposals.2",))
    yield Statement(
        text=f"Adopting it takes: {first.adoption_effort}. {first.adoption}".strip(),
        rests_on=("proposals.1.adoption_effort",),
    )


def _why(result: PlanResult, about: tuple[int, ...]) -> Iterator[Statement]:
    yield Statement(text=result.diagnosis.summary, rests_on=tuple(one.id for one in result.diagnosis.evidence))
    for proposal in _asked(result, about):
        yield Statement(
            text=f"Proposal {proposal.rank}, '{proposal.title}': {proposal.rationale}",
            rests_on=(f"proposals.{proposal.rank}.rationale", *proposal.evidence),
        )
    ranks = about or (1,)
    if 1 in ranks and len(result.proposals) > 1:
        yield from _lead(result)


def _how_sure(result: PlanResult, about: tuple[int, ...]) -> Iterator[Statement]:
    for proposal in _asked(result, about):
        key = f"proposals.{proposal.rank}.confidence"
        yield Statement(
            text=f"Proposal {proposal.rank}: {percent(proposal.confidence)}, from {proposal.confidence_basis}.",
            rests_on=(key, f"{key}_basis"),
        )
        interval = proposal.projections[0].step_time_interval_s
        yield Statement(
            text=f"Its step is projected between {duration(interval.low)} and {duration(interval.high)} "
            f"({interval.basis}).",
            rests_on=(f"proposals.{proposal.rank}.projections.1",),
        )
    sure = "ambiguous" if result.diagnosis.ambiguous else f"{percent(result.diagnosis.margin)} ahead of the next class"
    yield Statement(text=f"The diagnosis is {sure}.", rests_on=("diagnosis.margin",))
    for one in result.assumptions[:3]:
        yield Statement(text=f"Assumed: {one.field} {one.value}; {one.matters}.", rests_on=("assumptions",))


def _worse(result: PlanResult, about: tuple[int, ...]) -> Iterator[Statement]:
    for proposal in _asked(result, about):
        worse = [one.text for one in proposal.worse] or ["Nothing gets worse by more than the noise of a projection."]
        for text in (*worse, *proposal.risks[:3]):
            yield Statement(text=f"Proposal {proposal.rank}: {text}", rests_on=(f"proposals.{proposal.rank}.worse",))


def _test(result: PlanResult, about: tuple[int, ...]) -> Iterator[Statement]:
    for proposal in _asked(result, about):
        key = f"proposals.{proposal.rank}"
        text = proposal.experiment.text if proposal.experiment is not None else "Nothing changes: nothing to test."
        yield Statement(text=f"Proposal {proposal.rank}: {text}", rests_on=(f"{key}.experiment",))
        if proposal.stop_condition:
            yield Statement(text=proposal.stop_condition, rests_on=(f"{key}.stop_condition",))


def _memory(result: PlanResult, about: tuple[int, ...]) -> Iterator[Statement]:
    for proposal in _asked(result, about or tuple(range(1, len(result.proposals) + 1))):
        memory = proposal.projections[0].memory
        if memory is None:
            text = f"not known, as the model is not; against the current plan: {proposal.expected.memory_direction}"
        else:
            text = f"{gigabytes(memory.total_bytes)} of {gigabytes(memory.capacity_bytes)} on the fullest device"
        yield Statement(
            text=f"Proposal {proposal.rank}, '{proposal.title}': {text}.",
            rests_on=(f"proposals.{proposal.rank}.projections.1.memory",),
        )


def _push_back(result: PlanResult, about: tuple[int, ...]) -> Iterator[Statement]:
    yield Statement(
        text="The order stays: the message brings no new fact, and the figures have not changed.",
        rests_on=("proposals",),
    )
    yield from _lead(result)
    for proposal in [result.proposals[rank - 1] for rank in about if rank > 1]:
        yield Statement(
            text=f"Proposal {proposal.rank}, '{proposal.title}': {_figures(proposal)}.",
            rests_on=(f"proposals.{proposal.rank}",),
        )
    yield Statement(
        text="A fact would change it: a fixed or bounded axis, a memory limit, another machine or load, a latency "
        "budget, or a measured step of another layout.",
    )


def _unclear(result: PlanResult, about: tuple[int, ...]) -> Iterator[Statement]:
    del result, about
    yield Statement(text=f"This was not understood, so nothing was changed. What can be asked: {CAN_ASK}.")


def _lead(result: PlanResult) -> Iterator[Statement]:
    """Why the first stands before the second: the figures that decide."""
    if len(result.proposals) < 2:
        return
    first, second = result.proposals[:2]
    gains = (first.expected.objective_frac, second.expected.objective_frac)
    if gains[0] is None or gains[1] is None:
        return
    if gains[0] >= gains[1]:
        text = f"It stands before '{second.title}', which is projected at {signed_percent(gains[1])} of the objective."
    else:
        text = (
            f"'{second.title}' is projected higher ({signed_percent(gains[1])} of the objective) and stands behind it: "
            f"{second.adoption_effort} against {first.adoption_effort} to adopt, confidence "
            f"{percent(second.confidence)} against {percent(first.confidence)}, and ranking prefers what relieves the "
            "cause, leaves memory free and is near what is measured."
        )
    yield Statement(text=text, rests_on=("proposals.1.expected", "proposals.2.expected"))


def _asked(result: PlanResult, about: tuple[int, ...]) -> list[Proposal]:
    return [result.proposals[rank - 1] for rank in about or (1,)]


def _figures(proposal: Proposal) -> str:
    expected, projection = proposal.expected, proposal.projections[0]
    parts = [f"step {duration(projection.step_time_s)}"]
    if expected.objective_frac is not None:
        parts.append(f"objective {signed_percent(expected.objective_frac)}")
    if projection.memory is not None:
        parts.append(f"{gigabytes(projection.memory.total_bytes)} a device")
    parts.append(f"confidence {percent(proposal.confidence)}")
    return listed(parts)


def _nothing(result: PlanResult) -> str:
    return result.not_plannable or result.fewer_because or "no plan passes the gates"


ANSWERS: Mapping[Intent, Callable[[PlanResult, tuple[int, ...]], Iterator[Statement]]] = {
    "which_first": _which_first,
    "why": _why,
    "how_sure": _how_sure,
    "worse": _worse,
    "test": _test,
    "memory": _memory,
    "push_back": _push_back,
    "unclear": _unclear,
}
