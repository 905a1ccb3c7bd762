"""Conversation over HTTP: a message is read, planned where it brings a fact, answered, and kept beside its plan."""

from typing import Literal
from uuid import UUID

from sqlalchemy.exc import IntegrityError

from agents.conversation.converse import next_request, planned, refused
from agents.conversation.records import Answer, Reading, Statement
from agents.findings import PlanResult
from agents.request import PlanRequest
from app.answers import links_of, result_of
from app.daemon import in_daemon_thread
from app.errors import NotFound, PlanNotDone
from app.schemas import Problem
from app.schemas_messages import Conversation, MessageAnswer, MessageLinks, MessageRequest
from app.service import Service
from app.storage import messages as rows
from app.storage.jobs import Job
from app.storage.messages import Message
from projector.errors import InvalidDescription

MOST_MESSAGES = 200  # to one plan
NUMBER_TRIES = 5


async def say(service: Service, plan_id: UUID, asked: MessageRequest) -> MessageAnswer:
    """One turn. NotFound for an unknown plan, PlanNotDone for one that has no answer yet."""
    job = await service.runner.get(plan_id)
    result = _done(job)
    if len(await _messages(service, plan_id)) >= MOST_MESSAGES:
        raise InvalidDescription(f"{MOST_MESSAGES} messages to one plan", hint="POST /v1/plans for a fresh one")
    reading, following = next_request(asked.text, PlanRequest.model_validate_json(job.request), result)
    if isinstance(following, Answer):
        message = await _keep(service, plan_id, asked.text, reading, following, None)
        await _record(service, message, following)
        return _turn(message, following)
    planned_id = await service.runner.submit(following, job.traces)
    message = await _keep(service, plan_id, asked.text, reading, None, planned_id)
    await service.runner.wait(planned_id, min(asked.wait, service.settings.max_wait_s))
    return await _answered(service, message, result)


async def conversation(service: Service, plan_id: UUID) -> Conversation:
    """Everything said of a plan. NotFound for an unknown one."""
    job = await service.runner.get(plan_id)
    found = [await _answered(service, one, _done(job)) for one in await _messages(service, plan_id)]
    return Conversation(plan_id=plan_id, messages=tuple(found))


async def message_of(service: Service, plan_id: UUID, number: int) -> MessageAnswer:
    """One turn. NotFound for an unknown plan or number."""
    job = await service.runner.get(plan_id)
    for one in await _messages(service, plan_id):
        if one.number == number:
            return await _answered(service, one, _done(job))
    raise NotFound(f"no message {number} to plan {plan_id}", hint="GET the messages of the plan")


async def _answered(service: Service, message: Message, result: PlanResult) -> MessageAnswer:
    """The turn with its answer, composed and kept once the plan it waits for is over."""
    if message.answer is not None:
        return _turn(message, Answer.model_validate_json(message.answer))
    assert message.planned_id is not None, "a message without an answer waits for a plan"
    reading = Reading.model_validate_json(message.reading)
    try:
        job = await service.runner.get(message.planned_id)
    except NotFound:  # thrown away before anyone asked for the answer
        gone = InvalidDescription(f"plan {message.planned_id} is not kept any more", hint="say it again")
        return _turn(message, refused(reading, gone))
    if job.state == "done":
        answer = _with_next(planned(reading, result, result_of(job).plan), message.planned_id)
    elif job.state == "failed":
        problem = Problem.model_validate_json(job.problem or "")
        answer = refused(reading, InvalidDescription(problem.detail, hint=problem.hint))
    else:
        return _turn(message, None)
    async with service.database.transaction() as session:
        await rows.answered(session, message, answer.model_dump_json(round_trip=True))
    await _record(service, message, answer)
    return _turn(message, answer)


def _with_next(answer: Answer, planned_id: UUID) -> Answer:
    """The answer and where the conversation goes on: a plan's own messages stay about that plan."""
    kept = "was only tried" if answer.reading.intent == "what_if" else "holds there"
    text = f"Messages here stay about this plan; what was stated {kept}: /v1/plans/{planned_id}/messages."
    return answer.model_copy(update={"statements": (*answer.statements, Statement(text=text, rests_on=("planned",)))})


def _turn(message: Message, answer: Answer | None) -> MessageAnswer:
    plan = f"/v1/plans/{message.plan_id}"
    return MessageAnswer(
        plan_id=message.plan_id,
        number=message.number,
        status="pending" if answer is None else "done",
        created_at=message.created_at,
        text=message.text,
        reading=Reading.model_validate_json(message.reading),
        statements=() if answer is None else answer.statements,
        order_kept=None if answer is None else answer.order_kept,
        planned=None if message.planned_id is None else links_of(message.planned_id),
        links=MessageLinks(self=f"{plan}/messages/{message.number}", plan=plan),
    )


async def _keep(
    service: Service, plan_id: UUID, text: str, reading: Reading, answer: Answer | None, planned_id: UUID | None
) -> Message:
    stored = None if answer is None else answer.model_dump_json(round_trip=True)
    for left in reversed(range(NUMBER_TRIES)):
        try:
            async with service.database.transaction() as session:
                written = reading.model_dump_json(round_trip=True)
                return await rows.insert(session, plan_id, text, written, stored, planned_id, service.clock())
        except IntegrityError:  # another message took the number
            if not left:
                raise
    raise AssertionError("the last try raises")


async def _record(service: Service, message: Message, answer: Answer) -> None:
    """Both sides of a turn in the audit log, where there is one."""
    if service.audit is None:
        return
    planned_id = None if message.planned_id is None else str(message.planned_id)
    turns: tuple[tuple[Literal["user", "assistant"], str], ...] = (
        ("user", message.text),
        ("assistant", " ".join(statement.text for statement in answer.statements)),
    )
    for role, text in turns:
        data = {"message": message.number, "planned_id": planned_id}
        await in_daemon_thread(service.audit.turn, message.plan_id, role, text, data)


async def _messages(service: Service, plan_id: UUID) -> list[Message]:
    async with service.database.transaction() as session:
        return await rows.of_plan(session, plan_id)


def _done(job: Job) -> PlanResult:
    if job.state != "done":
        why = "failed" if job.state == "failed" else "is not done yet"
        raise PlanNotDone(f"plan {job.id} {why}: there is nothing to talk about", hint=f"GET /v1/plans/{job.id}")
    return result_of(job).plan
