"""One turn: read the message, re-plan where it brings a fact, answer from figures."""

from collections.abc import Callable

from pydantic import ValidationError

from agents.conversation.answers import comparison, statements_of
from agents.conversation.patch import with_facts
from agents.conversation.reading import read_message
from agents.conversation.records import Answer, Reading, Statement
from agents.findings import PlanResult
from agents.request import PlanRequest
from projector.errors import ShardwiseError


def next_request(message: str, request: PlanRequest, result: PlanResult) -> tuple[Reading, PlanRequest | Answer]:
    """What was read, and the request that has to be planned for an answer, or the answer where none has to."""
    reading = read_message(message)
    if reading.clashes:
        statements = tuple(
            Statement(text=f"{clash}: which one holds? Nothing was changed.") for clash in reading.clashes
        )
        return reading, Answer(reading=reading, statements=statements, order_kept=True)
    if not reading.facts:
        return reading, Answer(reading=reading, statements=statements_of(reading, result), order_kept=True)
    try:
        return reading, with_facts(request, result, reading.facts)
    except (ShardwiseError, ValueError) as error:
        return reading, refused(reading, error)


def planned(reading: Reading, before: PlanResult, after: PlanResult) -> Answer:
    """The answer once the situation of the message was planned."""
    read = ", ".join(fact.text for fact in reading.facts)
    statements = (
        Statement(text=f"Read as: {read}."),
        *comparison(before, after, holds=reading.intent == "new_fact"),
    )
    orders = [[one.plan for one in result.proposals] for result in (before, after)]
    return Answer(reading=reading, statements=statements, order_kept=orders[0] == orders[1])


def refused(reading: Reading, error: Exception) -> Answer:
    """The answer where the facts cannot hold: why, and that nothing changed."""
    why = _why(error)
    hint = f" ({error.hint})" if isinstance(error, ShardwiseError) and error.hint else ""
    return Answer(
        reading=reading, statements=(Statement(text=f"That cannot be planned: {why}{hint}."),), order_kept=True
    )


def _why(error: Exception) -> str:
    if isinstance(error, ShardwiseError):
        return error.message
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        return f"{where}: {first['msg']}" if where else first["msg"]
    return str(error).splitlines()[0]


def converse(
    message: str, request: PlanRequest, result: PlanResult, plan: Callable[[PlanRequest], PlanResult]
) -> tuple[Answer, PlanRequest, PlanResult]:
    """(answer, request and plan that the next message is about): the new ones after a fact, else the same."""
    reading, following = next_request(message, request, result)
    if isinstance(following, Answer):
        return following, request, result
    try:
        after = plan(following)
    except ShardwiseError as error:
        return refused(reading, error), request, result
    answer = planned(reading, result, after)
    return (answer, following, after) if reading.intent == "new_fact" else (answer, request, result)
