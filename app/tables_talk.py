"""An answer of a conversation as text."""

from collections.abc import Sequence

from agents.conversation.records import Reading, Statement
from app.tables_parts import bullet, bullets, console
from app.wording import plain


def show_answer(reading: Reading, statements: Sequence[Statement]) -> None:
    """The sentences, then what they rest on."""
    out = console()
    for statement in statements:
        bullet(out, plain(statement.text))
    keys = dict.fromkeys(key for statement in statements for key in statement.rests_on)
    bullets(out, "Rests on", [", ".join(keys)] if keys else [])
    facts = [f"{fact.text} ('{plain(fact.said)}')" for fact in reading.facts]
    bullets(out, "Facts read in the message", facts)
