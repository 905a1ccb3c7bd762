"""Problems over HTTP: the handlers that turn every error of the app into application/problem+json."""

from difflib import get_close_matches
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from app.problems import problem, problem_of
from app.schemas import FieldProblem, Problem
from projector.errors import ShardwiseError

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 5


def response_of(answer: Problem, headers: dict[str, str] | None = None) -> Response:
    """The problem as an HTTP response."""
    headers = dict(headers or {})
    if answer.status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = str(RETRY_AFTER_S)
    return Response(answer.model_dump_json(exclude_none=True), answer.status, headers, MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Answer every error of the app with a problem."""
    app.add_exception_handler(ShardwiseError, _any)
    app.add_exception_handler(Exception, _any)
    app.add_exception_handler(RequestValidationError, _invalid_parameter)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _gone)


async def _any(request: Request, error: Exception) -> Response:
    return response_of(problem_of(error, request.url.path))


async def _invalid_parameter(request: Request, error: Any) -> Response:
    fields = tuple(FieldProblem(path=".".join(map(str, item["loc"])), message=item["msg"]) for item in error.errors())
    detail = f"{fields[0].path}: {fields[0].message}"
    return response_of(problem(422, "invalid_description", detail, errors=fields, instance=request.url.path))


async def _http(request: Request, error: Any) -> Response:
    path = request.url.path
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    if error.status_code == HTTPStatus.NOT_FOUND:
        nearest = tuple(get_close_matches(path, request.app.openapi()["paths"], n=3, cutoff=0.6))
        hint = f"nearest known: {', '.join(nearest)}" if nearest else "GET /openapi.json lists every path"
        answer = problem(404, "not_found", f"nothing at {path}", instance=path, hint=hint, nearest=nearest)
    elif error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        detail = f"{request.method} is not allowed at {path}"
        hint = f"allowed: {headers.get('allow', '')}"
        answer = problem(405, "method_not_allowed", detail, instance=path, hint=hint)
    else:
        answer = problem(error.status_code, "http_error", str(error.detail), instance=path)
    return response_of(answer, headers)


async def _gone(_request: Request, _error: Exception) -> Response:
    return Response(status_code=400)  # the client left while sending: nobody reads this
