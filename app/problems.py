"""Every error as an RFC 9457 problem: one conversion for the service and the command line."""

import logging
from typing import Any
from uuid import uuid4

from app.schemas import Problem
from projector.errors import ShardwiseError

_log = logging.getLogger("shardwise")


def problem(status: int, code: str, detail: str, **more: Any) -> Problem:
    """A problem of this code; `more` are the optional fields of Problem."""
    title = code.replace("_", " ").capitalize()
    return Problem(type=f"urn:shardwise:problem:{code}", title=title, status=status, detail=detail, code=code, **more)


def problem_of(error: Exception, instance: str | None = None) -> Problem:
    """Whatever was raised as a problem.

    A typed error is told as it is. Anything else is a fault of ours: it is logged with its stack under an id, and the
    user gets the id without the stack.
    """
    if isinstance(error, ShardwiseError):
        return problem(
            error.http_status,
            error.code,
            error.message,
            hint=error.hint,
            nearest=tuple(getattr(error, "nearest", ())),
            errors=tuple(getattr(error, "fields", ())),
            instance=instance,
        )
    reference = f"urn:uuid:{uuid4()}"
    _log.error("internal error %s", reference, exc_info=error)
    return problem(
        500,
        "internal_error",
        "something went wrong on our side; the log has the details under the id in `instance`",
        hint="report the id together with the request",
        instance=reference,
    )
