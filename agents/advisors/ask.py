"""Asking an advisor: what holds of a model's answer after at most one repair, otherwise the rules' answer."""

from dataclasses import dataclass
from typing import Literal, TypeVar

from pydantic import ValidationError

from agents.advisors.disagreement import disagreement
from agents.advisors.protocol import Advisor, AdvisorChoice, AdvisorFailed, AdvisorInput, AnswerRefused
from agents.advisors.rules import RulesAdvisor, explained
from agents.advisors.salvage import Salvaged, salvage
from agents.advisors.validate import problems_of
from agents.findings import Disagreement, DroppedSentence, LlmUsage
from agents.wording import quoted

TURNS = 2
Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Asked:
    """The choice to use and whose it is. usage: of the language model, also where its answers were not used.

    order_by: whose plans and order. dropped: sentences of the model that were left out. turns: the problems of each
    answer, and refused: the sentences left out; both hold unvalidated words and are for the audit log alone.
    """

    choice: AdvisorChoice
    advisor: Literal["rules", "llm"]
    fallback_reason: str = ""
    usage: LlmUsage | None = None
    order_by: Literal["rules", "llm"] = "rules"
    dropped: tuple[DroppedSentence, ...] = ()
    disagreement: Disagreement | None = None
    turns: tuple[tuple[str, ...], ...] = ()
    refused: tuple[str, ...] = ()


def ask(question: AdvisorInput, advisor: Advisor, wanted: Literal["auto", "rules", "llm"]) -> Asked:
    """The language model's answer where one is configured and wanted; the rules' answer, with the reason, otherwise.

    The reason quotes nothing of what was refused. "auto" without a language model means the rules: no reason is due.
    """
    if advisor.name != "llm":
        missing = "the request asks for a language-model advisor and none is configured"
        return Asked(_by_rules(question, advisor), "rules", missing if wanted == "llm" else "")
    if wanted == "rules":
        return Asked(_by_rules(question), "rules")
    if not question.wanted:
        return Asked(_by_rules(question), "rules", "no plan passes the gates, so there was nothing to ask a model for")
    return _by_model(question, advisor)


def _by_model(question: AdvisorInput, advisor: Advisor) -> Asked:
    usage: LlmUsage | None = None
    turns: list[tuple[str, ...]] = []
    heard: AdvisorChoice | None = None
    reason = ""
    while len(turns) < TURNS and not reason:
        try:
            choice = advisor.choose(question, turns[-1] if turns else ())
            usage, problems = total_usage(usage, choice.usage), problems_of(question, choice)
            if not problems:
                return _whole(question, choice, usage, turns)
            heard = choice
        except AnswerRefused as refused:
            usage, problems = total_usage(usage, refused.usage), refused.problems
            heard = refused.choice or heard
        except AdvisorFailed as error:
            usage, problems = total_usage(usage, error.usage), ()
            reason = f"the language model gave no answer: {quoted(error.message, 200)}"
        except ValidationError as error:
            problems = ()
            reason = f"the language model's answer does not follow the schema in {error.error_count()} places"
        turns.append(problems)
    by_rules = _by_rules(question)
    saved = salvage(question, heard, by_rules, explained) if heard is not None else None
    return _in_part(question, by_rules, heard, saved, reason or _refused(turns[-1]), usage, turns)


def _refused(problems: tuple[str, ...]) -> str:
    count = f"{len(problems)} problem{'s' if len(problems) != 1 else ''}"
    return f"the language model's answer was refused twice, at last for {count}"


def _whole(
    question: AdvisorInput, choice: AdvisorChoice, usage: LlmUsage | None, turns: list[tuple[str, ...]]
) -> Asked:
    """An answer that holds as it is."""
    picks = tuple(pick.model_copy(update={"written_by": "llm"}) for pick in choice.picks)
    return Asked(
        choice.model_copy(update={"picks": picks}),
        "llm",
        usage=usage,
        order_by="llm",
        disagreement=disagreement(question, [pick.candidate for pick in picks], "llm"),
        turns=tuple(turns),
    )


def _in_part(
    question: AdvisorInput,
    by_rules: AdvisorChoice,
    heard: AdvisorChoice | None,
    saved: Salvaged | None,
    reason: str,
    usage: LlmUsage | None,
    turns: list[tuple[str, ...]],
) -> Asked:
    """What holds of an answer that was refused; all of the rules where nothing does."""
    if heard is None or saved is None:
        return Asked(by_rules, "rules", reason, usage, turns=tuple(turns))
    by_model = saved.texts > 0
    order_by: Literal["rules", "llm"] = "llm" if saved.order_kept else "rules"
    if by_model:
        reason = f"{reason}; {_what_stands(saved, len(saved.choice.picks))}"
    return Asked(
        saved.choice,
        "llm" if by_model else "rules",
        reason,
        usage,
        order_by,
        saved.dropped,
        disagreement(question, [pick.candidate for pick in heard.picks], order_by),
        tuple(turns),
        saved.refused,
    )


def _what_stands(saved: Salvaged, plans: int) -> str:
    order = "its order stands" if saved.order_kept else "the order is that of the rules"
    return f"{order}, and what holds of its words stands for {saved.texts} of {plans} plans"


def _by_rules(question: AdvisorInput, advisor: Advisor | None = None) -> AdvisorChoice:
    """The rules' answer. advisor: rules that are told less, as an evaluation asks them: their texts are not held to
    what they were not told.
    """
    rules = advisor or RulesAdvisor()
    choice = rules.choose(question)
    broken = problems_of(question, choice) if isinstance(rules, RulesAdvisor) else ()
    assert not broken, f"the rules advisor broke its own rules: {broken}"
    return choice


def total_usage(first: LlmUsage | None, second: LlmUsage | None) -> LlmUsage | None:
    """What two turns took together; a figure that one of them does not know is not known of both."""
    if first is None or second is None:
        return first or second
    return LlmUsage(
        model=second.model,
        requests=first.requests + second.requests,
        prompt_tokens=_sum(first.prompt_tokens, second.prompt_tokens),
        completion_tokens=_sum(first.completion_tokens, second.completion_tokens),
        cost_usd=_sum(first.cost_usd, second.cost_usd),
    )


def _sum(first: Number | None, second: Number | None) -> Number | None:
    return first + second if first is not None and second is not None else None
