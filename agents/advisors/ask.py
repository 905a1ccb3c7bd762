"""Asking an advisor: a valid answer of the language model after at most one repair, otherwise that of the rules."""

from dataclasses import dataclass
from typing import Literal, TypeVar

from pydantic import ValidationError

from agents.advisors.protocol import Advisor, AdvisorChoice, AdvisorFailed, AdvisorInput, AnswerRefused
from agents.advisors.rules import RulesAdvisor
from agents.advisors.validate import problems_of
from agents.findings import LlmUsage
from agents.wording import quoted

TURNS = 2
Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Asked:
    """The choice to use and whose it is. usage: of the language model, also where its answers were not used."""

    choice: AdvisorChoice
    advisor: Literal["rules", "llm"]
    fallback_reason: str = ""
    usage: LlmUsage | None = None


def ask(question: AdvisorInput, advisor: Advisor, wanted: Literal["auto", "rules", "llm"]) -> Asked:
    """The language model's answer where one is configured and wanted; the rules' answer, with the reason, otherwise.

    The reason quotes nothing of what was refused. "auto" without a language model means the rules: no reason is due.
    """
    if wanted == "rules":
        return Asked(_by_rules(question), "rules")
    if advisor.name != "llm":
        missing = "the request asks for a language-model advisor and none is configured"
        return Asked(_by_rules(question), "rules", missing if wanted == "llm" else "")
    if not question.wanted:
        return Asked(_by_rules(question), "rules", "no plan passes the gates, so there was nothing to ask a model for")
    return _by_model(question, advisor)


def _by_model(question: AdvisorInput, advisor: Advisor) -> Asked:
    usage: LlmUsage | None = None
    problems: tuple[str, ...] = ()
    for _ in range(TURNS):
        try:
            choice = advisor.choose(question, problems)
            usage, problems = total_usage(usage, choice.usage), problems_of(question, choice)
            if not problems:
                return Asked(choice, "llm", usage=usage)
        except AnswerRefused as refused:
            usage, problems = total_usage(usage, refused.usage), refused.problems
        except AdvisorFailed as error:
            reason = f"the language model gave no answer: {quoted(error.message, 200)}"
            return Asked(_by_rules(question), "rules", reason, total_usage(usage, error.usage))
        except ValidationError as error:
            reason = f"the language model's answer does not follow the schema in {error.error_count()} places"
            return Asked(_by_rules(question), "rules", reason, usage)
    count = f"{len(problems)} problem{'s' if len(problems) != 1 else ''}"
    reason = f"the language model's answer was refused twice, at last for {count}"
    return Asked(_by_rules(question), "rules", reason, usage)


def _by_rules(question: AdvisorInput) -> AdvisorChoice:
    choice = RulesAdvisor().choose(question)
    broken = problems_of(question, choice)
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
