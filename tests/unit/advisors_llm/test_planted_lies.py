"""No lie of a model reaches the user, whatever it is about and however it is dressed; and truths get through.

Every answer comes over HTTP from a scripted endpoint, twice: a model that lies again in its repair. What is looked
at is what the user gets: the JSON, the text of the command line, the page. Each must be without the lie, and whole.
"""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from uuid import UUID

import llm_examples
import planted_lies
import pytest
from llm_examples import GOOD_PROSE, LeverNotes, answer, good_ids, kept_id, question_of, worst_id
from planted_lies import LATER, LIES, TRUTHS, Lie
from scripted_endpoint import BODILESS, DRIP, ENDLESS, NO_COMPLETION, PACKED, SILENCE, Endpoint

from agents.advisors.ask import ask
from agents.advisors.llm import LlmAdvisor
from agents.advisors.protocol import AdvisorInput, AnswerRefused
from agents.advisors.rules import RulesAdvisor
from agents.findings import PlanResult
from agents.planning.graph import resume_plan, run_plan
from agents.planning.state import PlanContext, PlanState
from agents.request import PlanRequest
from app.schemas import PlanAnswer, PlanLinks
from app.tables import show_plan
from app.web.pages import report_page
from traces.summary_types import TraceSummary

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
Script = list[str | int]


@pytest.fixture(scope="module")
def measured() -> TraceSummary:
    return llm_examples.summary()


@pytest.fixture(scope="module")
def question(measured) -> AdvisorInput:
    return question_of(measured)


@pytest.fixture(scope="module")
def analysed(measured) -> str:
    """The state behind the analyzer, which no lie can reach."""
    states: list[PlanState] = []
    run_plan(PlanRequest(), measured, knowledge=LeverNotes(), advisor=RulesAdvisor(), on_state=states.append)
    return json.dumps(next(state for state in states if "diagnosis" in state))


@pytest.fixture(scope="module")
def by_rules(analysed) -> PlanResult:
    return resume_plan(json.loads(analysed), PlanContext(LeverNotes(), RulesAdvisor()))


@pytest.fixture(scope="module", autouse=True)
def litellm_is_warm(question) -> None:
    """Its import and its first call take seconds, which no deadline below should have to hold."""
    with Endpoint(["{}"]) as endpoint:
        advisor = LlmAdvisor("openai/scripted", api_base=endpoint.address, timeout_s=100)
        with pytest.raises(AnswerRefused):
            advisor.choose(question)
        advisor.close()


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as running:
        yield running


@pytest.fixture(scope="module")
def advisor(endpoint) -> Iterator[LlmAdvisor]:
    """One advisor for all lies: it must forget each."""
    made = LlmAdvisor("openai/scripted", api_base=endpoint.address, timeout_s=100, retries=0)
    yield made
    made.close()


@pytest.fixture
def told(endpoint, advisor, analysed) -> Callable[..., PlanResult]:
    """The whole answer where the endpoint answers from a script."""

    def plan(*script: str | int, by: LlmAdvisor = advisor) -> PlanResult:
        endpoint.script[:] = list(script)
        return resume_plan(json.loads(analysed), PlanContext(LeverNotes(), by))

    return plan


def seen(result: PlanResult, capsys) -> dict[str, str]:
    """What a user gets, by where; blanks are taken out, as text is wrapped."""
    show_plan(result, None)
    links = PlanLinks(self="/p", report="/r", launch="/l")
    fields = {name: getattr(result, name) for name in PlanResult.model_fields}
    page = PlanAnswer(**fields, id=UUID(int=1), created_at=NOON, finished_at=NOON, links=links, files=(), trace=None)
    texts = {
        "json": json.dumps(json.loads(result.model_dump_json()), ensure_ascii=False),
        "text": capsys.readouterr().out,
        "page": report_page(page, ()),
    }
    return {where: "".join(text.split()) for where, text in texts.items()}


def assert_whole(result: PlanResult, by_rules: PlanResult) -> None:
    """A complete, valid answer."""
    assert PlanResult.model_validate_json(result.model_dump_json(round_trip=True)) == result
    assert [proposal.rank for proposal in result.proposals] == [1, 2, 3]
    assert len({proposal.plan.model_dump_json() for proposal in result.proposals}) == 3
    known = {entry.id for entry in result.evidence}
    for proposal in result.proposals:
        assert proposal.rationale.strip()
        assert proposal.evidence
        assert set(proposal.evidence) <= known
        assert proposal.title
    assert result.diagnosis == by_rules.diagnosis


def with_lie(question: AdvisorInput, lie: Lie, part: str) -> str:
    """A good answer but for one sentence."""
    document = json.loads(answer(question))
    pick = document["picks"][lie.pick]
    if part == "rationale":
        pick["rationale"] = f"{pick['rationale']} {lie.text}"
    else:
        pick["risks"] = [lie.text]
    return json.dumps(document, ensure_ascii=False)


@pytest.mark.parametrize("lie", LIES, ids=[f"{lie.kind}: {lie.text}" for lie in LIES])
def test_a_lie_in_prose_is_left_out_and_the_rest_stands(told, question, by_rules, capsys, lie):
    part = "risk" if LIES.index(lie) % 4 == 3 else "rationale"
    text = with_lie(question, lie, part)
    result = told(text, text)
    for where, shown in seen(result, capsys).items():
        assert "".join(lie.text.split()) not in shown, where
    assert_whole(result, by_rules)
    assert [(dropped.rank, dropped.part) for dropped in result.provenance.dropped_sentences] == [(lie.pick + 1, part)]
    assert result.provenance.dropped_sentences[0].reasons
    assert all(proposal.rationale.endswith(GOOD_PROSE) for proposal in result.proposals)
    assert result.provenance.order_by == "llm"


@pytest.mark.parametrize("lie", LATER, ids=[lie.text for lie in LATER])
def test_a_lie_that_was_tried_later_is_left_out_too(endpoint, advisor, question, lie):
    """Without the planning around it, which is the same for all."""
    endpoint.script[:] = [with_lie(question, lie, "rationale")] * 2
    asked = ask(question, advisor, "auto")
    assert [pick.rationale for pick in asked.choice.picks] == [GOOD_PROSE] * 3
    assert asked.refused == (lie.text,)


@pytest.mark.parametrize("lie", LIES[::9], ids=[lie.kind for lie in LIES[::9]])
def test_where_nothing_is_left_to_say_the_rules_words_stand(told, question, by_rules, capsys, lie):
    document = json.loads(answer(question))
    document["picks"][lie.pick]["rationale"] = lie.text
    text = json.dumps(document, ensure_ascii=False)
    result = told(text, text)
    assert "".join(lie.text.split()) not in "".join(seen(result, capsys).values())
    assert_whole(result, by_rules)
    written = [proposal.written_by for proposal in result.proposals]
    assert written == ["rules" if place == lie.pick else "llm" for place in range(3)]
    assert result.proposals[lie.pick].rationale == by_rules.proposals[lie.pick].rationale


def test_a_model_of_whose_words_nothing_holds_does_not_order_the_plans(told, question, by_rules):
    first, second, third = good_ids(question)
    document = json.loads(answer(question, [second, first, third]))
    for pick in document["picks"]:
        pick["rationale"] = planted_lies.NUMBERS[0].text
    result = told(json.dumps(document), json.dumps(document))
    assert result.proposals == by_rules.proposals
    assert (result.provenance.advisor, result.provenance.order_by) == ("rules", "rules")
    assert len(result.provenance.dropped_sentences) == 3
    assert result.provenance.disagreement is not None
    assert result.provenance.disagreement.used == "rules"


MARK = "zqlie"  # stands in every answer below where a field may hold anything
CHOICES: dict[str, Callable[[AdvisorInput], str]] = {
    "an unlisted plan": lambda q: answer(q, ["c99", *good_ids(q)[1:]]),
    "one plan twice": lambda q: answer(q, [good_ids(q)[0], *good_ids(q)[:2]]),
    "too few plans": lambda q: answer(q, good_ids(q)[:2]),
    "no plan": lambda q: json.dumps({"picks": []}),
    "more plans than asked for": lambda q: answer(q, [candidate.id for candidate in q.candidates[:5]]),
    "a plan worse than the current one": lambda q: answer(q, [*good_ids(q)[:2], worst_id(q)]),
    "a poor plan first": lambda q: answer(q, [kept_id(q), *good_ids(q)[:2]]),
}


@pytest.mark.parametrize("bad", CHOICES.values(), ids=CHOICES)
def test_a_choice_that_breaks_the_rules_falls_back_to_the_order_of_the_rules(told, question, by_rules, capsys, bad):
    result = told(bad(question), bad(question))
    assert "c99" not in "".join(seen(result, capsys).values())
    assert_whole(result, by_rules)
    assert [proposal.plan for proposal in result.proposals] == [proposal.plan for proposal in by_rules.proposals]
    assert result.provenance.order_by == "rules"


IDS: dict[str, tuple[str, Callable[[AdvisorInput], str]]] = {
    "a fabricated citation": ("vaswani-2017", lambda q: answer(q, citations=["vaswani-2017"])),
    "a citation about something else": (
        "pipeline_parallelism:0",
        lambda q: answer(q, citations=["pipeline_parallelism:0"]),
    ),
    "fabricated evidence": ("ev-vibes", lambda q: answer(q, evidence=["ev-vibes"])),
    "evidence of another plan": ("ev-c99-gain", lambda q: answer(q, evidence=["ev-c99-gain"])),
    "an id that is markup": ("<img", lambda q: answer(q, citations=["<img src=x onerror=alert(1)>"])),
}


@pytest.mark.parametrize(("name", "bad"), IDS.values(), ids=IDS)
def test_an_id_that_is_not_on_the_lists_is_left_out(told, question, by_rules, capsys, name, bad):
    result = told(bad(question), bad(question))
    assert_whole(result, by_rules)
    assert name not in str(result.proposals[0].citations)
    assert name not in result.proposals[0].evidence
    if name != "pipeline_parallelism:0":
        assert name not in "".join(seen(result, capsys).values())


SHAPES: dict[str, Callable[[AdvisorInput], str]] = {
    "cut off": lambda q: answer(q, rationale=MARK)[:200],
    "text behind it": lambda q: f"{answer(q, rationale=MARK)} {MARK} I hope this helps.",
    "text before it": lambda q: f"{MARK} Here it is: {answer(q, rationale=MARK)}",
    "two answers": lambda q: answer(q, rationale=MARK) * 2,
    "not a number": lambda q: answer(q, rationale=MARK).replace('"risks"', '"x": NaN, "risks"', 1),
    "deep nesting": lambda q: "[" * 100_000,
    "deep objects": lambda q: '{"picks":' * 50_000,
    "huge": lambda q: answer(q, rationale=MARK * 200_000),
    "an extra field": lambda q: answer(q, confidence=99, rationale=MARK),
    "a list": lambda q: f'["{MARK}"]',
    "a string": lambda q: f'"{MARK}"',
    "null": lambda q: "null",
    "numbers for prose": lambda q: answer(q, rationale=41.7),
    "an object for prose": lambda q: answer(q, rationale={MARK: 1}),
    "prose": lambda q: f"{MARK} I would pick the first plan.",
    "nothing": lambda q: "",
    "a refusal": lambda q: f"I cannot help with that {MARK}.",
}


@pytest.mark.parametrize("bad", SHAPES.values(), ids=SHAPES)
def test_what_is_not_the_shape_is_not_read(told, question, by_rules, capsys, bad):
    result = told(bad(question), bad(question))
    assert MARK not in "".join(seen(result, capsys).values())
    assert result.proposals == by_rules.proposals
    assert result.provenance.advisor == "rules"
    assert "refused twice" in result.provenance.fallback_reason


ENDS = {
    "silence": (SILENCE, "no answer within 0.6 s"),
    "drops without end": (DRIP, "no answer within 0.6 s"),
    "a flood without end": (ENDLESS, "sent more than any answer needs"),
    "a packed flood": (PACKED, "sent more than any answer needs"),
    "no body": (BODILESS, "the "),
    "no completion": (NO_COMPLETION, "the "),
    "a refusal of the endpoint": (403, "refused access"),
    "a fault of the endpoint": (500, "failed or could not be reached"),
}


@pytest.mark.parametrize(("step", "reason"), ENDS.values(), ids=ENDS)
def test_no_answer_or_one_without_end_gives_the_rules_answer_in_time(
    told, endpoint, by_rules, capsys, question, step, reason
):
    waits = step in (SILENCE, DRIP)
    short = LlmAdvisor("openai/scripted", api_base=endpoint.address, timeout_s=1 if waits else 100, retries=0)
    result = told(step, by=short)
    short.close()
    assert "LEAKED" not in "".join(seen(result, capsys).values())
    assert result.proposals == by_rules.proposals
    assert reason in result.provenance.fallback_reason


def test_silence_in_the_repair_leaves_what_held_of_the_first_answer(told, endpoint, question, by_rules, capsys):
    lie = planted_lies.NUMBERS[0]
    short = LlmAdvisor("openai/scripted", api_base=endpoint.address, timeout_s=5, retries=0)
    result = told(with_lie(question, lie, "rationale"), SILENCE, by=short)
    short.close()
    assert "41.7" not in "".join(seen(result, capsys).values())
    assert_whole(result, by_rules)
    assert "no answer within 2 s" in result.provenance.fallback_reason
    assert all(proposal.rationale.endswith(GOOD_PROSE) for proposal in result.proposals)


def test_both_turns_share_one_deadline(question):
    """0.6 and 0.4 of the time: a model cannot take more than the whole."""
    asked: list[float | None] = []

    class Spy:
        model = "spy"

        def ask(self, system, user, schema, *, timeout_s=None):
            asked.append(timeout_s)
            raise AnswerRefused(("again",))

        def close(self) -> None:
            pass

    spied = LlmAdvisor("openai/x", timeout_s=50).through(lambda _: Spy())
    assert ask(question, spied, "auto").advisor == "rules"
    assert asked == [pytest.approx(30), pytest.approx(20)]


def test_twenty_good_answers_pass_unaltered(endpoint, advisor, question, capsys):
    """The other side of the lies: refusing everything would pass every test above."""
    refused = []
    for truths in TRUTHS:
        document = json.loads(answer(question))
        for pick, text in zip(document["picks"], truths, strict=True):
            pick["rationale"] = text
        endpoint.script[:] = [json.dumps(document)] * 2
        asked = ask(question, advisor, "auto")
        if [pick.rationale for pick in asked.choice.picks] != list(truths) or asked.usage.requests != 1:
            refused.append((asked.turns, asked.refused))
    with capsys.disabled():
        print(
            f"\nplanted lies: {len(LIES) + len(LATER) + len(CHOICES) + len(IDS) + len(SHAPES) + len(ENDS)}; "
            f"good answers refused: {len(refused)} of {len(TRUTHS)}"
        )
    assert refused == []


def test_where_the_order_differs_both_are_shown(told, question, by_rules, capsys):
    first, second, third = good_ids(question)
    result = told(answer(question, [second, first, third]))
    apart = result.provenance.disagreement
    assert apart is not None
    assert (apart.used, result.provenance.order_by) == ("llm", "llm")
    assert [point.title for point in apart.rules] == [proposal.title for proposal in by_rules.proposals]
    assert [point.title for point in apart.llm] == [proposal.title for proposal in result.proposals]
    assert "+114.2 %" in apart.text
    assert "+214.8 %" in apart.text
    for where, shown in seen(result, capsys).items():
        assert "therulesput" in shown, where
    assert told(answer(question)).provenance.disagreement is None
