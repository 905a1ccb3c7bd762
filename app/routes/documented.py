"""What routes share: documented problem responses, and the refusal of query parameters nobody reads."""

from collections.abc import Iterable
from typing import Any

from fastapi import Request

from app.problem_handlers import MEDIA_TYPE
from app.schemas import Problem
from projector.errors import UnknownName


def problems(**meanings: str) -> dict[int | str, dict[str, Any]]:
    """Documented problem responses: status_<n>="meaning"."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {
        int(name.removeprefix("status_")): {"model": Problem, "description": meaning, "content": content}
        for name, meaning in meanings.items()
    }


def refuse_query(request: Request, body_keys: Iterable[str] = ()) -> None:
    """UnknownName for a query parameter that the route does not declare; `body_keys` belong into the body."""
    known = [parameter.alias for parameter in request.scope["route"].dependant.query_params]
    for name in request.query_params:
        if name not in known:
            error = UnknownName("query parameter", name, known)
            if name in body_keys:
                error.hint = f"{name} is a key of the request in the body"
            raise error
