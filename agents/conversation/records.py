"""One turn of a conversation about a plan."""

from typing import Literal

from pydantic import Field

from projector.specs.record import Record

# which_first, why, how_sure, worse, test, memory: a question about the answer. what_if: a question about another
# situation. new_fact: a limit or a size that holds from now on. push_back: doubt without a new fact. unclear: none of
# these was read in the message.
Intent = Literal[
    "which_first", "why", "how_sure", "worse", "test", "memory", "what_if", "new_fact", "push_back", "unclear"
]
MOST_MESSAGE = 2_000  # characters


class Fact(Record):
    """Something a message states of the job. path: key of the request it sets; said: the words it was read in."""

    path: tuple[str, ...] = Field(min_length=1)
    value: int | float | bool | str | tuple[int, ...]
    said: str

    @property
    def text(self) -> str:
        """'constraints.fixed.tp = 8'."""
        value = "x".join(map(str, self.value)) if isinstance(self.value, tuple) else self.value
        return f"{'.'.join(self.path)} = {value}"


class Reading(Record):
    """What was read in a message. clashes: pairs of facts that cannot both hold, as sentences."""

    intent: Intent
    facts: tuple[Fact, ...] = ()
    about: tuple[int, ...] = Field((), description="ranks of the proposals the message names")
    clashes: tuple[str, ...] = ()


class Statement(Record):
    """A sentence of an answer and what it rests on: ids of Evidence, or keys of the plan ('proposals.1.worse')."""

    text: str
    rests_on: tuple[str, ...] = ()


class Answer(Record):
    """Answer to one message. order_kept: the ranking stands as it was; None: nothing asked for one."""

    reading: Reading
    statements: tuple[Statement, ...]
    order_kept: bool | None = None
