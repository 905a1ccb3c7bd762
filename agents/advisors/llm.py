"""The language-model advisor: asks for a choice by id with prose, and refuses what the data does not hold.

One call of `choose` is one turn. `agents.advisors.ask` gives it a second one with the problems of the first, then keeps
what holds. The advisor keeps nothing between turns and serves several threads at once.
"""

import copy
from collections.abc import Callable
from typing import Literal

from pydantic import SecretStr

from agents.advisors.llm_client import ModelCalls, ModelClient
from agents.advisors.llm_order import citation_problems, order_problems
from agents.advisors.llm_prompt import shown_candidates, system_prompt, user_prompt
from agents.advisors.llm_prose import prose_problems
from agents.advisors.llm_schema import read_answer, response_schema
from agents.advisors.protocol import AdvisorChoice, AdvisorInput, AnswerRefused
from agents.advisors.redaction import Masks
from agents.advisors.validate import problems_of

# of the time for all turns: the first one may read the question for the first time, the second finds it in a cache
FIRST_TURN_SHARE = 0.6

__all__ = ["LlmAdvisor", "prose_problems"]


class LlmAdvisor:
    """An advisor behind any litellm provider string.

    model, api_base, api_key, retries: as in `ModelClient`. timeout_s: of all turns of one choice together.
    retry_wait_s: before the first retry, twice as long before each further one. max_output_tokens: longest answer.
    """

    name: Literal["rules", "llm"] = "llm"

    def __init__(
        self,
        model: str,
        *,
        api_base: str | None = None,
        api_key: SecretStr | None = None,
        timeout_s: float = 60.0,
        retries: int = 2,
        retry_wait_s: float = 0.5,
        max_output_tokens: int = 3000,
    ) -> None:
        self._max_output_tokens = max_output_tokens
        self._timeout_s = timeout_s
        self._client: ModelCalls = ModelClient(
            model,
            api_base=api_base,
            api_key=api_key,
            timeout_s=timeout_s,
            retries=retries,
            retry_wait_s=retry_wait_s,
            max_output_tokens=max_output_tokens,
        )

    def through(self, wrap: Callable[[ModelCalls], ModelCalls]) -> "LlmAdvisor":
        """The same advisor with its model behind something: a recording, or in its place a record."""
        other = copy.copy(self)
        other._client = wrap(self._client)
        return other

    def choose(self, question: AdvisorInput, problems: tuple[str, ...] = ()) -> AdvisorChoice:
        """One turn. AnswerRefused with what is wrong with the answer, AdvisorFailed where none came."""
        shown, masks = shown_candidates(question), Masks(question.hidden)
        share = 1 - FIRST_TURN_SHARE if problems else FIRST_TURN_SHARE
        reply = self._client.ask(
            system_prompt(),
            user_prompt(question, shown, problems, masks),
            response_schema(question, shown),
            timeout_s=self._timeout_s * share,
        )
        if reply.truncated:
            cut = f"the answer was cut off at {self._max_output_tokens} tokens; write less"
            raise AnswerRefused((cut,), usage=reply.usage)
        choice = read_answer(masks.restored(reply.text), question, reply.usage)
        broken = [
            *problems_of(question, choice),
            *order_problems(question, choice),
            *citation_problems(question, choice),
            *prose_problems(question, choice),
        ]
        if broken:
            raise AnswerRefused(tuple(dict.fromkeys(broken)), usage=reply.usage, choice=choice)
        return choice

    def close(self) -> None:
        """Give up connections; the advisor may be asked again."""
        self._client.close()
